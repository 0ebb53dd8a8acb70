"""The space of candidates: they suit their scenario and pay for what they know."""

from __future__ import annotations

import optuna
import pytest

from baselines import make
from baselines.tune import search_space as space
from pull_env import Policy, Pool, Probe, Scenario, Send, Take, load_scenario, scenario_names
from pull_env.policy.policy import Announce, Cycle
from pull_env.simulation.kernel_data.step_records import encode


@pytest.mark.parametrize("name", scenario_names())
def test_candidates_suit_their_scenario_and_pay_for_what_they_know(name: str) -> None:
    scenario = load_scenario(name)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    policies = [space.candidate(study.ask(), scenario) for _ in range(400)]
    for policy in policies:
        assert Policy.from_dict(policy.to_dict()) == policy
        assert len(encode(policy.steps, scenario)) == len(policy.steps)
        assert policy.announce is None or policy.announce.recipient == "uniform" or policy.announce.sample
    assert len(set(policies)) > 200  # half of them search, which leaves little to choose
    kinds = {step.kind for policy in policies for step in policy.steps}
    assert kinds == {"take", "send", "cycle", "probe", "search"}


def test_a_search_begins_with_what_is_well_known() -> None:
    scenario = load_scenario("two-speeds")
    trials = [optuna.trial.FixedTrial(known) for known in space.well_known(scenario)]
    first, cyclic, turns, probing, more, two, until_idle, searching = [
        space.candidate(trial, scenario)  # type: ignore[arg-type]
        for trial in trials
    ]
    assert (first.steps, first.announce) == (make("pull-fastest").steps, Announce())
    assert (cyclic.steps, cyclic.announce) == ((Take(order="fastest"), Cycle("rate")), Announce())
    assert (turns.steps, turns.announce) == (make("weighted-round-robin").steps, None)
    assert probing.steps == (Take(order="fastest"), Probe(weights="rate", at_most=3, stop_at=0.0))
    assert more.steps == (Take(order="fastest"), *make("probe-until-idle").steps)
    assert (two.steps, two.announce) == ((Probe(weights="rate"),), None)
    assert until_idle.steps == make("probe-until-idle").steps
    assert (searching.steps, searching.announce) == (make("pandora").steps, make("pandora").announce)


def test_it_holds_few_pools_and_a_stop_in_time_units() -> None:
    scenario = Scenario((Pool(3, 0.5), Pool(3, 2.0), Pool(3, 1.0)), load=0.8)
    pulling = {**space.PULLING, "pools taken from": 2, "order": "oldest", "at most": 5, "target": "pool 2"}
    pulling |= {
        "stops": True,
        "stop at": 1.5,
        "remembers": "over all pools",
        "remembered": 7,
        "rank": "delay",
    }
    policy = space.candidate(optuna.trial.FixedTrial(pulling), scenario)  # type: ignore[arg-type]
    probe = Probe(2, at_most=5, stop_at=1.5 * (9 / 10.5), rank="delay", recall=True)
    assert policy.steps == (Take(1, "oldest"), Take(2, "oldest"), probe)
    assert (policy.memory.size, policy.memory.by_pool) == (7, False)
    sending = space.candidate(optuna.trial.FixedTrial({**pulling, "at most": 0}), scenario)  # type: ignore[arg-type]
    assert sending.steps[-1] == Send(2)
