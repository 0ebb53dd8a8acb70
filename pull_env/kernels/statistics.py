"""What a run counts: areas over time, customers, and a histogram of waits.

With the Markov clock, the wait of a customer that meets q customers is Erlang(q, rate), so the counts of q
per pool determine mean and quantiles without the noise of realised service times. With the calendar clock the
realised wait is binned by its logarithm.
"""

from __future__ import annotations

import math

from pull_env.kernels.access import count_at, has_flag, head_of, pool_of
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.state import CALENDAR, SHORT_BINS, WAIT_BINS_PER_OCTAVE, WAIT_OCTAVES

FIRST_OCTAVE = WAIT_OCTAVES[0]
BINS = (WAIT_OCTAVES[1] - WAIT_OCTAVES[0]) * WAIT_BINS_PER_OCTAVE + 1


@entry
def update_areas(system: int) -> None:
    """Bring the areas of all pools up to now; call this before they are read.

    A customer adds the time between its arrival and its departure. With times counted from `areas_time`, the
    last update, an arrival subtracts its time from the area, a departure adds its own, and whoever is present
    now adds the time now: one addition per event, and no product.
    """
    head = head_of(system)
    for j in range(head.J):
        pool = pool_of(system, j)
        pool.area += pool.customers * (head.now - head.areas_time)
        pool.busy_area += pool.busy * (head.now - head.areas_time)
    head.areas_time = head.now


@kernel
def count_accepted(system: int, pool: int, queue: int, wait: float) -> None:
    """Count a customer accepted in `pool` by a server that had `queue` customers."""
    p = pool_of(system, pool)
    p.accepted += 1
    p.waited += queue > 0
    p.queue_sum += queue
    level = min(queue, head_of(system).Q - 1)
    if has_flag(system, CALENDAR):
        p.wait_sum += wait
        level = wait_bin(wait)
    histogram = head_of(system).short_histogram
    if level >= SHORT_BINS:
        histogram, level = head_of(system).long_histogram, level - SHORT_BINS
    count_at(histogram, level * head_of(system).J + pool).value += 1


@kernel
def wait_bin(wait: float) -> int:
    """Return the bin of a realised wait: 0 for no wait, else linear within octaves."""
    if wait <= 0.0:
        return 0
    mantissa, exponent = math.frexp(wait)  # wait = mantissa 2^exponent, mantissa in [.5, 1)
    within = int((mantissa - 0.5) * (2 * WAIT_BINS_PER_OCTAVE))
    return min(max((exponent - FIRST_OCTAVE) * WAIT_BINS_PER_OCTAVE + within + 1, 1), BINS - 1)
