"""PULL and join-below-threshold in large systems with few routers.

Symbols as in `pull_mean_field`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pull_env.scenario.scenario import Pool
from pull_env.scenario.validation import check_argument
from pull_env.theory.formulas import Floats, root
from pull_env.theory.pull_mean_field import PullLimit, shares_and_rates


def pull_fluid(pools: Sequence[Pool], load: float, threshold: int = 1) -> PullLimit:
    """Return the limit of PULL as n grows at fixed R: no wait, no blocking.

    Every available server gets customers at rate 1 / I, so that x_j = beta_j / (1 + mu_j I) are busy, sum_j
    mu_j x_j = lambda, and E[T] = sum_j x_j / lambda (Stolyar 2017). With one router and threshold r, a server
    with fewer than r is available (Zhou, Tan and Shroff 2018), and pool j is M/M/1/r of arrival rate 1 / I.

    Args:
        pools: Of any shares and rates; buffers of at least the threshold.
        load: rho, below 1.
        threshold: r.

    Raises:
        ValueError: If an argument is out of range.
    """
    share, rate = shares_and_rates(pools)
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.whole("threshold", threshold, 1)
    if any(pool.buffer is not None and pool.buffer < threshold for pool in pools):
        raise check_argument.refusal("threshold", threshold, "at most the smallest buffer")
    arrival, powers = load * float(share @ rate), np.arange(threshold + 1)

    def distributions(idle: float) -> Floats:
        exponents = -powers * np.log(rate * idle)[:, None]
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def excess(log_idle: float) -> float:
        return float(share * rate @ (1.0 - distributions(math.exp(log_idle))[:, 0])) / arrival - 1.0

    # Above the upper end of idle periods too few are busy even of the slowest; below the lower too many.
    low = math.log(1.0 - load) / threshold - math.log(rate.max()) - 1.0
    high = math.log(threshold / load) - math.log(rate.min()) + 1.0
    idle = math.exp(root(excess, low, high))
    distribution = distributions(idle)
    tails = np.cumsum(distribution[:, ::-1], axis=1)[:, ::-1]
    p_wait = float(share @ tails[:, 1] - share @ distribution[:, -1]) / float(
        share @ (1.0 - distribution[:, -1])
    )
    response = float(share @ tails[:, 1:].sum(axis=1)) / arrival
    return PullLimit(tuple(tails), response, p_wait, 0.0, 0.0, idle, 1.0 - p_wait, 0.0)


def fast_first_response(pools: Sequence[Pool], load: float) -> float:
    """Return the least mean response without waiting: the fastest are busy.

    It is sum_j x_j / lambda for the x_j <= beta_j of least sum with sum_j mu_j x_j = lambda (Stolyar 2017).

    Raises:
        ValueError: If load is not below 1.
    """
    share, rate = shares_and_rates(pools)
    check_argument.number("load", load, above=0.0, below=1.0)
    order = np.argsort(-rate, kind="stable")
    arrival, served, busy = load * float(share @ rate), 0.0, 0.0
    for j in order:
        used = min(float(share[j]), max(arrival - served, 0.0) / float(rate[j]))
        served, busy = served + used * float(rate[j]), busy + used
    return busy / arrival


def jbt_distribution(load: float, threshold: int) -> Floats:
    """Return the queue distribution under join-below-threshold as n grows.

    With one router it is M/M/1/r with p_0 = 1 - lambda: available servers get customers at a rate that keeps
    the busy share at the load, and no queue exceeds r, as there is always an available server (Zhou, Tan and
    Shroff 2018). A larger r is worse here.

    Args:
        load: lambda at rate 1, below 1.
        threshold: r; 1 is PULL.

    Returns:
        (r + 1,) probabilities of 0 to r.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.whole("threshold", threshold, 1)
    powers = np.arange(threshold + 1)
    # The sum of x^k over 0..r is 1 / (1 - lambda): x is just above lambda for large r, x^r at most that sum.
    low, high = load * (1.0 - 1e-9), (1.0 - load) ** (-1.0 / threshold)
    ratio = root(lambda x: float(np.sum(x**powers)) * (1.0 - load) - 1.0, low, high * (1.0 + 1e-9))
    weights = ratio**powers
    return np.asarray(weights / weights.sum(), np.float64)


def jbt_response(load: float, threshold: int, rate: float = 1.0) -> float:
    """Return the mean response: that of `jbt_distribution`, over rho mu; same errors."""
    check_argument.positive("rate", rate)
    distribution = jbt_distribution(load, threshold)
    return float(distribution @ np.arange(distribution.size)) / (load * rate)
