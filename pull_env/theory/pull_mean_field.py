"""Mean field of PULL in large systems, with many routers.

Only the shares beta_j = N_j / n of pools matter. The load is rho, and lambda, rho times the mean rate, the
arrival rate per server. p_j(k) is the share of servers of pool j with k customers; its tail s_j(k) is the
share with k or more.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pull_env.scenario.scenario import Pool
from pull_env.scenario.validation import check_argument
from pull_env.theory.formulas import LONG, Floats, root

NEGLIGIBLE = 1e-13  # share of servers at which the tail of an unlimited queue ends
SCAN = 200  # points among which the sign of an equation changes


@dataclass(frozen=True)
class Limit:
    """A stationary state of a large system.

    Attributes:
        tails: s_j(k) for k = 0, 1, ... to the buffer, or until negligible; by pool.
        response: Mean response of accepted customers.
        p_wait: Share of accepted customers that find their server busy.
        p_block: Share of all customers that are blocked.
    """

    tails: tuple[Floats, ...]
    response: float
    p_wait: float
    p_block: float

    @property
    def busy(self) -> tuple[float, ...]:
        """Share of busy servers, by pool."""
        return tuple(float(tail[1]) for tail in self.tails)


@dataclass(frozen=True)
class PullLimit(Limit):
    """PULL in a large system.

    Messages are per arriving customer; every message sent is used or withdrawn: pull = (1 - q0) + remove. A
    router that holds messages takes one; one without may hit an idle server, whose message another of the
    many routers then loses. These are the accepted customers that do not wait.

    Attributes:
        q0: P(the router of a customer holds no message).
        idle_period: Mean idle period of a server, the same in all pools.
        pull: Pull-messages, (1 - p_wait) (1 - p_block).
        remove: Remove-messages, q0 P(a server is idle).
    """

    q0: float
    idle_period: float
    pull: float
    remove: float


def pull_many_routers(pools: Sequence[Pool], load: float, servers_per_router: float) -> PullLimit:
    """Return the limit of PULL, with uniform fallback, as n and R grow at r = n / R.

    The model is that of Stolyar 2017, the limit that of Van Houdt 2024. A router holds i messages with
    probability q_i = q_0 prod_{k<=i} b / (r lambda + k eta), eta = lambda q_0: it receives b = r sum_j beta_j
    / (I + G_j) per time unit, and each is withdrawn at rate eta. The mean busy period G_j is 1 / (mu_j -
    eta), or sum_{k<B_j} eta^k / mu_j^(k+1). The q_i sum to 1, and i q_i to r sum_j beta_j I / (I + G_j).

    Args:
        pools: Of any shares, rates and buffers.
        load: rho, above 0; below 1 if a pool has no limit.
        servers_per_router: r, above 0.

    Raises:
        ValueError: If an argument is out of range, or a slow unlimited pool saturates, lambda q_0 >= mu_j.
    """
    share, rate = shares_and_rates(pools)
    check_argument.positive("load", load)
    check_argument.positive("servers_per_router", servers_per_router)
    if any(pool.buffer is None for pool in pools):
        check_argument.number("load", load, above=0.0, below=1.0)
    r, arrival = servers_per_router, load * float(share @ rate)
    slowest = min((pool.rate for pool in pools if pool.buffer is None), default=math.inf)

    def surplus(q0: float) -> float:
        """Return messages sent above those lost, relative to those lost."""
        deficit = _deficit(q0, r)
        if deficit is None:
            return -1.0
        idle = (1.0 - deficit / q0) / (arrival * (1.0 - deficit))
        idle_starts = float(np.sum(share / (idle + _busy_periods(pools, arrival * q0))))
        return idle_starts / (arrival * (1.0 - deficit)) - 1.0

    # The q_i decrease and their mean is at most r, so q0 is at least 1 / (2 r + 1). The least root is
    # the one that is reached from an empty system.
    most = min(1.0, slowest / arrival) * (1.0 - 1e-9)
    scan = np.geomspace(min(1.0 / (2.0 * r + 1.0), most / 2.0), most, SCAN)
    high = next((k for k in range(1, SCAN) if surplus(float(scan[k])) > 0.0), None)
    if high is None:
        raise ValueError(f"pools are {tuple(pools)}: at load {load!r} the one of rate {slowest!r} saturates")
    q0 = root(surplus, float(scan[high - 1]), float(scan[high]))
    deficit = _deficit(q0, r)
    assert deficit is not None
    return _pull_limit(pools, arrival, q0, (1.0 - deficit / q0) / (arrival * (1.0 - deficit)))


def pull_equal_servers(load: float, servers_per_router: float, rate: float = 1.0) -> PullLimit:
    """Return `pull_many_routers` for equal unlimited servers, by one equation.

    At rate 1, b = r lambda (1 - lambda q_0), E[T] = 1 / (1 - lambda q_0), and P(wait) = lambda q_0 (Van Houdt
    2024).

    Raises:
        ValueError: If load is not below 1, or an argument is not positive.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.positive("servers_per_router", servers_per_router)
    check_argument.positive("rate", rate)
    r = servers_per_router
    q0 = root(lambda q0: math.log(q0) + _log_sum(load * q0, r / q0), 0.5 / (2.0 * r + 1.0), 1.0)
    idle = (1.0 / load - 1.0) / (rate * (1.0 - load * q0))  # the share of idle servers is 1 - load
    return _pull_limit([Pool(1, rate)], load * rate, q0, idle)


def _deficit(q0: float, r: float) -> float | None:
    """Return v at which the q_i sum to 1 with b = r lambda (1 - v); None without any.

    Then b would exceed r lambda, which it never does in the limit, as some customers find no message and a
    busy server. Messages last while servers are idle: b = r lambda (1 - q0) + eta E[i] and I = E[i] / b, so
    that I = (1 - v / q0) / (lambda (1 - v)).
    """
    if _log_sum(0.0, r / q0) + math.log(q0) < 0.0:
        return None
    return root(lambda v: _log_sum(v, r / q0) + math.log(q0), 0.0, q0)


def _log_sum(v: float, c: float) -> float:
    """Return log sum_i prod_{k<=i} (1 - v) / (1 + k / c), at any size of c.

    It is the integral over s from 0 to c of exp((1 - v) s) (1 - s / c)^(c - 1), which is smooth for large c.
    """
    if c < 50.0:
        return math.log1p(float(np.cumprod((1.0 - v) / (1.0 + np.arange(1, 400) / c)).sum()))
    nodes, weights = _gauss()
    end = min(c, 10.0 * math.sqrt(c), 45.0 / max(v, 1e-300))  # beyond, the integrand is below e^-45
    t = nodes * end / c
    small = -(t**2) * sum(t ** (k - 2) / k for k in range(2, 11))  # of t + log(1 - t), without cancellation
    bend = np.where(t < 1e-2, small, t + np.log1p(-t))
    return math.log(end * float(weights @ np.exp(c * (bend - v * t) - np.log1p(-t))))


@cache
def _gauss() -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(128)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _busy_periods(pools: Sequence[Pool], eta: float) -> Floats:
    """Return the mean busy periods under arrivals at rate eta, (J,)."""
    unlimited = [1.0 / (pool.rate - eta) if pool.buffer is None else 0.0 for pool in pools]
    return np.array(
        [g or _series(p.buffer or 1, eta / p.rate) / p.rate for g, p in zip(unlimited, pools, strict=True)]
    )


def _series(terms: int, ratio: float) -> float:
    """Return the sum of ratio^k for k < terms."""
    if ratio == 1.0:
        return float(terms)
    if terms * math.log(ratio) > 700.0:
        return math.inf
    return math.expm1(terms * math.log(ratio)) / (ratio - 1.0)


def _pull_limit(pools: Sequence[Pool], arrival: float, q0: float, idle: float) -> PullLimit:
    """Return what follows from q0 and I.

    p_j(k) = (eta / mu_j)^(k-1) / (mu_j (I + G_j)) for k from 1 to B_j.
    """
    share, _ = shares_and_rates(pools)
    eta = arrival * q0
    busy = 1.0 / (1.0 + idle / _busy_periods(pools, eta))
    tails = []
    for pool, busy_share in zip(pools, busy, strict=True):
        log_ratio = math.log(eta / pool.rate)
        top = pool.buffer or sys.maxsize
        if log_ratio < 0.0:
            top = min(top, 2 + math.ceil(math.log(NEGLIGIBLE) / log_ratio))
        if top > LONG:
            raise ValueError(f"pools are {tuple(pools)}: that of rate {pool.rate!r} has queues beyond {LONG}")
        powers = np.arange(top) * log_ratio
        distribution = np.exp(powers - powers.max())
        tails.append(
            np.concatenate([[1.0], np.cumsum(distribution[::-1])[::-1] * (busy_share / distribution.sum())])
        )
    full = sum(float(b * tail[-1]) for pool, b, tail in zip(pools, share, tails, strict=True) if pool.buffer)
    any_busy = float(share @ busy)
    p_block = q0 * full
    p_wait = q0 * (any_busy - full) / (1.0 - p_block)
    number = sum(float(b * tail[1:].sum()) for b, tail in zip(share, tails, strict=True))
    response = number / (arrival * (1.0 - p_block))
    pull, remove = (1.0 - p_wait) * (1.0 - p_block), q0 * (1.0 - any_busy)
    return PullLimit(tuple(tails), response, p_wait, p_block, q0, idle, pull, remove)


def shares_and_rates(pools: Sequence[Pool]) -> tuple[Floats, Floats]:
    """Return beta and mu, (J,) each."""
    if not pools:
        raise check_argument.refusal("pools", pools, "a list of at least one pool")
    sizes = np.array([pool.size for pool in pools], np.float64)
    return sizes / sizes.sum(), np.array([pool.rate for pool in pools], np.float64)
