"""A measurement: several timings of one thing, shown as their median and range."""

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
        values: One per timing.
        threads: How many ran at once.
        envs: How many envs were stepped at once; None: no env was.
        warmup: Customers simulated per thread before the first timing.
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
        """Servers of the system; 0 without one."""
        return 0 if self.scenario is None else self.scenario.servers

    @property
    def median(self) -> float:
        """Median of the values."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """Least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Greatest value."""
        return max(self.values)

    def nanoseconds(self) -> Measurement:
        """Return a rate per second as nanoseconds per unit."""
        unit = self.unit.removesuffix("s per second")
        return replace(self, unit=f"ns per {unit}", values=tuple(1e9 / rate for rate in self.values))


def throughput(
    blocks: Sequence[Block], units: int, seconds: float, timings: int = TIMINGS
) -> tuple[float, ...]:
    """Return the units done per second, one value per timing.

    Args:
        blocks: What to repeat, one block per thread.
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
