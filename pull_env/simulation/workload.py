"""Customers of the calendar clock: random arrivals and requirements, or a trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from pull_env.policy.policy import Step
from pull_env.scenario.laws import Exponential
from pull_env.scenario.scenario import Scenario, Trace
from pull_env.scenario.trace import scaled_trace
from pull_env.simulation.arrival_processes import (
    CHUNK,
    ArrivalProcess,
    Arrivals,
    Floats,
    RouterChoice,
    arrival_process,
    router_choice,
)
from pull_env.simulation.kernel_data.customers import Customers, Workload
from pull_env.simulation.kernel_data.step_records import needs_calendar

Sizes = Callable[[np.random.Generator, int], Floats]  # draws service requirements of mean 1, one by one


class Source(Protocol):
    """A source of customers, in chunks."""

    def next(self) -> tuple[Arrivals, Floats]:
        """Return the next arrivals and their service requirements; none after the end."""
        ...


class RandomSource:
    """Random arrivals and service requirements."""

    def __init__(self, arrivals: ArrivalProcess, sizes: Sizes, generator: np.random.Generator) -> None:
        """Store the process of arrivals, and how requirements are drawn from `generator`."""
        self._arrivals, self._sizes, self._generator = arrivals, sizes, generator

    def next(self) -> tuple[Arrivals, Floats]:
        """Return the next customers."""
        arrivals = self._arrivals.next()
        return arrivals, self._sizes(self._generator, arrivals.gaps.size)


class TraceSource:
    """A trace, replayed once, without randomness."""

    def __init__(self, gaps: Floats, sizes: Floats) -> None:
        """Start at the first row."""
        self._left = gaps, sizes

    def next(self) -> tuple[Arrivals, Floats]:
        """Return all rows, and then none."""
        gaps, sizes = self._left
        self._left = gaps[:0], sizes[:0]
        return Arrivals(gaps), sizes


class BlockBootstrap:
    """Blocks of consecutive rows of a trace, each from a random row on.

    A circular block bootstrap (Politis and Romano 1992): the last row is followed by the first, so that every
    row comes equally often.
    """

    def __init__(self, gaps: Floats, sizes: Floats, block: int, generator: np.random.Generator) -> None:
        """Store the trace; its first row, which has no gap, gets the mean gap."""
        mean = gaps.sum() / (gaps.size - 1)
        self._gaps, self._sizes = np.concatenate([[mean], gaps[1:]]), sizes
        self._block, self._generator = min(block, gaps.size), generator

    def next(self) -> tuple[Arrivals, Floats]:
        """Return the next blocks, as many as make a chunk."""
        starts = self._generator.integers(self._gaps.size, size=-(-CHUNK // self._block))
        rows = ((starts[:, None] + np.arange(self._block)) % self._gaps.size).ravel()
        return Arrivals(self._gaps[rows]), self._sizes[rows]


class SourceFeed:
    """A feed for one replication: customers of a source, and their routers.

    Arrivals, requirements and routers come from generators of their own, in the order of the customers, so
    that policies compared on one seed meet the same customers, however many they are fed at a time.
    """

    def __init__(self, source: Source, routers: RouterChoice | None) -> None:
        """Store the source of customers, and how routers are chosen."""
        self._source, self._routers = source, routers
        self._ready, self._used = Customers(np.zeros(0), np.zeros(0)), 0

    def draw(self, count: int) -> Customers:
        """Return the next customers, at most `count`; none after the end."""
        if self._used == self._ready.gaps.size:
            self._ready, self._used = self._fetch(), 0
        part = slice(self._used, self._used + count)
        self._used = min(part.stop, self._ready.gaps.size)
        gaps, sizes, routers, phases = self._ready
        return Customers(
            gaps[part],
            sizes[part],
            None if routers is None else routers[part],
            None if phases is None else phases[part],
        )

    def _fetch(self) -> Customers:
        (gaps, phases), sizes = self._source.next()
        routers = None if self._routers is None or not gaps.size else self._routers.next(gaps)
        return Customers(gaps, sizes, routers, phases)


def feed(scenario: Scenario, sizes: Sizes | None, sequence: np.random.SeedSequence) -> SourceFeed:
    """Return the feed of a scenario for the replication that `sequence` seeds.

    Args:
        scenario: Its arrivals, service and shares.
        sizes: Draws requirements in place of the scenario's service; None: as the scenario says.
        sequence: Seeds the generators.
    """
    arrivals, service, routers = (np.random.default_rng(child) for child in sequence.spawn(3))
    source: Source
    if isinstance(scenario.arrivals, Trace):
        block, recorded = scenario.arrivals.block, scaled_trace(scenario)
        source = TraceSource(*recorded) if block is None else BlockBootstrap(*recorded, block, arrivals)
    else:
        sizes = sizes or (scenario.service or Exponential()).draw
        source = RandomSource(arrival_process(scenario, arrivals), sizes, service)
    return SourceFeed(source, router_choice(scenario, routers))


def calendar_workload(scenario: Scenario, sizes: Sizes | None = None) -> Workload:
    """Return feeds of the calendar clock, even if the Markov clock would do.

    Args:
        scenario: Any; its arrivals are Poisson unless it says otherwise.
        sizes: Draws requirements of mean 1 in place of the scenario's service; None: as the scenario says.
    """
    return partial(feed, scenario, sizes)


def workload_for(scenario: Scenario, steps: tuple[Step, ...] = ()) -> Workload | None:
    """Return the feeds that a scenario and `steps` need; None: the Markov clock."""
    return None if scenario.markov and not needs_calendar(steps) else calendar_workload(scenario)
