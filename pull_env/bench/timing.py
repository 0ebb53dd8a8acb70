"""A measurement, and how rates are taken: several timings, of which middle and ends are told."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

TIMINGS = 5

Block = Callable[[], object]


@dataclass(frozen=True)
class Measurement:
    """What several timings of one thing gave.

    Attributes:
        kind: The table that it belongs to, such as `policies`.
        name: What was measured.
        unit: Of the values.
        values: One a timing.
        threads: How many ran at once.
        envs: How many envs were stepped at once; None: no env was.
        warmup: Customers simulated before a clock ran, by thread.
        scenario: The system; None: it does not matter.
        policy: What its routers followed; None: no policy.
    """

    kind: str
    name: str
    unit: str
    values: tuple[float, ...]
    threads: int = 1
    envs: int | None = None
    warmup: int = 0
    scenario: Scenario | None = None
    policy: Policy | None = None

    @property
    def servers(self) -> int:
        """How many servers the system has; 0 if there is none."""
        return 0 if self.scenario is None else self.scenario.servers

    @property
    def median(self) -> float:
        """The middle of the values."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest value."""
        return max(self.values)

    def nanoseconds(self) -> Measurement:
        """Return a measurement of things a second as ns a thing."""
        thing = self.unit.removesuffix("s a second")
        return replace(self, unit=f"ns a {thing}", values=tuple(1e9 / rate for rate in self.values))


def throughput(
    blocks: Sequence[Block], units: int, seconds: float, timings: int = TIMINGS
) -> tuple[float, ...]:
    """Return how many units a second are done, timing by timing.

    Args:
        blocks: What to repeat, a block a thread.
        units: What one call of a block does.
        seconds: Length of a timing.
        timings: How many.
    """

    def rate(block: Block) -> float:
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            block()
            done += units
        return done / elapsed

    if len(blocks) == 1:
        return tuple(rate(blocks[0]) for _ in range(timings))
    with ThreadPoolExecutor(len(blocks)) as pool:
        return tuple(sum(pool.map(rate, blocks)) for _ in range(timings))
