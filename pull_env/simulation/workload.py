"""Where the calendar clock gets its customers from: processes of arrivals and laws of service, or a trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from pull_env.policy.policy import Step
from pull_env.scenario.laws import Exponential
from pull_env.scenario.scenario import Scenario, Trace
from pull_env.scenario.trace import scaled_trace
from pull_env.simulation.arrival_processes import CHUNK, Floats, Piece, Process, Routing, process, routing
from pull_env.simulation.kernel_data.step_records import needs_calendar
from pull_env.simulation.simulator import Customers, Workload

Sizes = Callable[[np.random.Generator, int], Floats]  # draws service requirements of mean 1, value by value


class Source(Protocol):
    """Where customers come from, one piece after another."""

    def next(self) -> tuple[Piece, Floats]:
        """Return the next arrivals and their service requirements; none after the end."""
        ...


class Drawn:
    """Arrivals and requirements from generators of their own."""

    def __init__(self, arrivals: Process, sizes: Sizes, generator: np.random.Generator) -> None:
        """Note where arrivals and requirements come from, and the generator of the latter."""
        self._arrivals, self._sizes, self._generator = arrivals, sizes, generator

    def next(self) -> tuple[Piece, Floats]:
        """Return the next customers."""
        piece = self._arrivals.next()
        return piece, self._sizes(self._generator, piece.gaps.size)


class Replay:
    """A trace, replayed once: nothing of it is left to chance."""

    def __init__(self, gaps: Floats, sizes: Floats) -> None:
        """Start at the first row."""
        self._left = gaps, sizes

    def next(self) -> tuple[Piece, Floats]:
        """Return all rows, and then none."""
        gaps, sizes = self._left
        self._left = gaps[:0], sizes[:0]
        return Piece(gaps), sizes


class Blocks:
    """Blocks of neighbours of a trace, each from a random row on, the last being followed by the first.

    A moving-block bootstrap on a circle (Politis and Romano 1992): every row comes equally often.
    """

    def __init__(self, gaps: Floats, sizes: Floats, block: int, generator: np.random.Generator) -> None:
        """Give the first row, which has no gap, the mean one."""
        mean = gaps.sum() / (gaps.size - 1)
        self._gaps, self._sizes = np.concatenate([[mean], gaps[1:]]), sizes
        self._block, self._generator = min(block, gaps.size), generator

    def next(self) -> tuple[Piece, Floats]:
        """Return the next blocks, as many as fill a chunk."""
        starts = self._generator.integers(self._gaps.size, size=-(-CHUNK // self._block))
        rows = ((starts[:, None] + np.arange(self._block)) % self._gaps.size).ravel()
        return Piece(self._gaps[rows]), self._sizes[rows]


class Served:
    """A feed for one replication: customers of a source, each with its router where that is not fixed.

    Arrivals, requirements and routers come from generators of their own, in the order of the customers, so
    that policies compared on one seed meet the same customers, however many they are fed at a time.
    """

    def __init__(self, source: Source, routes: Routing | None) -> None:
        """Note where customers and routers come from."""
        self._source, self._routes = source, routes
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
        routers = None if self._routes is None or not gaps.size else self._routes.next(gaps)
        return Customers(gaps, sizes, routers, phases)


def feed(scenario: Scenario, sizes: Sizes | None, sequence: np.random.SeedSequence) -> Served:
    """Return the feed of a scenario for the replication that `sequence` seeds.

    Args:
        scenario: Its arrivals, service and shares.
        sizes: Draws requirements in place of the scenario's law, or None.
        sequence: Seeds the generators.
    """
    arrivals, service, routes = (np.random.default_rng(child) for child in sequence.spawn(3))
    source: Source
    if isinstance(scenario.arrivals, Trace):
        block, recorded = scenario.arrivals.block, scaled_trace(scenario)
        source = Replay(*recorded) if block is None else Blocks(*recorded, block, arrivals)
    else:
        law = scenario.service or Exponential()
        source = Drawn(process(scenario, arrivals), sizes or law.draw, service)
    return Served(source, routing(scenario, routes))


def calendar_workload(scenario: Scenario, sizes: Sizes | None = None) -> Workload:
    """Return feeds of the calendar clock for a scenario that the Markov clock could serve as well.

    Args:
        scenario: Any; its arrivals are Poisson unless it says otherwise.
        sizes: Draws requirements of mean 1 in place of the scenario's law; None: by its law.
    """
    return partial(feed, scenario, sizes)


def workload_for(scenario: Scenario, steps: tuple[Step, ...] = ()) -> Workload | None:
    """Return the feeds that a scenario and `steps` need; None: the Markov clock serves."""
    return None if scenario.markov and not needs_calendar(steps) else calendar_workload(scenario)
