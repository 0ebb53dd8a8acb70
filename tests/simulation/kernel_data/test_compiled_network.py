"""Compiled networks: preferences as numpy computes them, copies, and sampled steps."""

import pickle

import numpy as np
import pytest

from pull_env.policy.policy import Network, Policy, Send
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.policy_runner import PolicyRunner
from tests.oracles.networks import network


def test_preferences_are_those_of_numpy_in_double_precision():
    rng = np.random.default_rng(0)
    observations = rng.random((500, 20), np.float32)
    for activation, bend in (("tanh", np.tanh), ("relu", lambda x: np.maximum(x, 0))):
        made = network(20, 33, 64, 7, activation=activation, scale=1.0)
        values = observations.astype(float)
        for k, (weights, biases) in enumerate(made.layers):
            values = (bend(values) if k else values) @ weights.T.astype(float) + biases
        np.testing.assert_allclose(CompiledNetwork(made).preferences(observations), values, rtol=0, atol=5e-6)
    with pytest.raises(ValueError, match=r"shape \(500, 20\): it must be \(count, 4\)"):
        CompiledNetwork(network(4, 2)).preferences(observations)


def test_tanh_everywhere():
    x = np.concatenate([np.linspace(-12, 12, 400_001), [-1e30, 1e30, 1e-30, 0.0]]).astype(np.float32)
    through = Network(((np.ones((1, 1)), np.zeros(1)), (np.ones((1, 1)), np.zeros(1))))
    outputs = CompiledNetwork(through).preferences(x[:, None])[:, 0]
    assert np.abs(outputs - np.tanh(x.astype(float))).max() < 4e-7


def test_a_compiled_network_can_be_copied():
    compiled, observations = (
        CompiledNetwork(network(20, 8, 18)),
        np.random.default_rng(0).random((9, 20), np.float32),
    )
    expected = compiled.preferences(observations)
    other = pickle.loads(pickle.dumps(compiled))
    del compiled
    assert (other.preferences(observations) == expected).all()


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
