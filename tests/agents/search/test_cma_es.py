"""The search: a run is repeated, keeps the best, and can be interrupted."""

import dataclasses
import json

import numpy as np
import pytest

import pull_env
from agents.search import cma_es as search
from agents.search.cma_es import Args
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import Announce, Policy, Send, load_policy, save_policy
from pull_env.reporting.run_folder import CONFIGURATION, CURVE
from pull_env.scenario.scenario import load_scenario
from tests.oracles.networks import follow

SCENARIO = load_scenario("small-mixed")
TINY = Args(
    scenario="small-mixed",
    generations=4,
    every=2,
    population=6,
    customers=2000,
    warmup=100,
    replications=2,
    validation_customers=4000,
    validation_warmup=100,
    score_customers=0,
)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_search_finds_what_costs_less(tmp_path):
    """From a blind choice that overloads the slow servers: by far less than chance gives."""
    blind = Policy("blind", follow(SCENARIO).steps, Announce(), network=follow(SCENARIO).network)
    zero = dataclasses.replace(
        blind.network, layers=((np.zeros((18, 22)), np.eye(18)[default_catalog(SCENARIO).index(Send(0))]),)
    )
    save_policy(dataclasses.replace(blind, network=zero), tmp_path / "start.toml")
    args = dataclasses.replace(TINY, start=str(tmp_path / "start.toml"), generations=8, every=4, spread=0.5)
    state = search.search(args, SCENARIO, tmp_path)
    run = {"customers": 20_000, "warmup": 100, "seed": 5}
    costs = [pull_env.simulate(SCENARIO, policy, **run).cost.mean for policy in (state.best, state.start)]
    assert costs[0] < 0.8 * costs[1]
    curve = lines(tmp_path / CURVE)
    validations = [row["validation"]["mean"] for row in curve if "validation" in row]
    assert search.validate(args, SCENARIO, state.best).cost.mean == min(validations) < validations[0]


def words(out):
    fields = {**dataclasses.asdict(TINY), "out": out}
    given = [(name, value) for name, value in fields.items() if value not in (None, ())]
    return [word for name, value in given for word in (f"--{name.replace('_', '-')}", value)]


def test_a_run_is_saved_and_repeated(call, tmp_path):
    for name, more in (("a", ()), ("b", ("--workers", 2)), ("c", ("--seed", 1))):
        status, printed, failed = call("search", *words(tmp_path / name), *more)
        assert status == 0, failed
        assert f"saved in {tmp_path / name}" in printed
    a, b, c = (load_policy(tmp_path / name / "policy.toml") for name in "abc")
    assert a == b
    assert c.network.training_seed == 1
    curve = lines(tmp_path / "a" / CURVE)
    assert [row["generation"] for row in curve] == [0, 1, 2, 3, 4]
    assert ["validation" in row for row in curve] == [True, False, True, False, True]
    configuration = json.loads((tmp_path / "a" / CONFIGURATION).read_text(encoding="utf-8"))
    assert configuration["generations"] == 4
    assert configuration["versions"]["cma"]
    assert configuration["start_policy"]["name"].startswith("rule: ")


def test_an_interruption_keeps_what_was_found(call, monkeypatch, tmp_path):
    measured, calls = search.candidate_costs, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return measured(*given)

    monkeypatch.setattr(search, "candidate_costs", interrupted)
    status, _, printed = call("search", *words(tmp_path / "a"))
    assert (status, printed) == (130, "interrupted\n")
    assert len(lines(tmp_path / "a" / CURVE)) == 3
    assert not json.loads((tmp_path / "a" / CONFIGURATION).read_text(encoding="utf-8"))["finished"]
    assert load_policy(tmp_path / "a" / "policy.toml").network.training_seed == 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--scenario", "two-speds"], "did you mean 'two-speeds'?"),
        (["--population", 1], "population is 1: it must be a whole number from 2"),
        (["--minutes", 0], "minutes is 0.0: it must be a positive finite number"),
        (["--generations", 0], "generations is 0: it must be a whole number from 1"),
        (["--hidden", 0], "hidden[0] is 0: it must be a whole number from 1"),
        (["--sees", "stars"], "sees is 'stars': it must be one of size share"),
        (["--hidden", 1], "one layer of 2 units or more"),
        (["--start", "nowhere.toml"], "policy file 'nowhere.toml' cannot be read"),
        (["--out", "."], "it exists already"),
    ],
)
def test_bad_arguments_are_one_sentence(call, given, sentence):
    status, _, refused = call("search", *given)
    assert status == 2
    assert sentence in refused
    assert len(refused.strip().splitlines()) == 1
