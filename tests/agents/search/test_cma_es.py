"""The search: where it begins, what it may change, and that a run is repeated and keeps the best."""

import dataclasses
import json

import numpy as np
import pytest

import pull_env
from agents.search import cma_es as search
from agents.search.cma_es import Args
from agents.search.initial_networks import SearchSpace, chain_network, rule_networks, with_takes_by_pool
from agents.search.objective import candidate_costs
from pull_env.policy.catalog import default_catalog, with_fallback
from pull_env.policy.policy import (
    Announce,
    Memory,
    Policy,
    Probe,
    Recall,
    Search,
    Send,
    Take,
    load_policy,
    save_policy,
)
from pull_env.reporting.run_folder import CONFIGURATION, CURVE
from pull_env.scenario.scenario import Pool, Scenario, load_scenario
from pull_env.simulation.kernel_data.view import local_size
from pull_env.simulation.policy_runner import PolicyRunner
from tests.oracles.networks import follow

SCENARIO = load_scenario("small-mixed")
THREE = Scenario((Pool(3, 0.5), Pool(2, 2.0, 3), Pool(2, 1.0)), routers=3, load=0.85)
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


@pytest.mark.parametrize("hidden", [(), (3,), (9,)])
def test_the_rules_are_chains_as_networks(hidden):
    """Each rule runs to the bit as the chain that it is said to be."""
    catalog = default_catalog(THREE)
    takes = (Take(1), Take(2), Take(0))  # the fastest first
    chains = [(*takes, *with_fallback(step)) for step in catalog if not isinstance(step, Take)]
    chains += [with_fallback(step) for step in catalog]
    for rule, steps in zip(rule_networks(THREE, hidden, 0), chains, strict=True):
        assert rule.network.sizes == (local_size(THREE), *hidden, len(catalog))
        players = [PolicyRunner(THREE, rule), PolicyRunner(THREE, Policy("chain", steps, Announce()))]
        for player in players:
            player.reset(3)
            player.run(400)
        left, right = (player.simulator.arrays for player in players)
        assert left.streams.tolist() == right.streams.tolist()
        assert left.servers.tolist() == right.servers.tolist()
        assert left.head["probes"] == right.head["probes"]


@pytest.mark.parametrize("hidden", [(2,), (8, 8)])
def test_layers_that_hold_no_rule_are_refused(hidden):
    with pytest.raises(ValueError, match="one layer of 3 units or more"):
        next(rule_networks(THREE, hidden, 0))


CHAINS = [
    Policy("a", (Take(order="fastest"), Probe(pool=1, at_most=3, stop_at=1.0, recall=True)), Announce(2)),
    Policy("b", (Take(2, "oldest"), Recall(0), Send(weights="rate")), Announce(withdraw=False), Memory(3)),
    Policy("c", (Probe(weights="rate", at_most=2, replace=True),)),
    Policy("d", (Take(order="fastest"), Search(at_most=4)), Announce(), Memory(16)),
]


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("policy", CHAINS, ids=lambda policy: policy.name)
def test_a_chain_as_a_network_does_what_the_chain_does(policy, hidden):
    network = chain_network(policy, THREE, hidden, 0)
    assert len(network.steps) > len(policy.steps) + 4
    players = [
        PolicyRunner(THREE, network),
        PolicyRunner(THREE, dataclasses.replace(policy, steps=with_takes_by_pool(policy.steps, THREE))),
    ]
    for player in players:
        player.reset(3)
        player.run(400)
    left, right = (player.simulator.arrays for player in players)
    assert left.streams.tolist() == right.streams.tolist()
    assert left.servers["queue"].tolist() == right.servers["queue"].tolist()


def test_what_is_searched():
    start = follow(SCENARIO, 5)
    space = SearchSpace(start, SCENARIO)
    assert space.size == 5 * (22 - 2 * 3 - 2) + 5 + 18 * 5 + 18
    assert space.policy(np.zeros(space.size)) == start
    assert SearchSpace(start, SCENARIO, ("found no message", "messages held")).size == 5 * 3 + 5 + 18 * 5 + 18
    moved = space.policy(np.ones(space.size))
    change = moved.network.layers[0][0] - start.network.layers[0][0]
    np.testing.assert_allclose(change[:, [0, 1, 2, 9, 10, 11, 20, 21]], 0)
    kept = [k for k in range(22) if k not in (0, 1, 2, 9, 10, 11, 20, 21)]
    np.testing.assert_allclose(change[:, kept], 1, atol=1e-6)


@pytest.mark.parametrize("name", ["small-mixed", "bursty"])
def test_the_cost_of_a_candidate_is_that_of_simulate(name):
    scenario, policy = load_scenario(name), follow(load_scenario(name), 4)
    args = dataclasses.replace(TINY, customers=2 * 32 * 50)
    run = {"customers": args.customers, "warmup": args.warmup, "replications": args.replications, "seed": 7}
    expected = pull_env.simulate(scenario, policy, **run).cost.mean
    assert candidate_costs(args, scenario, [policy], 7) == [pytest.approx(expected, rel=1e-12)]


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
