"""Initial networks: rules and chains as networks, and what of a network is searched."""

import dataclasses

import numpy as np
import pytest

from agents.search.initial_networks import SearchSpace, chain_network, rule_networks, with_takes_by_pool
from pull_env.policy.catalog import default_catalog, with_fallback
from pull_env.policy.policy import Announce, Memory, Policy, Probe, Recall, Search, Send, Take
from pull_env.scenario.scenario import Pool, Scenario, load_scenario
from pull_env.simulation.kernel_data.view import local_size
from pull_env.simulation.policy_runner import PolicyRunner
from tests.oracles.networks import follow

SCENARIO = load_scenario("small-mixed")
THREE = Scenario((Pool(3, 0.5), Pool(2, 2.0, 3), Pool(2, 1.0)), routers=3, load=0.85)


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
