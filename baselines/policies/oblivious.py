"""Policies without information: no probes, no pull-messages."""

from __future__ import annotations

from baselines.policies.registry import policy
from pull_env.policy.policy import Cycle, Policy, Send


@policy(
    "random", rule="a server uniformly at random", messages="0", reference="Bernoulli splitting; folklore"
)
def random() -> Policy:
    """Declare uniform random routing; unstable once Lambda / n exceeds a rate."""
    return Policy("random", (Send(weights="uniform"),))


@policy(
    "weighted",
    rule="a server at random, with probability proportional to its rate",
    messages="0",
    reference="Chen and Ye 2012, c = 1",
)
def weighted() -> Policy:
    """Declare random routing by rate: independent M/M/1 queues of the system's load."""
    return Policy("weighted", (Send(weights="rate"),))


@policy(
    "round-robin", rule="all servers in turn, separately at each router", messages="0", reference="folklore"
)
def round_robin() -> Policy:
    """Declare cyclic routing.

    With one router and equal rates each server is an E_n/M/1 queue.
    """
    return Policy("round-robin", (Cycle(weights="uniform"),))


@policy(
    "weighted-round-robin",
    rule="servers in turn, in proportion to their rates",
    messages="0",
    reference="smooth weighted round robin of nginx, by pool",
)
def weighted_round_robin() -> Policy:
    """Declare cyclic routing with shares by rate, spread evenly in time."""
    return Policy("weighted-round-robin", (Cycle(weights="rate"),))
