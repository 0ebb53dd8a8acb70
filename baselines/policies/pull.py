"""Policies in which idle servers pull customers: PULL, JIQ, thresholds."""

from __future__ import annotations

from baselines.policies.registry import policy
from pull_env.policy.policy import Announce, Last, Policy, Send, Take

STOLYAR = "A. L. Stolyar, Queueing Systems 85 (2017), 31-65, arXiv:1512.07873"


@policy(
    "pull", rule="an idle server that pulled, else any server", messages="pull + remove", reference=STOLYAR
)
def pull() -> Policy:
    """Declare Stolyar's PULL.

    Its uniform fallback may overload slow servers with unlimited buffers.
    """
    return Policy("pull", (Take(), Send(weights="uniform")), Announce())


@policy(
    "pull-weighted",
    rule="as pull, with a fallback by rate",
    messages="pull + remove",
    reference=f"{STOLYAR}; fallback of weighted",
)
def pull_weighted() -> Policy:
    """Declare PULL with a fallback by rate, which is stable at every load below 1."""
    return Policy("pull-weighted", (Take(), Send(weights="rate")), Announce())


@policy(
    "pull-fastest",
    rule="the fastest idle server that pulled, else a server by rate",
    messages="pull + remove",
    reference=f"{STOLYAR}; fast-first order",
)
def pull_fastest() -> Policy:
    """Declare PULL that takes the message of the fastest server it holds."""
    return Policy("pull-fastest", (Take(order="fastest"), Send(weights="rate")), Announce())


@policy(
    "pull-min",
    rule="as pull, but an idle server notifies the router with fewest messages (of d sampled)",
    messages="pull + remove (+ 2d probes per pull)",
    reference="Y. Lu et al., Performance Evaluation 68 (2011), 1056-1071: JIQ-SQ(d)",
)
def pull_min(d: int | None = None) -> Policy:
    """Declare PULL whose idle servers notify the router with fewest messages.

    The fewest of `d` sampled routers; or of all routers, at no cost.
    """
    return Policy("pull-min", (Take(), Send(weights="uniform")), Announce(recipient="fewest", sample=d))


@policy(
    "jiq",
    rule="the server of the oldest pull-message, even if it is out of date, else any server",
    messages="pull",
    reference="Y. Lu et al., Performance Evaluation 68 (2011), 1056-1071: JIQ-Random",
)
def jiq() -> Policy:
    """Declare join-idle-queue: ids are taken in FIFO order, never withdrawn."""
    return Policy("jiq", (Take(order="oldest"), Send(weights="uniform")), Announce(withdraw=False))


@policy(
    "jbt",
    rule="a server that announced itself with fewer than r customers, else any server",
    messages="pull (at most 1) + remove",
    reference="X. Zhou, J. Tan, N. Shroff, Proc. ACM Meas. Anal. Comput. Syst. 2 (2018), arXiv:1808.06911",
)
def jbt(r: int) -> Policy:
    """Declare join-below-threshold; r = 1 is PULL."""
    return Policy("jbt", (Take(), Send(weights="uniform")), Announce(threshold=r))


@policy(
    "jbt-log",
    rule="as jbt, with r = ceil(K log(1 / (1 - load))), at most the smallest buffer",
    messages="pull (at most 1) + remove",
    reference="X. Zhou, J. Tan, N. Shroff, Proc. ACM Meas. Anal. Comput. Syst. 2 (2018), arXiv:1808.06911",
)
def jbt_log(K: int = 1) -> Policy:
    """Declare join-below-threshold with the heavy-traffic optimal threshold."""
    return Policy("jbt-log", (Take(), Send(weights="uniform")), Announce(growth=float(K)))


@policy(
    "persistent-idle",
    rule="an idle server that pulled, else the last one that did, even if busy",
    messages="pull + remove",
    reference="R. Atar, I. Keslassy, G. Mendelson, A. Orda, S. Vargaftik, Stochastic Systems 10 (2020)",
)
def persistent_idle() -> Policy:
    """Declare persistent-idle: reuse the last server known to have been idle.

    Without `Take` all routers would end up at one server, the only one that still announces itself.
    """
    return Policy("persistent-idle", (Take(), Last(), Send(weights="uniform")), Announce())
