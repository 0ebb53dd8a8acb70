"""Bounds that no policy can beat: all servers pooled into one.

With k customers it serves at the sum of the k highest rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pull_env.scenario.laws import Exponential
from pull_env.scenario.scenario import Scenario, ScenarioLike, Trace, as_scenario
from pull_env.theory.formulas import Floats


@dataclass(frozen=True)
class PoolingBounds:
    """Lower bounds on the measures of a scenario, over all policies.

    Attributes:
        wait: Mean wait of accepted customers.
        response: Their mean response; infinite in an unlimited system with a load of 1 or more.
        p_block: Share of all customers that are blocked.
        mean_number: Customers in the system.
    """

    wait: float
    response: float
    p_block: float
    mean_number: float


def pooling_bounds(scenario: ScenarioLike) -> PoolingBounds:
    """Return the bounds by pooling all servers into one; O(n).

    With Poisson arrivals and exponential service the number N in the system is stochastically at least the
    birth and death chain N' with birth rate Lambda and, at k, a death rate of the k highest service rates.
    Without limits every customer is accepted, so that E[response] >= E[N'] / Lambda and E[wait] >= E[(N' -
    n)^+] / Lambda. With limits a policy may block some customers in favour of others: only service at the
    highest rate bounds the response, and P(block) is at least the loss of N' cut at the sum of the buffers.
    How customers are split over routers does not matter, nor do message delays and failures.

    For other arrivals and service, or if some buffers are unlimited, no service is faster than at the highest
    rate, and P(block) >= 1 - capacity / Lambda. Nothing is claimed of a recorded trace, which brings its own
    requirements.
    """
    scenario = as_scenario(scenario)
    if isinstance(scenario.arrivals, Trace):
        return PoolingBounds(0.0, 0.0, 0.0, 0.0)
    faults, arrival = scenario.faults, scenario.total_arrival_rate
    boost = max(1.0, faults.factor) if faults is not None and faults.normal is not None else 1.0
    rates, load = _rates(scenario, boost), scenario.nominal_load / boost
    fastest = 1.0 / float(rates[0])
    pooled = scenario.arrivals is None and scenario.service in (None, Exponential())
    if not scenario.never_blocks:
        finite = pooled and all(pool.buffer is not None for pool in scenario.pools)
        p_block = _loss(scenario, rates, load) if finite else max(0.0, 1.0 - 1.0 / load)
        cut_short = faults is not None and faults.customers == "lost"
        return PoolingBounds(0.0, 0.0 if cut_short else fastest, p_block, 0.0)
    if load >= 1.0:
        return PoolingBounds(math.inf, math.inf, 0.0, math.inf)
    if not pooled:
        return PoolingBounds(0.0, fastest, 0.0, arrival * fastest)
    logs = _log_weights(arrival, rates)
    head, n = np.exp(logs[:-1] - logs.max()), scenario.servers
    at_n = math.exp(float(logs[-1] - logs.max()))  # from n on the distribution is geometric: at_n load^m
    total = float(head.sum()) + at_n / (1.0 - load)
    waiting = at_n * load / (1.0 - load) ** 2 / total
    number = (float(head @ np.arange(n)) + n * at_n / (1.0 - load)) / total + waiting
    return PoolingBounds(waiting / arrival, number / arrival, 0.0, number)


def _rates(scenario: Scenario, boost: float) -> Floats:
    """Return the highest rate that each server may have, (n,) in descending order."""
    pools = sorted(scenario.pools, key=lambda pool: -pool.rate)
    return np.repeat([pool.rate * boost for pool in pools], [pool.size for pool in pools])


def _log_weights(arrival: float, rates: Floats) -> Floats:
    """Return the logarithms of the chain's weights at 0 to n, the first being 0."""
    return np.concatenate([[0.0], np.cumsum(np.log(arrival / np.cumsum(rates)))])


def _loss(scenario: Scenario, rates: Floats, load: float) -> float:
    """Return P(block) of the chain cut at the sum of the buffers."""
    logs, log_load = _log_weights(scenario.total_arrival_rate, rates), math.log(load)
    beyond = sum(pool.size * (pool.buffer or 0) for pool in scenario.pools) - scenario.servers
    peak = float(logs[:-1].max())
    head = peak + math.log(float(np.exp(logs[:-1] - peak).sum()))
    # Relative to the weight of the full system, which may exceed any float.
    below = head - float(logs[-1]) - beyond * log_load
    return math.exp(-float(np.logaddexp(below, _log_geometric(-log_load, beyond))))


def _log_geometric(log_ratio: float, last: int) -> float:
    """Return the logarithm of the sum of ratio^m for m = 0 to `last`."""
    if log_ratio > 0.0:
        return last * log_ratio + _log_geometric(-log_ratio, last)
    if log_ratio == 0.0:
        return math.log(last + 1.0)
    return math.log(math.expm1((last + 1) * log_ratio) / math.expm1(log_ratio))
