"""Policies as data: bad values, files, and what does not fit together."""

import dataclasses
import json

import numpy as np
import pytest

import pull_env
from pull_env.envs.policy_driver import Driver
from pull_env.envs.router import RouterEnv
from pull_env.policy.policy import (
    Announce,
    Memory,
    Network,
    Policy,
    PolicyError,
    Probe,
    Send,
    Take,
    as_announce,
    as_memory,
    load_policy,
    save_policy,
)
from pull_env.scenario.scenario import load_scenario
from pull_env.theory.exact import solve
from pull_env.theory.prediction import predict
from tests.oracles.networks import follow

SMALL = load_scenario("small-mixed")


def test_a_policy_must_fit_its_network_and_the_scenario():
    with pytest.raises(PolicyError, match="network has 18 outputs: there must be one for each of 1 steps"):
        dataclasses.replace(follow(SMALL), steps=(Send(),))
    with pytest.raises(PolicyError, match="network is 'x': it must be a Network"):
        Policy("a", (Send(),), network="x")
    wide = load_scenario("many-pools")
    with pytest.raises(
        PolicyError, match="network takes 22 entries: on many-pools, of 5 pools, a router sees 49"
    ):
        pull_env.simulate(wide, follow(SMALL), 1000)
    with pytest.raises(PolicyError, match=r"steps\[0\].pool is 2: small-mixed has pools 0 to 1"):
        pull_env.simulate(SMALL, follow(SMALL, catalog=(Send(2), Send())), 1000)
    with pytest.raises(PolicyError, match=r"network is {.*: it must be a Network; load_policy reads"):
        Policy.from_dict(follow(SMALL).to_dict())


def test_theory_and_drivers_know_nothing_of_networks():
    assert predict(SMALL, follow(SMALL)) is None
    with pytest.raises(ValueError, match="follows a network"):
        solve(SMALL, follow(SMALL))
    with pytest.raises(PolicyError, match="follows a network"):
        Driver(follow(SMALL), RouterEnv(SMALL))


@pytest.mark.parametrize(
    "policy",
    [
        follow(SMALL, 8, sampled=True, masked=True, activation="relu", training_seed=3),
        dataclasses.replace(follow(SMALL, announce=None), memory=Memory(3, by_pool=False)),
        Policy("chain", (Probe(weights="rate", stop_at=None),), Announce(growth=1.5)),
    ],
    ids=lambda policy: policy.name,
)
def test_a_file_gives_the_policy_back(policy, tmp_path):
    path = tmp_path / "mine.toml"
    save_policy(policy, path)
    assert load_policy(path) == policy
    assert load_policy(path).digest == policy.digest
    assert (tmp_path / "mine.safetensors").exists() == (policy.network is not None)
    with pytest.raises(PolicyError, match="exists already"):
        save_policy(policy, path)


def test_a_rule_as_a_network_costs_what_the_rule_costs():
    """Biases alone are a rule: here the chain `probe at most 8 by rate until one is idle`, on the same streams."""
    scenario = load_scenario("two-speeds")
    probe = Probe(weights="rate", at_most=8, stop_at=0.0, rank="delay")
    linear = Network(((np.zeros((2, 22)), np.array([0.0, 1.0])),))
    learned = Policy("network", (Send(), probe), network=linear)
    run = {"customers": 40_000, "warmup": 2000, "seed": 4, "replications": 2}
    left = pull_env.simulate(scenario, learned, **run)
    right = pull_env.simulate(scenario, Policy("rule", (probe,)), **run)
    assert left == right
    assert pull_env.simulate(scenario, learned, workers=1, **run) == left


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Policy("", (Send(),)), "name is '': it must be a string that is not empty"),
        (lambda: Policy("a", ()), r"steps is \(\): it must be a list of at least one item"),
        (lambda: Policy("a", (3,)), r"steps\[0\] is 3: it must be a Take or Recall or .*"),
        (lambda: Policy("a", (Send(),), memory=3), "memory is 3: it must be a Memory"),
        (lambda: Policy("a", (Take(),), Announce()), r"steps\[-1\] is take: the last step must always be able to act: send, .*"),
        (lambda: Policy("a", (Take(), Send())), "announce is None: take needs servers that announce themselves"),
        (lambda: Announce(0), "announce.threshold is 0: it must be a whole number from 1 to 1073741824"),
        (lambda: Announce(growth=-1), "announce.growth is -1: it must be a finite number of 0 or more"),
        (lambda: Announce(recipient="few"), "announce.recipient is 'few': did you mean 'fewest'. It must be one of uniform, fewest"),
        (lambda: Announce(withdraw=1), "announce.withdraw is 1: it must be true or false"),
        (lambda: Announce(sample=2), "announce.sample is 2: it needs announce.recipient = 'fewest'"),
        (lambda: Memory(0), "memory.size is 0: it must be a whole number from 1 to 1073741824"),
        (lambda: as_announce(3), "announce is 3: it must be a table with the keys threshold, .*"),
        (lambda: as_memory({"sise": 3}), "memory.sise is not a known key: did you mean 'size'. It must be one of size, by_pool"),
        (lambda: Policy.from_dict({"polcy": 1}), "polcy is not a known key: it must be one of name, announce, .*"),
        (lambda: Policy.from_dict([]), "policy is .*: it must be a table with the keys name, .*"),
    ],
)  # fmt: skip
def test_what_is_refused(build, sentence):
    with pytest.raises(PolicyError, match=f"^{sentence}$"):
        build()


def test_a_policy_goes_through_json():
    policy = Policy("mine", (Take(0), Probe(at_most=3, stop_at=0.5)), Announce(2), Memory(4))
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert (
        Policy("mine", [Take(np.int64(0)), Probe(at_most=3, stop_at=0.5)], Announce(2), Memory(4)).digest
        == policy.digest
    )
