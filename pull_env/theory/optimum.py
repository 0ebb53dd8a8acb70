"""The optimal router with full information of a small system, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pull_env.policy.policy import Lookup, Policy
from pull_env.scenario.scenario import Scenario, ScenarioLike, as_scenario
from pull_env.theory.exact.solver import Exact, solve_with_cuts, too_large
from pull_env.theory.exact.states import Outcome, State, System, build_system
from pull_env.theory.formulas import Floats

Integers = npt.NDArray[np.intp]

SWEEPS = 100  # under one table, before it is improved
MOST_IMPROVEMENTS = 10_000
PRECISION = 1e-10  # relative distance of the bounds on the optimal cost at which iteration ends
LARGEST_LOOKUP = (
    10_000_000  # entries of a table by server; `Optimum.table` has one for interchangeable servers
)
TIE = 1e-9  # values that differ less, relative to the cost, are equal


@dataclass(frozen=True)
class Optimum:
    """The optimal router that knows all queue lengths, for the prices of its scenario.

    Attributes:
        scenario: The system.
        table: The server to choose, by queue lengths: (n,) in the order of the pools, ascending within each.
            A full server blocks the customer. Ties go to the fastest.
        exact: The stationary measures of the table.
        free_information: Whether knowing all queues is free.
    """

    scenario: Scenario
    table: dict[tuple[int, ...], int] = field(repr=False)
    exact: Exact
    free_information: bool = True

    def server(self, queues: Sequence[int]) -> int:
        """Return the optimal server for a customer that finds `queues`.

        (n,) in any order within a pool.

        Raises:
            KeyError: A queue is longer than its buffer, or than where the table ends (`exact.cut`).
        """
        key: list[int] = []
        for pool in self.scenario.pools:
            key += sorted(queues[len(key) : len(key) + pool.size])
        best = self.table[tuple(key)]
        first = 0
        for pool in self.scenario.pools:
            if best < first + pool.size:
                break
            first += pool.size
        return list(queues).index(key[best], first)

    def policy(self) -> Policy:
        """Return the table as a policy to simulate.

        Queues longer than the table count as its longest.

        Raises:
            ValueError: The table by server is too large, as it distinguishes equal servers.
        """
        pools = zip(self.scenario.pools, self.exact.cut, strict=True)
        limits = [most for pool, most in pools for _ in range(pool.size)]
        size = math.prod(most + 1 for most in limits)
        if size > LARGEST_LOOKUP:
            raise ValueError(
                f"the table by server has {size:,} entries: at most {LARGEST_LOOKUP:,} can be used"
            )
        servers = tuple(self.server(queues) for queues in product(*(range(most + 1) for most in limits)))
        return Policy("optimum", (Lookup(tuple(limits), servers, self.free_information),))


def optimise(scenario: ScenarioLike, *, free_information: bool = True, most_states: int = 200_000) -> Optimum:
    """Return the router of least cost of waits and blocking per customer.

    Relative value iteration on the average cost of the chain of queue lengths, with 100 sweeps under a table
    between improvements (modified policy iteration: Puterman, Markov Decision Processes, 1994, section 8.7),
    until Odoni's bounds on the optimal cost meet; then the table is solved as a chain. As the number in queue
    is arrival rate x wait, minimising the wait minimises E[N] if nobody is blocked.

    Infinite buffers are cut as in `exact.solve`; a queue at its cut is chosen only if all are. The table is
    optimal for queues well below the cuts; states near them are too rare to matter.

    Args:
        scenario: The system; Poisson arrivals, exponential service. R does not matter.
        free_information: Whether knowing all queues is free; otherwise it counts as 2n messages, which does
            not change the table, but its messages and cost.
        most_states: Limit of the table's entries.

    Raises:
        ValueError: The table is too large, or the system has no stationary distribution.
    """
    scenario = as_scenario(scenario)
    probes = 0 if free_information else 2 * scenario.servers
    table: dict[tuple[int, ...], int] = {}

    def system_with_cut(cut: tuple[int, ...]) -> System:
        size = math.prod(
            math.comb(pool.size + most, most) for pool, most in zip(scenario.pools, cut, strict=True)
        )
        if size > most_states:
            raise ValueError(too_large(scenario, "the optimum", most_states, cut))
        table.clear()
        table.update(_best_table(scenario, build_system(scenario, cut, route)))
        return build_system(scenario, cut, route)

    def route(system: System, state: State, router: int) -> list[Outcome]:
        return [Outcome(1.0, table[tuple(server.queue for server in state.servers)], probes, state)]

    exact = solve_with_cuts(scenario, system_with_cut, "the optimum", most_states)
    return Optimum(scenario, table, exact, free_information)


@dataclass(frozen=True)
class _Decisions:
    """The decisions in each state, and what they lead to; S states, n servers."""

    queues: Integers  # (S, n)
    joined: Integers  # (S, n) state after a customer joins a server; the same if it is full
    left: Integers  # (S, n) state after a departure; the same if the server is idle
    price: Floats  # (S, n) of sending a customer to a full server; infinite: not allowed
    waiting: Floats  # (S,) cost per time unit


def _decisions(scenario: Scenario, system: System) -> _Decisions:
    by_pool = [
        combinations_with_replacement(range(system.buffers[pool.start] + 1), len(pool))
        for pool in system.pools
    ]
    queues = np.array([sum(parts, ()) for parts in product(*by_pool)], np.intp)
    limit = np.array(system.buffers)
    scale = np.append(np.cumprod(limit[:0:-1] + 1)[::-1], 1)
    codes = queues @ scale  # ascending

    def state_index(changed: Integers) -> Integers:
        ordered = [np.sort(changed[:, pool.start : pool.stop], axis=1) for pool in system.pools]
        index: Integers = np.searchsorted(codes, np.concatenate(ordered, axis=1) @ scale)
        return index

    step = np.eye(len(limit), dtype=np.intp)
    joined = [state_index(np.minimum(queues + up, limit)) for up in step]
    left = [state_index(np.maximum(queues - down, 0)) for down in step]
    full = queues == limit
    infinite = np.array([scenario.pools[j].buffer is None for j in system.pool])
    price = np.where(full, np.where(infinite, np.inf, scenario.prices.block), 0.0)
    price[(full & infinite).all(axis=1)] = 0.0  # there is no other choice
    waiting = scenario.prices.wait * np.maximum(queues - 1, 0).sum(axis=1)
    return _Decisions(queues, np.stack(joined, 1), np.stack(left, 1), price, waiting)


def _best_table(scenario: Scenario, system: System) -> dict[tuple[int, ...], int]:
    """Return the optimal table of a system whose infinite buffers are cut."""
    decisions = _decisions(scenario, system)
    rates, arrival_rate = np.array(system.rates), system.arrival_rate
    events = arrival_rate + rates.sum()
    size = decisions.waiting.size
    fastest_first = np.argsort(-rates, kind="stable")
    value = np.zeros(size)
    for _ in range(MOST_IMPROVEMENTS):
        choices = value[decisions.joined] + decisions.price  # (S, n)
        least = choices.min(axis=1)
        served = value[decisions.left] @ rates
        gain = (decisions.waiting + arrival_rate * least + served) / events - value
        scale, noise = float(np.abs(gain).max()), 1e-14 * float(np.abs(value).max())
        if gain.max() - gain.min() <= PRECISION * scale + noise:
            near = choices[:, fastest_first] <= (least + TIE * scale + noise)[:, None]
            best = fastest_first[near.argmax(axis=1)]
            return dict(zip(map(tuple, decisions.queues.tolist()), best.tolist(), strict=True))
        jumps, paid = _jumps(decisions, choices.argmin(axis=1), rates, arrival_rate)
        for _ in range(SWEEPS):
            value = paid + jumps @ value
            value -= value[0]
    raise ArithmeticError(f"the optimum of {size:,} states is only known to {gain.max() - gain.min():.1e}")


def _jumps(decisions: _Decisions, chosen: Integers, rates: Floats, arrival_rate: float) -> tuple[Any, Floats]:
    """Return transitions, (S, S) sparse, and costs, (S,), under a table."""
    size, n = decisions.queues.shape
    rows, events = np.arange(size), arrival_rate + rates.sum()
    columns = np.column_stack([decisions.joined[rows, chosen], decisions.left])
    weights = np.broadcast_to(np.append(arrival_rate, rates) / events, (size, n + 1))
    where = (np.repeat(rows, n + 1), columns.ravel())
    jumps = sparse.csr_array((weights.ravel(), where), shape=(size, size))
    paid = (decisions.waiting + arrival_rate * decisions.price[rows, chosen]) / events
    return jumps, paid
