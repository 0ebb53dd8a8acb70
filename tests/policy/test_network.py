"""Networks as data: what is accepted, files of TOML and safetensors, and runs of them."""

import copy
import dataclasses
import json
import pickle

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
    load_policy,
    save_policy,
)
from pull_env.reporting.rows import row
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.policy_runner import PolicyRunner
from pull_env.theory.exact import solve
from pull_env.theory.prediction import predict
from tests.oracles.networks import follow, network

SMALL = load_scenario("small-mixed")


def layer(outputs, inputs):
    return np.ones((outputs, inputs)), np.zeros(outputs)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"layers": ()}, "layers is empty"),
        ({"layers": (1,)}, r"layers\[0\] is no pair"),
        ({"layers": (layer(2, 3), layer(4, 3))}, r"layers\[1\] takes 3 inputs: the layer before gives 2"),
        ({"layers": ((np.ones((2, 3)), np.ones(3)),)}, r"weights \(2, 3\) and biases \(3,\): they must be"),
        ({"layers": ((np.ones((0, 3)), np.ones(0)),)}, "sizes must be from 1 to 65536"),
        ({"layers": ((np.full((2, 3), np.nan), np.ones(2)),)}, "not finite"),
        ({"layers": (("a", "b"),)}, "not made of numbers"),
        ({"activation": "sigmoid"}, "activation is 'sigmoid': it must be one of tanh, relu"),
        ({"sampled": 1}, "sampled is 1: it must be true or false"),
        ({"training_seed": -1}, "training_seed is -1: it must be a whole number from 0"),
    ],
)
def test_what_cannot_be_is_refused(fields, sentence):
    with pytest.raises(PolicyError, match=sentence):
        Network(**{"layers": (layer(2, 3),), **fields})


def test_a_network_is_a_value():
    one, other = network(4, 3, 2), network(4, 3, 2)
    assert one == other
    assert hash(one) == hash(other)
    assert one.sizes == (4, 3, 2)
    assert one != dataclasses.replace(one, sampled=True)
    assert one != network(4, 3, 2, seed=1)
    assert one.digest == dataclasses.replace(one, sampled=True).digest  # the sha256 of the weights alone
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ValueError, match="read-only"):
        one.layers[0][0][0, 0] = 1


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


def test_files_that_are_refused(tmp_path):
    from safetensors.numpy import save_file

    path, weights = tmp_path / "mine.toml", tmp_path / "mine.safetensors"
    save_policy(follow(SMALL, 8), path)
    text, good = path.read_text(encoding="utf-8"), weights.read_bytes()

    def refused(sentence, old="", new=""):
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        with pytest.raises(PolicyError, match=sentence):
            load_policy(path)

    refused(
        "network.weights is '../mine.safetensors': it must be the name of a file beside", "mine.", "../mine."
    )
    refused("'other.safetensors': it cannot be read", "mine.", "other.")
    refused(r"network\.sampld is not a known key: did you mean 'sampled'\?", "sampled", "sampld")
    refused("network is 1: it must be a table", text, "network = 1\n")
    parts = {"0.weight": np.ones((18, 22), np.float32), "0.bias": np.zeros(18, np.float32)}
    for sentence, content in {
        r"network.sha256 is .*: the weights in 'mine.safetensors' have": parts,
        "it must hold 0.weight, 0.bias and so on, not a": {"a": np.ones(3)},
        "must hold": {},
        "0.bias is float64: it must be float32": {**parts, "0.bias": np.zeros(18)},
    }.items():
        save_file(content, weights)
        refused(sentence)
    for content in (b"", good[:-1], b"\xff" * 100, b"PK\x03\x04" + good):
        weights.write_bytes(content)
        refused("cannot be read as safetensors")


def test_preferences_are_those_of_numpy_in_double_precision():
    rng = np.random.default_rng(0)
    seen = rng.random((500, 20), np.float32)
    for activation, bend in (("tanh", np.tanh), ("relu", lambda x: np.maximum(x, 0))):
        made = network(20, 33, 64, 7, activation=activation, scale=1.0)
        values = seen.astype(float)
        for k, (weights, biases) in enumerate(made.layers):
            values = (bend(values) if k else values) @ weights.T.astype(float) + biases
        np.testing.assert_allclose(CompiledNetwork(made).preferences(seen), values, rtol=0, atol=5e-6)
    with pytest.raises(ValueError, match=r"shape \(500, 20\): it must be \(count, 4\)"):
        CompiledNetwork(network(4, 2)).preferences(seen)


def test_tanh_everywhere():
    x = np.concatenate([np.linspace(-12, 12, 400_001), [-1e30, 1e30, 1e-30, 0.0]]).astype(np.float32)
    through = Network(((np.ones((1, 1)), np.zeros(1)), (np.ones((1, 1)), np.zeros(1))))
    found = CompiledNetwork(through).preferences(x[:, None])[:, 0]
    assert np.abs(found - np.tanh(x.astype(float))).max() < 4e-7


def test_a_decider_can_be_copied():
    compiled, seen = CompiledNetwork(network(20, 8, 18)), np.random.default_rng(0).random((9, 20), np.float32)
    expected = compiled.preferences(seen)
    other = pickle.loads(pickle.dumps(compiled))
    del compiled
    assert (other.preferences(seen) == expected).all()


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


def test_samples_have_the_odds_of_their_preferences():
    """Three blind steps with the odds 1 : 2 : 5; shares of 400,000 customers within five standard deviations."""
    scenario = load_scenario("finite-buffers")
    odds = np.array([1.0, 2.0, 5.0])
    drawn = Network(((np.zeros((3, 31)), np.log(odds)),), sampled=True)
    policy = Policy("network", (Send(0), Send(1), Send(2)), network=drawn)
    runner, customers = PolicyRunner(scenario, policy), 400_000
    runner.reset(0)
    runner.run(customers)
    pools = runner.simulator.arrays.pools
    shares, expected = (pools["accepted"] + pools["blocked"]) / customers, odds / odds.sum()
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / customers)).all()


def test_rows_tell_the_network():
    policy = follow(SMALL, 8, training_seed=7)
    result = pull_env.simulate(SMALL, policy, 2000, warmup=10, replications=2)
    told = row(SMALL, policy, result, command="python")["policy"]
    assert told["network"] == {"sha256": policy.network.digest, "training_seed": 7}
    assert told["content"]["network"]["sizes"] == [22, 8, 18]
    assert json.loads(json.dumps(told)) == told
