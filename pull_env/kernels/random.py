"""Random streams: xoshiro256++ in uint64 arrays, one row of four words a stream, seeded by numpy's
SeedSequence.

One stream for each source of chance, so that two policies on one seed meet the same customers (common random
numbers). A draw gives 64 bits. They are used in halves of 32, scaled by multiplication: no division, and an
integer below n is off from uniform by n / 2^32 at most.

Source: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import (
    MESSAGE_STREAM,
    PREFETCH,
    RATE,
    RING_BYTES,
    RING_SIZE,
    STREAMS,
    has_flag,
    head_of,
    number_at,
    pool_at,
    ring_of,
    router_at,
    stream_of,
)

U = np.uint64
LOW = U(0xFFFFFFFF)
HALF = U(32)
WHOLE = U(1 << 32)
S17, S19, S23, S34, S41, S45 = U(17), U(19), U(23), U(34), U(41), U(45)


def spawn(seed: int, episode: int = 0) -> npt.NDArray[np.uint64]:
    """Return fresh streams, (STREAMS, 4) uint64, for one replication or episode of a user's seed."""
    sequence = np.random.SeedSequence(seed, spawn_key=(episode,))
    return sequence.generate_state(4 * STREAMS, np.uint64).reshape(STREAMS, 4).astype(np.uint64)


@kernel
def peek(system: int, which: int) -> np.uint64:
    """Return the 64 random bits that `bits` will draw next from stream `which` of `system`."""
    words = stream_of(system, which)
    total = words.a + words.d
    return ((total << S23) | (total >> S41)) + words.a


@kernel
def bits(system: int, which: int) -> np.uint64:
    """Draw 64 random bits from stream `which` of `system` and move it on.

    In a run with PREFETCH they were drawn before, and the stream stands RING_SIZE draws further on: but
    that of messages, whose lists are few and short at the end where they come.
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
    """Return the cell of the random number of `ring` used after `k` others to come; -1: of the newest."""
    place = (ring_of(system, ring).next + k) & (RING_SIZE - 1)
    return number_at(head_of(system).rings + ring * RING_BYTES, place)


@kernel
def fill_ring(system: int, which: int) -> None:
    """Draw the numbers that stream `which` is to be ahead by."""
    for k in range(RING_SIZE):
        ring_cell(system, which, k).value = draw(system, which)


@kernel
def rewind(system: int, which: int) -> None:
    """Move stream `which` back to where it stands without what was drawn ahead."""
    for _ in range(RING_SIZE):
        undraw(system, which)


@kernel
def draw(system: int, which: int) -> np.uint64:
    """Draw 64 random bits from the words of stream `which` of `system` and move them on."""
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
    """Return the server of `pool` that the low half of the random bits `drawn` picks."""
    place = pool_at(head_of(system).pools, pool)
    return place.start + below(drawn & LOW, place.size)


@kernel
def pool_of_service(system: int, half: np.uint64) -> Any:
    """Return the pool of a server drawn by rate, from 32 random bits that are no arrival."""
    head = head_of(system)
    pool: Any = np.int64(half >= pool_at(head.pools, 0).cumulative_threshold)
    for j in range(1, head.J - 1):  # one or two pools do without a loop, of which the compiler makes vectors
        pool += (
            half >= pool_at(head.pools, j).cumulative_threshold
        )  # a sum, as where it ends could not be foreseen
    return pool


@kernel
def pool_by_capacity(system: int, half: np.uint64) -> Any:
    """Return a pool in proportion to the capacities, from 32 random bits."""
    cut = head_of(system).arrival_threshold
    return pool_of_service(system, cut + ((half * (WHOLE - cut)) >> HALF))


@kernel
def pick_server(system: int, pool: int, weights: int, drawn: np.uint64) -> int:
    """Return the server of `pool` (-1: all, uniformly or by rate) that 64 random bits pick."""
    if pool < 0:
        if weights != RATE:
            return below(drawn & LOW, head_of(system).n)
        pool = pool_by_capacity(system, drawn >> HALF)
    return pick_server_in_pool(system, pool, drawn)


@kernel
def pick_router(system: int, half: np.uint64) -> Any:
    """Return a router by its share of arrivals, from 32 random bits, by the alias method.

    The integer part of half x R picks a column, the fraction, 32 bits as well, picks one of its two ends.

    Source: A. J. Walker, "An efficient method for generating discrete random variables", ACM TOMS 3 (1977).
    """
    head = head_of(system)
    scaled = half * U(head.R)
    k: Any = np.int64(scaled >> HALF)
    column = router_at(head.routers, k)
    return k if (scaled & LOW) < column.alias_threshold else column.alias


def alias_columns(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return `cut` (2^32: always this column) and `alias`, which make the alias method draw by `weights`."""
    size = weights.size
    share = weights * (size / weights.sum())
    cut, alias = np.full(size, 1 << 32, np.uint64), np.arange(size, dtype=np.int32)
    small, large = [k for k in range(size) if share[k] < 1], [k for k in range(size) if share[k] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        cut[low], alias[low] = round(float(share[low]) * 2**32), high
        share[high] -= 1 - share[low]
        (small if share[high] < 1 else large).append(high)
    return cut, alias
