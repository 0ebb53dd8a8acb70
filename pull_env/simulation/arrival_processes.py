"""Random arrivals in chunks: the gaps between customers, and the router of each.

A process draws from its own generator in chunks of a length that it chooses itself, about CHUNK customers. So
the arrivals do not depend on how many customers are fed at a time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
from pull_env.scenario.laws import Exponential, Law
from pull_env.scenario.scenario import Scenario

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

CHUNK = 4096  # customers
AHEAD = 64  # phases, or moves of a hot router, drawn at a time


class Arrivals(NamedTuple):
    """A chunk of consecutive arrivals."""

    gaps: Floats  # (customers,) times since the previous arrival
    phases: Floats | None = None  # (customers,) phase of the rate at each arrival, in [0, 1]


class ArrivalProcess(Protocol):
    """A source of arrivals."""

    def next(self) -> Arrivals:
        """Return the next chunk, at least one customer."""
        ...


class RenewalProcess:
    """Independent gaps; exponential ones make a Poisson process."""

    def __init__(self, law: Law, rate: float, generator: np.random.Generator) -> None:
        """Store the distribution of the gaps and the mean rate."""
        self._law, self._mean, self._generator = law, 1.0 / rate, generator

    def next(self) -> Arrivals:
        """Return the next chunk."""
        return Arrivals(self._law.draw(self._generator, CHUNK) * self._mean)


class BatchProcess:
    """Batches at the times of a Poisson process, in chunks of whole batches."""

    def __init__(self, batches: Batches, rate: float, generator: np.random.Generator) -> None:
        """Store the distribution of batch sizes and the mean rate of customers."""
        self._batches, self._mean_gap, self._generator = batches, batches.size / rate, generator

    def next(self) -> Arrivals:
        """Return the next chunk."""
        count, size = math.ceil(CHUNK / self._batches.size), self._batches.size
        if self._batches.law == "fixed":
            sizes = np.full(count, int(size))
        else:
            sizes = self._generator.geometric(1.0 / size, count)
        gaps = np.zeros(int(sizes.sum()))
        gaps[np.cumsum(sizes) - sizes] = self._generator.exponential(self._mean_gap, count)
        return Arrivals(gaps)


class ModulatedProcess:
    """A Markov-modulated Poisson process.

    It is drawn by a change of clock: arrivals of a Poisson process of rate 1, in expected customers, are
    mapped to times.
    """

    def __init__(self, modulated: Modulated, rate: float, generator: np.random.Generator) -> None:
        """Draw the phase at a random time."""
        self._generator, self._count = generator, len(modulated.rates)
        self._rates = [each * (rate / modulated.mean_rate) for each in modulated.rates]
        self._lengths = modulated.lengths
        self._cumulative_moves = np.cumsum(modulated.chances, axis=1).tolist()
        self._exponentials: list[float] = []  # drawn ahead: one at a time costs more than all the rest
        self._uniforms: list[float] = []
        self._refill()
        self._phase = self._pick(np.cumsum(modulated.time_shares).tolist())
        self._left = self._draw_length()  # time until the phase ends

    def next(self) -> Arrivals:
        """Return the next chunk."""
        expected = np.cumsum(self._generator.standard_exponential(CHUNK))
        ends, times, phases = [0.0], [0.0], []  # of phases: ends in expected customers and in time
        while True:
            phases.append(self._phase)
            times.append(times[-1] + self._left)
            ends.append(ends[-1] + self._left * self._rates[self._phase])
            if ends[-1] >= expected[-1]:
                break
            if not self._exponentials:
                self._refill()
            self._phase = self._pick(self._cumulative_moves[self._phase])
            self._left = self._draw_length()
        at = np.searchsorted(ends, expected) - 1
        phase = np.array(phases)[at]
        within = (expected - np.array(ends)[at]) / np.array(self._rates)[phase]
        arrivals = np.array(times)[at] + within
        self._left = max(0.0, self._left - float(within[-1]))
        return Arrivals(np.diff(arrivals, prepend=0.0), phase / max(1, self._count - 1))

    def _draw_length(self) -> float:
        return self._lengths[self._phase] * self._exponentials.pop()

    def _pick(self, bounds: list[float]) -> int:
        """Return a number from 0, in proportion to the steps between `bounds`."""
        return min(bisect_right(bounds, self._uniforms.pop() * bounds[-1]), self._count - 1)

    def _refill(self) -> None:
        self._exponentials = self._generator.standard_exponential(AHEAD).tolist()
        self._uniforms = self._generator.random(AHEAD).tolist()


class DayProcess:
    """A Poisson process with a sinusoidal rate, by thinning one of the highest rate."""

    def __init__(self, day: Day, rate: float, generator: np.random.Generator) -> None:
        """Draw the time of day."""
        self._day, self._generator = day, generator
        self._mean_gap = 1.0 / (rate * (1.0 + day.swing))
        self._time = day.period * float(generator.random())
        self._since = 0.0  # time since the last arrival that was kept

    def next(self) -> Arrivals:
        """Return the next chunk."""
        while True:  # around midnight a whole chunk may be dropped
            times = np.cumsum(self._generator.exponential(self._mean_gap, CHUNK))
            sine = np.sin((self._time + times) * (2.0 * np.pi / self._day.period))
            relative = (1.0 + self._day.swing * sine) / (1.0 + self._day.swing)
            kept = self._generator.random(CHUNK) < relative
            self._time = (self._time + float(times[-1])) % self._day.period
            if kept.any():
                break
            self._since += float(times[-1])
        gaps = np.diff(times[kept], prepend=-self._since)
        self._since = float(times[-1] - times[kept][-1])
        return Arrivals(gaps, 0.5 + 0.5 * sine[kept])


def arrival_process(scenario: Scenario, generator: np.random.Generator) -> ArrivalProcess:
    """Return the arrival process of a scenario without a trace."""
    kind, rate = scenario.arrivals, scenario.total_arrival_rate
    if isinstance(kind, Renewal):
        return RenewalProcess(kind.gaps, rate, generator)
    if isinstance(kind, Batches):
        return BatchProcess(kind, rate, generator)
    if isinstance(kind, Bursts):
        kind = kind.phases(scenario.nominal_load)
    if isinstance(kind, Modulated):
        return ModulatedProcess(kind, rate, generator)
    if isinstance(kind, Day):
        return DayProcess(kind, rate, generator)
    return RenewalProcess(Exponential(), rate, generator)


class RouterChoice:
    """Which router each customer asks, unless the kernel draws it by fixed shares."""

    def __init__(self, scenario: Scenario, generator: np.random.Generator) -> None:
        """Draw the first hot router, if there is one."""
        self._shares, self._generator = np.cumsum(scenario.router_shares), generator
        self._batched = isinstance(scenario.arrivals, Batches)
        hot = scenario.shares
        self._hot = HotPath(hot, scenario.routers, generator) if isinstance(hot, HotRouter) else None

    def next(self, gaps: Floats) -> Integers:
        """Return the routers of the next customers, given their `gaps`, (customers,)."""
        uniform = self._generator.random(gaps.size)
        if self._hot is not None:
            routers = self._hot.next(np.cumsum(gaps), uniform)
        else:
            routers = np.searchsorted(self._shares, uniform * self._shares[-1], side="right")
        if self._batched:  # all customers of a batch ask the router of its first customer
            first = np.maximum.accumulate(np.where(gaps > 0.0, np.arange(gaps.size), 0))
            routers = routers[first]
        return routers.astype(np.int32)


class HotPath:
    """Which router is hot, over time."""

    def __init__(self, hot: HotRouter, routers: int, generator: np.random.Generator) -> None:
        """Draw the first hot router, and when it changes."""
        self._hot, self._routers, self._generator = hot, routers, generator
        self._path = generator.integers(routers, size=1)  # (moves + 1,) hot now, and after each move
        self._moves = np.zeros(0)  # (moves,) times of moves, since the last customer
        self._extend(0.0)

    def next(self, times: Floats, uniform: Floats) -> npt.NDArray[np.int64]:
        """Return the routers of the next customers, (customers,).

        Args:
            times: (customers,) of arrivals, ascending, since the last customer of the previous call.
            uniform: (customers,) random numbers in [0, 1) that decide who asks the hot router.
        """
        while self._moves[-1] <= times[-1]:
            self._extend(float(times[-1] - self._moves[-1]))
        moved = np.searchsorted(self._moves, times, side="right")
        hot = self._path[moved]
        other = (hot + 1 + self._generator.integers(self._routers - 1, size=times.size)) % self._routers
        self._moves, self._path = self._moves[moved[-1] :] - times[-1], self._path[moved[-1] :]
        return np.where(uniform < self._hot.share, hot, other)

    def _extend(self, missing: float) -> None:
        """Draw more moves, for about the time that is `missing`."""
        count = AHEAD + int(missing / self._hot.every)
        stays = self._generator.exponential(self._hot.every, count)
        start = self._moves[-1] if self._moves.size else 0.0
        self._moves = np.append(self._moves, start + np.cumsum(stays))
        steps = 1 + self._generator.integers(self._routers - 1, size=count)
        self._path = np.append(self._path, (self._path[-1] + np.cumsum(steps)) % self._routers)


def router_choice(scenario: Scenario, generator: np.random.Generator) -> RouterChoice | None:
    """Return how routers are chosen; None if the kernel draws them by fixed shares."""
    drawn = isinstance(scenario.shares, HotRouter) or isinstance(scenario.arrivals, Batches)
    return RouterChoice(scenario, generator) if drawn else None
