"""How customers arrive, drawn piece by piece: the gaps between them, and which router each one asks.

A process draws from its own generator in pieces of a length that it chooses itself, about CHUNK customers: so
what comes does not depend on how many customers are fed at a time.
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
AHEAD = 64  # phases, or places of a hot router


class Piece(NamedTuple):
    """The next arrivals."""

    gaps: Floats  # (customers,) times since the arrival before
    phases: Floats | None = None  # (customers,) where in [0, 1] the rate's phase stands as each one arrives


class Process(Protocol):
    """Where arrivals come from, one piece after another."""

    def next(self) -> Piece:
        """Return the next piece, at least one customer."""
        ...


class Gaps:
    """Independent gaps; exponential ones make a Poisson stream."""

    def __init__(self, law: Law, rate: float, generator: np.random.Generator) -> None:
        """Note the law and the mean rate."""
        self._law, self._mean, self._generator = law, 1.0 / rate, generator

    def next(self) -> Piece:
        """Return the next piece."""
        return Piece(self._law.draw(self._generator, CHUNK) * self._mean)


class Together:
    """Batches at the times of a Poisson stream: all gaps within a batch are 0; pieces are whole batches."""

    def __init__(self, batches: Batches, rate: float, generator: np.random.Generator) -> None:
        """Note the law of batches and the mean rate of customers."""
        self._batches, self._mean_gap, self._generator = batches, batches.size / rate, generator

    def next(self) -> Piece:
        """Return the next piece."""
        count, size = math.ceil(CHUNK / self._batches.size), self._batches.size
        if self._batches.law == "fixed":
            sizes = np.full(count, int(size))
        else:
            sizes = self._generator.geometric(1.0 / size, count)
        gaps = np.zeros(int(sizes.sum()))
        gaps[np.cumsum(sizes) - sizes] = self._generator.exponential(self._mean_gap, count)
        return Piece(gaps)


class Phases:
    """A modulated stream, by a change of clock: arrivals are one apart in expected customers, not in time."""

    def __init__(self, modulated: Modulated, rate: float, generator: np.random.Generator) -> None:
        """Draw the first phase, as it stands at a random time."""
        self._generator, self._count = generator, len(modulated.rates)
        self._rates = [each * (rate / modulated.mean_rate) for each in modulated.rates]
        self._lengths = modulated.lengths
        self._moves = np.cumsum(modulated.chances, axis=1).tolist()
        self._stays: list[float] = []  # drawn ahead: one at a time costs more than all the rest
        self._turns: list[float] = []
        self._refill()
        self._phase = self._pick(np.cumsum(modulated.time_shares).tolist())
        self._left = self._last()  # time until the phase ends

    def next(self) -> Piece:
        """Return the next piece."""
        expected = np.cumsum(self._generator.standard_exponential(CHUNK))
        ends, times, phases = [0.0], [0.0], []  # of phases: expected customers, and time
        while True:
            phases.append(self._phase)
            times.append(times[-1] + self._left)
            ends.append(ends[-1] + self._left * self._rates[self._phase])
            if ends[-1] >= expected[-1]:
                break
            if not self._stays:
                self._refill()
            self._phase = self._pick(self._moves[self._phase])
            self._left = self._last()
        at = np.searchsorted(ends, expected) - 1
        phase = np.array(phases)[at]
        within = (expected - np.array(ends)[at]) / np.array(self._rates)[phase]
        arrivals = np.array(times)[at] + within
        self._left = max(0.0, self._left - float(within[-1]))
        return Piece(np.diff(arrivals, prepend=0.0), phase / max(1, self._count - 1))

    def _last(self) -> float:
        return self._lengths[self._phase] * self._stays.pop()

    def _pick(self, bounds: list[float]) -> int:
        """Return a number from 0, in proportion to the steps between `bounds`."""
        return min(bisect_right(bounds, self._turns.pop() * bounds[-1]), self._count - 1)

    def _refill(self) -> None:
        self._stays = self._generator.standard_exponential(AHEAD).tolist()
        self._turns = self._generator.random(AHEAD).tolist()


class Swing:
    """A sine of a day: arrivals at the highest rate, of which as many are kept as the rate is at the time."""

    def __init__(self, day: Day, rate: float, generator: np.random.Generator) -> None:
        """Draw the time of the day."""
        self._day, self._generator = day, generator
        self._mean_gap = 1.0 / (rate * (1.0 + day.swing))
        self._time = day.period * float(generator.random())
        self._since = 0.0  # the last arrival that was kept

    def next(self) -> Piece:
        """Return the next piece."""
        while True:  # around midnight nobody may come for long
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
        return Piece(gaps, 0.5 + 0.5 * sine[kept])


def process(scenario: Scenario, generator: np.random.Generator) -> Process:
    """Return the arrivals of a scenario that are not recorded."""
    kind, rate = scenario.arrivals, scenario.total_arrival_rate
    if isinstance(kind, Renewal):
        return Gaps(kind.gaps, rate, generator)
    if isinstance(kind, Batches):
        return Together(kind, rate, generator)
    if isinstance(kind, Bursts):
        kind = kind.phases(scenario.nominal_load)
    if isinstance(kind, Modulated):
        return Phases(kind, rate, generator)
    if isinstance(kind, Day):
        return Swing(kind, rate, generator)
    return Gaps(Exponential(), rate, generator)


class Routing:
    """Which router each customer asks, where that is not drawn anew by fixed shares."""

    def __init__(self, scenario: Scenario, generator: np.random.Generator) -> None:
        """Draw where the hot router is first, if there is one."""
        self._shares, self._generator = np.cumsum(scenario.router_shares), generator
        self._together = isinstance(scenario.arrivals, Batches)
        hot = scenario.shares
        self._hot = HotPath(hot, scenario.routers, generator) if isinstance(hot, HotRouter) else None

    def next(self, gaps: Floats) -> Integers:
        """Return the routers of the next customers, which come after `gaps`, (customers,)."""
        uniform = self._generator.random(gaps.size)
        if self._hot is not None:
            routers = self._hot.next(np.cumsum(gaps), uniform)
        else:
            routers = np.searchsorted(self._shares, uniform * self._shares[-1], side="right")
        if self._together:  # all of a batch ask the router of its first customer
            first = np.maximum.accumulate(np.where(gaps > 0.0, np.arange(gaps.size), 0))
            routers = routers[first]
        return routers.astype(np.int32)


class HotPath:
    """Where the hot router is, over time."""

    def __init__(self, hot: HotRouter, routers: int, generator: np.random.Generator) -> None:
        """Draw the first place, and when it moves."""
        self._hot, self._routers, self._generator = hot, routers, generator
        self._places = generator.integers(routers, size=1)  # (moves + 1,) now, and after each move to come
        self._moves = np.zeros(0)  # (moves,) times of moves, from the last customer on
        self._extend(0.0)

    def next(self, times: Floats, uniform: Floats) -> npt.NDArray[np.int64]:
        """Return the routers of customers at `times` from the last one on, (customers,) each.

        Args:
            times: Ascending.
            uniform: Random numbers in [0, 1) that decide who asks the hot router.
        """
        while self._moves[-1] <= times[-1]:
            self._extend(float(times[-1] - self._moves[-1]))
        moved = np.searchsorted(self._moves, times, side="right")
        hot = self._places[moved]
        other = (hot + 1 + self._generator.integers(self._routers - 1, size=times.size)) % self._routers
        self._moves, self._places = self._moves[moved[-1] :] - times[-1], self._places[moved[-1] :]
        return np.where(uniform < self._hot.share, hot, other)

    def _extend(self, missing: float) -> None:
        """Draw moves for about the time that is `missing`, and some more."""
        count = AHEAD + int(missing / self._hot.every)
        stays = self._generator.exponential(self._hot.every, count)
        start = self._moves[-1] if self._moves.size else 0.0
        self._moves = np.append(self._moves, start + np.cumsum(stays))
        steps = 1 + self._generator.integers(self._routers - 1, size=count)
        self._places = np.append(self._places, (self._places[-1] + np.cumsum(steps)) % self._routers)


def routing(scenario: Scenario, generator: np.random.Generator) -> Routing | None:
    """Return how routers are chosen; None where the kernel draws them by fixed shares."""
    drawn = isinstance(scenario.shares, HotRouter) or isinstance(scenario.arrivals, Batches)
    return Routing(scenario, generator) if drawn else None
