"""Records of a scenario as the kernels read them, and chains of free cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels import random as stream
from pull_env.kernels import state
from pull_env.kernels import statistics as tally
from pull_env.policy.policy import Announce, Memory
from pull_env.scenario.faults import Faults, News
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.linked_record import Array
from pull_env.simulation.kernel_data.state_arrays import whole_lanes

FATES = {"wait": state.CUSTOMERS_WAIT, "lost": state.CUSTOMERS_LOST, "restart": state.CUSTOMERS_RESTART}


def head_record(scenario: Scenario, announce: Announce | None, memory: Memory, flags: int) -> Array:
    """Return the constants and sizes of a run, (1,) HEAD."""
    head, calendar = np.zeros(1, state.HEAD), bool(flags & state.CALENDAR)
    n, J = scenario.servers, len(scenario.pools)
    total = scenario.total_arrival_rate + scenario.capacity
    head["n"], head["J"], head["R"], head["flags"] = n, J, scenario.routers, flags
    head["G"], remembered = (J, memory.size) if memory.by_pool else (1, min(memory.size, n))
    head["M"] = whole_lanes(remembered)
    head["Q"] = tally.BINS if calendar else state.LEVELS
    head["time_step"] = 1.0 if calendar else 1.0 / total
    head["arrival_threshold"] = round(scenario.total_arrival_rate / total * 2**32)
    if announce is not None:
        head["threshold"] = announce.threshold
        head["recipient_sample"] = min(announce.sample or 0, scenario.routers)
    if flags & state.FAULTS:
        news, faults = scenario.news or News(), scenario.faults or Faults()
        head["delay"], head["random_delay"] = news.delay, news.delay > 0 and news.law == "exponential"
        head["loss"], head["timeout"] = round(news.loss * 2**32), news.answer_timeout
        head["repeat"], head["restart"] = news.repeat or np.inf, faults.restart or np.inf
        head["failure_fate"], head["drain_count"] = FATES[faults.customers], len(drain_records(scenario))
    return head


def pool_records(scenario: Scenario, head: Array) -> Array:
    """Return the pools at the start, (J,) POOL, given the `head`."""
    pools = np.zeros(len(scenario.pools), state.POOL)
    pools["size"] = [pool.size for pool in scenario.pools]
    pools["rate"] = [pool.rate for pool in scenario.pools]
    pools["buffer"] = [state.UNLIMITED if pool.buffer is None else pool.buffer for pool in scenario.pools]
    pools["start"] = np.cumsum(pools["size"]) - pools["size"]
    pools["service_time"] = 1.0 / pools["rate"]
    share, first = (
        np.cumsum(pools["size"] * pools["rate"]) / scenario.capacity,
        float(head["arrival_threshold"][0]),
    )
    pools["cumulative_threshold"] = np.rint(first + share * (2**32 - first)).astype(np.uint64)
    return pools


def router_records(scenario: Scenario, time_step: float) -> Array:
    """Return the routers at the start, (R,) ROUTER, given the head's `time_step`."""
    routers, shares = np.zeros(scenario.routers, state.ROUTER), np.array(scenario.router_shares)
    routers["alias_threshold"], routers["alias"] = stream.alias_columns(shares)
    with np.errstate(divide="ignore"):  # a share of 0: no arrival is ever expected
        routers["recent_gap"] = 1 / (shares * scenario.total_arrival_rate * time_step)
    routers["last_announced"] = -1
    return routers


def condition_records(scenario: Scenario) -> Array:
    """Return how the servers of every pool fail and slow down, (J,) CONDITION."""
    faults, conditions = scenario.faults or Faults(), np.zeros(len(scenario.pools), state.CONDITION)
    conditions["open"], conditions["factor"] = 1, faults.factor
    for name in ("up", "down", "normal", "slow"):
        conditions[name] = getattr(faults, name) or np.inf
    if faults.pools is not None:  # the other pools never fail nor slow down
        others = [j for j in range(len(scenario.pools)) if j not in faults.pools]
        conditions["up"][others] = conditions["normal"][others] = np.inf
    return conditions


def drain_records(scenario: Scenario) -> Array:
    """Return when pools are closed and opened again, (drains,) DRAIN."""
    drains = () if scenario.faults is None else scenario.faults.drains
    changes = [(drain.at, drain.pool, 0) for drain in drains]
    changes += [(drain.until, drain.pool, 1) for drain in drains if drain.until is not None]
    return np.array(changes, state.DRAIN)


def free_cells(kind: np.dtype[Any], first: int, count: int) -> Array:
    """Return `count` free CELL or EVENT records from number `first`, a linked chain."""
    cells = np.zeros(count, kind)
    cells["next"] = np.arange(first + 1, first + count + 1)
    return cells


def grow(cells: Array, needed: int) -> Array:
    """Return `cells` with room for `needed`; new ones continue the chain."""
    if needed <= cells.size:
        return cells
    more = free_cells(cells.dtype, cells.size, max(needed, 2 * cells.size) - cells.size)
    return np.concatenate([cells, more])
