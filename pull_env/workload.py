"""Where the calendar clock gets its customers from: laws of service requirements, or a trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pull_env.scenario import Scenario
from pull_env.system import Floats, Workload
from pull_env.trace import scaled_trace

Sizes = Callable[[np.random.Generator, int], Floats]  # draws service requirements of mean 1


def exponential(generator: np.random.Generator, count: int) -> Floats:
    """Draw `count` exponential requirements of mean 1."""
    return generator.standard_exponential(count)


class Poisson:
    """Poisson arrivals whose requirements follow any law: a feed for one replication.

    Gaps and requirements come from generators of their own, in the order of the customers, so that policies
    compared on one seed meet the same customers, however many they are fed at a time.
    """

    def __init__(self, arrival_rate: float, sizes: Sizes, sequence: np.random.SeedSequence) -> None:
        """Seed the feed.

        Args:
            arrival_rate: Customers a time unit.
            sizes: The law of the requirements, mean 1.
            sequence: Seeds both generators.
        """
        self._mean_gap, self._sizes = 1.0 / arrival_rate, sizes
        self._arrivals, self._service = (np.random.default_rng(child) for child in sequence.spawn(2))

    def draw(self, count: int) -> tuple[Floats, Floats]:
        """Return the next `count` gaps, in time units, and requirements."""
        return self._arrivals.exponential(self._mean_gap, count), self._sizes(self._service, count)


class Replay:
    """A trace, replayed once, at the scenario's arrival rate and with requirements of mean 1."""

    def __init__(self, scenario: Scenario, sequence: np.random.SeedSequence) -> None:
        """Read the trace (once a process); `sequence` is not used, as nothing is left to chance."""
        self._gaps, self._sizes = scaled_trace(scenario)
        self._next = 0

    def draw(self, count: int) -> tuple[Floats, Floats]:
        """Return the next gaps and requirements, at most `count`; empty arrays after the end."""
        part = slice(self._next, self._next + count)
        self._next += count
        return self._gaps[part], self._sizes[part]


def poisson(scenario: Scenario, sizes: Sizes = exponential) -> Workload:
    """Return feeds with the scenario's arrival rate and requirements drawn by `sizes`."""
    return partial(Poisson, scenario.total_arrival_rate, sizes)


def workload_of(scenario: Scenario) -> Workload | None:
    """Return the feeds that the scenario asks for: its trace; None where the Markov clock serves it."""
    return None if scenario.arrivals is None else partial(Replay, scenario)
