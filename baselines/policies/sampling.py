"""Policies that probe a few servers for their queue lengths."""

from __future__ import annotations

from baselines.policies.registry import policy
from pull_env.policy.policy import Announce, Memory, Policy, Probe, Search, Take


@policy(
    "power-of-d",
    rule="the shortest queue of d servers at random",
    messages="2d",
    reference="M. Mitzenmacher (2001); G. Brightwell, M. Luczak (2012), arXiv:1201.5523",
)
def power_of_d(d: int = 2) -> Policy:
    """Declare the supermarket model, without replacement; d = n is jsq."""
    return Policy("power-of-d", (Probe(weights="uniform", at_most=d),))


@policy(
    "balanced",
    rule="the shortest queue of c servers drawn by rate, with replacement",
    messages="2c",
    reference="H. Chen, H.-Q. Ye, Operations Research 60 (2012), 163-179",
)
def balanced(c: int = 2) -> Policy:
    """Declare balanced routing; c = 1 is weighted."""
    return Policy("balanced", (Probe(weights="rate", at_most=c, replace=True),))


@policy(
    "sed-d",
    rule="the shortest expected delay of d servers drawn by rate, with replacement",
    messages="2d",
    reference="balanced, with the comparison of sed",
)
def sed_d(d: int = 2) -> Policy:
    """Declare balanced routing that compares (queue + 1) / rate."""
    return Policy("sed-d", (Probe(weights="rate", at_most=d, rank="delay", replace=True),))


@policy(
    "probe-until-idle",
    rule="the shortest queue of servers probed one at a time, drawn by rate: at most d, until one is idle",
    messages="2 per probe",
    reference="M. L. Weitzman, Econometrica 47 (1979), 641-654: search with a reservation value",
)
def probe_until_idle(d: int = 8) -> Policy:
    """Declare sequential probing that stops at the first idle server."""
    return probe_until(0.0, d)


@policy(
    "probe-until",
    rule="as probe-until-idle, but until the expected wait at one is at most theta",
    messages="2 per probe",
    reference="M. L. Weitzman, Econometrica 47 (1979), 641-654; theta is his reservation value",
)
def probe_until(theta: float = 1.0, d: int = 8) -> Policy:
    """Declare probing until the expected wait at a server is at most `theta`.

    The expected wait is queue / rate, in time units; theta = 0 is probe-until-idle.
    """
    return Policy("probe-until", (Probe(weights="rate", at_most=d, stop_at=theta),))


@policy(
    "pandora",
    rule="the fastest idle server that pulled, else probe while an answer is worth its price",
    messages="pull + remove + 2 per probe",
    reference="M. L. Weitzman, Econometrica 47 (1979), 641-654; distribution of waits from recent answers",
)
def pandora() -> Policy:
    """Declare optimal search at the scenario's prices, with nothing to tune.

    A pull-message is a box that is already open.

    What is held in a message is a wait of 0, which no search can beat, so it comes first.
    """
    return Policy("pandora", (Take(order="fastest"), Search()), Announce())


@policy(
    "power-of-d-memory",
    rule="the shortest queue of d servers at random and the d probed for this router's last customer",
    messages="2d",
    reference="M. Mitzenmacher, B. Prabhakar, D. Shah, Proc. IEEE FOCS (2002)",
)
def power_of_d_memory(d: int = 2) -> Policy:
    """Declare power-of-d that keeps the answers to its last customer's probes."""
    return Policy("power-of-d-memory", (Probe(at_most=d, recall=True),), memory=Memory(d, by_pool=False))


@policy(
    "lsq",
    rule="the shortest queue of the M servers that a router remembers, after it probes d at random",
    messages="2d",
    reference="S. Vargaftik, I. Keslassy, A. Orda, IEEE/ACM Trans. Networking 28 (2020), arXiv:2003.02368",
)
def lsq(d: int = 2, M: int = 16) -> Policy:
    """Declare local-shortest-queue: d samples per customer refresh M estimates.

    Choosing costs O(M).

    With M = n or more a router has an estimate of every server, as in the paper.
    """
    return Policy("lsq", (Probe(at_most=d, recall=True),), memory=Memory(M, by_pool=False))
