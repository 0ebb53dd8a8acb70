"""Policies with full information: they see all servers for every customer."""

from __future__ import annotations

from baselines.policies.registry import policy
from pull_env.policy.policy import Inspect, Policy


@policy(
    "jsq",
    rule="the shortest queue of all",
    messages="2n",
    reference="W. Winston, J. Applied Probability 14 (1977)",
)
def jsq() -> Policy:
    """Declare join-the-shortest-queue, ties at random."""
    return Policy("jsq", (Inspect(rank="queue"),))


@policy(
    "jfsq",
    rule="the shortest queue of all, the fastest server on ties",
    messages="2n",
    reference="W. Weng, X. Zhou, R. Srikant, Proc. ACM SIGMETRICS (2020)",
)
def jfsq() -> Policy:
    """Declare join-the-fastest-of-the-shortest-queues."""
    return Policy("jfsq", (Inspect(rank="queue then speed"),))


@policy(
    "sed",
    rule="the shortest expected delay, (queue + 1) / rate, of all",
    messages="2n",
    reference="S. Banawan, N. Zeidat, Proc. Simulation Symposium (1992)",
)
def sed() -> Policy:
    """Declare shortest-expected-delay, ties at random."""
    return Policy("sed", (Inspect(rank="delay"),))


@policy(
    "lwl",
    rule="the least unfinished work of all, in time units",
    messages="2n",
    reference="D. Daley, Stochastic Processes and their Applications 25 (1987), 301-308",
)
def lwl() -> Policy:
    """Declare least-work-left, ties at random.

    It needs the calendar clock, which `simulate` then selects.
    """
    return Policy("lwl", (Inspect(rank="work"),))
