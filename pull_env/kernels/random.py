"""Random streams: xoshiro256++ in uint64 words, seeded by numpy's SeedSequence.

There is one stream per source of randomness, so that two policies on one seed meet the same customers (common
random numbers). A draw gives 64 bits, used in halves of 32 that are scaled by multiplication, without
division: an integer below n deviates from uniform by at most n / 2^32.

Source: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.access import (
    RING_BYTES,
    has_flag,
    head_of,
    number_at,
    pool_at,
    ring_of,
    router_at,
    stream_of,
)
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import MESSAGE_STREAM, PREFETCH, RATE, RING_SIZE, STREAMS

U = np.uint64
LOW = U(0xFFFFFFFF)
HALF = U(32)
WHOLE = U(1 << 32)
S17, S19, S23, S34, S41, S45 = U(17), U(19), U(23), U(34), U(41), U(45)


def spawn(seed: int, episode: int = 0) -> npt.NDArray[np.uint64]:
    """Return the streams, (STREAMS, 4) uint64, of one episode of a user's seed."""
    sequence = np.random.SeedSequence(seed, spawn_key=(episode,))
    return sequence.generate_state(4 * STREAMS, np.uint64).reshape(STREAMS, 4).astype(np.uint64)


@kernel
def peek(system: int, which: int) -> np.uint64:
    """Return the 64 bits that `draw` will draw next from stream `which`."""
    words = stream_of(system, which)
    total = words.a + words.d
    return ((total << S23) | (total >> S41)) + words.a


@kernel
def bits(system: int, which: int) -> np.uint64:
    """Take 64 random bits from stream `which`.

    With PREFETCH they were drawn earlier, and the stream is RING_SIZE draws ahead; except the stream of
    messages, whose lists are few and short, so that the memory they need is in the cache.
    """
    if has_flag(system, PREFETCH) and which != MESSAGE_STREAM:
        cell = ring_cell(system, which, 0)
        drawn = cell.value
        cell.value = draw(system, which)
        ring_of(system, which).next += 1
        return drawn
    return draw(system, which)


@kernel
def ring_cell(system: int, ring: int, k: int) -> Any:
    """Return the cell of the number of `ring` used after k others; -1: the newest."""
    index = (ring_of(system, ring).next + k) & (RING_SIZE - 1)
    return number_at(head_of(system).rings + ring * RING_BYTES, index)


@kernel
def fill_ring(system: int, which: int) -> None:
    """Draw RING_SIZE numbers of stream `which` ahead."""
    for k in range(RING_SIZE):
        ring_cell(system, which, k).value = draw(system, which)


@kernel
def rewind(system: int, which: int) -> None:
    """Move stream `which` back to its position without numbers drawn ahead."""
    for _ in range(RING_SIZE):
        undraw(system, which)


@kernel
def draw(system: int, which: int) -> np.uint64:
    """Draw 64 random bits from stream `which`."""
    words = stream_of(system, which)
    a, b, c, d = words.a, words.b, words.c, words.d
    drawn = peek(system, which)
    shifted = b << S17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    words.a, words.b, words.c, words.d = a, b, c, (d << S45) | (d >> S19)
    return drawn


@kernel
def undraw(system: int, which: int) -> None:
    """Move stream `which` back by one draw."""
    words = stream_of(system, which)
    a, c, d = words.a, words.c, (words.d >> S45) | (words.d << S19)
    a ^= d
    mixed = words.b ^ c  # b ^ (b << 17), b being the word before
    mixed ^= mixed << S17
    b = mixed ^ (mixed << S34)
    words.a, words.b, words.c, words.d = a, b, words.b ^ b ^ a, d ^ b


@kernel
def below(half: np.uint64, n: int) -> Any:
    """Return an integer in [0, n) from 32 random bits."""
    return np.int64((half * U(n)) >> HALF)


@kernel
def pick_server_in_pool(system: int, pool: int, drawn: np.uint64) -> Any:
    """Return the server of `pool` picked by the low half of 64 random bits."""
    record = pool_at(head_of(system).pools, pool)
    return record.start + below(drawn & LOW, record.size)


@kernel
def pool_of_service(system: int, half: np.uint64) -> Any:
    """Return the pool of a service event, from 32 random bits that are no arrival."""
    head = head_of(system)
    pool: Any = np.int64(half >= pool_at(head.pools, 0).cumulative_threshold)
    for j in range(1, head.J - 1):  # one or two pools need no loop, which would be vectorised
        pool += half >= pool_at(head.pools, j).cumulative_threshold  # no early end: unpredictable
    return pool


@kernel
def pool_by_capacity(system: int, half: np.uint64) -> Any:
    """Return a pool in proportion to the capacities, from 32 random bits."""
    arrivals = head_of(system).arrival_threshold
    return pool_of_service(system, arrivals + ((half * (WHOLE - arrivals)) >> HALF))


@kernel
def pick_server(system: int, pool: int, weights: int, drawn: np.uint64) -> int:
    """Return the server of `pool` (-1: all, by `weights`) picked by 64 random bits."""
    if pool < 0:
        if weights != RATE:
            return below(drawn & LOW, head_of(system).n)
        pool = pool_by_capacity(system, drawn >> HALF)
    return pick_server_in_pool(system, pool, drawn)


@kernel
def pick_router(system: int, half: np.uint64) -> Any:
    """Return a router by its share of arrivals, from 32 random bits.

    Alias method: the integer part of bits x R picks a column, the fraction (32 bits too) one of its two ends.

    Source: A. J. Walker, "An efficient method for generating discrete random variables", ACM TOMS 3 (1977).
    """
    head = head_of(system)
    scaled = half * U(head.R)
    k: Any = np.int64(scaled >> HALF)
    column = router_at(head.routers, k)
    return k if (scaled & LOW) < column.alias_threshold else column.alias


def alias_columns(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return the thresholds and aliases by which the alias method draws by `weights`.

    Returns:
        (columns,) uint64, out of 2^32 (which is: always this column), and (columns,) int32.
    """
    size = weights.size
    share = weights * (size / weights.sum())
    threshold, alias = np.full(size, 1 << 32, np.uint64), np.arange(size, dtype=np.int32)
    small, large = [k for k in range(size) if share[k] < 1], [k for k in range(size) if share[k] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        threshold[low], alias[low] = round(float(share[low]) * 2**32), high
        share[high] -= 1 - share[low]
        (small if share[high] < 1 else large).append(high)
    return threshold, alias
