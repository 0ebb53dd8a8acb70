"""Positions in the picture of a scenario, the same in every frame."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pull_env.rendering.snapshot import Integers
from pull_env.scenario.scenario import Scenario

MARGIN, LABELS, PLOT = 20, 200, 720  # widths in pixels: margins, labels at the left, the plot
PLOT_LEFT, FRAME = MARGIN + LABELS, MARGIN + LABELS + PLOT + MARGIN
BLOCK = 16  # video encoders want sides that this divides
ROUTERS_TOP, ROUTERS_HEIGHT, WIDEST_ROUTER, NARROWEST_ROUTER = 104, 64, 48, 3
POOLS_TOP, POOLS_HEIGHT, LEAST_POOL, POOL_GAP = 216, 360, 38, 16
FOOT = 72  # least height of the legend and the sentence on the last customer
PITCHES = (36, 30, 24, 20, 18, 15, 12, 10, 8)  # sizes of a cell that divide the plot
ROUND_NUMBERS: tuple[int, ...] = tuple(digit * 10**zeros for zeros in range(10) for digit in (1, 2, 5))


class Layout:
    """Positions of the routers and servers of one scenario.

    In a large system a bar shows several routers, and a cell several servers of a pool, sorted before. Cells
    have one size in all pools, so that areas compare.

    Attributes:
        servers_per_cell: How many servers of a pool share a cell.
        pitch: Distance from cell to cell, in pixels.
        columns: Cells side by side.
        gap: Free pixels between two cells.
        tops: (J,) y of each pool's first row.
        routers_per_bar: How many routers share a bar.
        bars: Number of bars.
        bar: Distance from bar to bar, in pixels.
        bar_width: Width of a bar, in pixels.
        height: Of the picture, in pixels.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Choose the largest cells that fit, then the fewest servers per cell."""
        sizes = np.array([pool.size for pool in scenario.pools])
        room = max(POOLS_HEIGHT, LEAST_POOL * sizes.size)
        shared = [(size, PITCHES[-1]) for size in ROUND_NUMBERS[1:]]
        for self.servers_per_cell, self.pitch in [(1, pitch) for pitch in PITCHES] + shared:
            self.columns = PLOT // self.pitch
            rows = -(-_groups(sizes, self.servers_per_cell) // self.columns)
            heights = np.maximum(rows * self.pitch, LEAST_POOL)
            if heights.sum() <= room:
                break
        self.gap = max(self.pitch // 8, 2)
        bottoms = (heights + POOL_GAP).cumsum() + POOLS_TOP
        self.tops = bottoms - heights - POOL_GAP
        self.height = BLOCK * math.ceil((bottoms[-1] + FOOT) / BLOCK)
        self.routers_per_bar = round_up(scenario.routers * NARROWEST_ROUTER / PLOT)
        self.bars = int(_groups(np.array(scenario.routers), self.routers_per_bar))
        self.bar = min(PLOT // self.bars, WIDEST_ROUTER)
        self.bar_width = self.bar - min(self.bar // 3, 2)

    def bar_left(self, number: int) -> int:
        """Return x of the left edge of a bar."""
        return PLOT_LEFT + number * self.bar


def grouped(values: Integers, size: int) -> tuple[Integers, npt.NDArray[np.intp]]:
    """Put values into groups of `size`, the last of which may be smaller.

    Groups of more than one value are made in ascending order.

    Returns:
        The median of each group, (groups,), and the group of each value, in the shape of `values`.
    """
    order = np.arange(values.size) if size == 1 else np.argsort(values, kind="stable")
    group = np.empty(values.size, np.intp)
    group[order] = np.arange(values.size) // size
    first = np.arange(0, values.size, size)
    return values[order[(first + np.minimum(first + size, values.size)) // 2]], group


def _groups(counts: npt.NDArray[np.int_], size: int) -> npt.NDArray[np.int_]:
    """Return how many groups of at most `size` hold `counts` items."""
    return -(-counts // size)


def round_up(value: float) -> int:
    """Return the least of 1, 2, 5, 10, 20, 50, ... from `value` on."""
    return next(number for number in ROUND_NUMBERS if number >= value)
