"""What a router remembers: the servers whose length it learned last, that length, and when.

It has M places in each group, which is a pool or all servers; or it remembers every server from the start,
each in a place of its own. An answer, or a pull-message taken, is knowledge; an assignment adds one to a
length that is remembered. The servers in a group's places lie side by side, then their lengths, then the
times, so that one instruction looks at LANES of them. Times are compared by their bits, which as integers are
in the same order: no time is negative, but for -inf where a place is empty.
"""

from __future__ import annotations

import math
from typing import Any

from pull_env.kernels.compiler.intrinsics import (
    EVERY,
    LANES,
    equal_32,
    equal_64,
    first,
    least_32,
    least_64,
    most_64,
)
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import (
    COMPLETE,
    KEEP_MEMORY,
    KEEP_OBSERVATION,
    UNLIMITED,
    group_of,
    has_flag,
    head_of,
    integer_at,
    list_of,
    memory_of,
    pool_of,
    real_at,
    server_of,
)

SHORT, LONG = 4, 8  # bytes of a server or a length, and of a time
LATEST = (1 << 63) - 1
UNKNOWN = -2  # the best place of a memory that has changed


@kernel
def queues_address(system: int, row: int) -> int:
    """Return the address of the lengths of the memory at address `row`."""
    return row + head_of(system).M * SHORT


@kernel
def times_address(system: int, row: int) -> int:
    """Return the address of the times of the memory at address `row`."""
    return row + head_of(system).M * LONG


@kernel
def queue_at(system: int, row: int, place: int) -> Any:
    """Return the cell of the length in a place."""
    return integer_at(queues_address(system, row), place)


@kernel
def time_at(system: int, row: int, place: int) -> Any:
    """Return the cell of the time in a place."""
    return real_at(times_address(system, row), place)


@kernel
def find_entry(system: int, row: int, server: int) -> int:
    """Return the place of `server`, -1 if it is not remembered."""
    if has_flag(system, COMPLETE):
        return server
    place = -1
    for k in range(0, head_of(system).M, LANES):
        same = equal_32(row + k * SHORT, server)
        place = k + first(same) if same != 0 else place
    return place


@kernel
def oldest_entry(system: int, row: int) -> int:
    """Return the place to forget first: an empty one, else the oldest, the first of equals."""
    place, oldest = -1, LATEST
    for k in range(0, head_of(system).M, LANES):
        times = times_address(system, row) + k * LONG
        time = least_64(times, EVERY)
        place = k + first(equal_64(times, time)) if time < oldest else place
        oldest = min(time, oldest)
    return place


@kernel
def remember(system: int, router: int, server: int, queue: int) -> None:
    """Note that `server` has `queue` customers now, in its place or in that of the oldest."""
    row = memory_of(system, router, group_of(system, server_of(system, server).pool))
    place = find_entry(system, row, server)
    if place < 0:
        place = oldest_entry(system, row)
    integer_at(row, place).value = server
    queue_at(system, row, place).value = queue
    time_at(system, row, place).value = head_of(system).now
    invalidate_best(system, router, server_of(system, server).pool)


@kernel
def add_assignment(system: int, router: int, server: int) -> None:
    """Add the customer just assigned to the remembered length of `server`, up to its buffer."""
    pool = server_of(system, server).pool
    row = memory_of(system, router, group_of(system, pool))
    place = find_entry(system, row, server)
    if place >= 0:
        length = queue_at(system, row, place)
        length.value = min(length.value + 1, pool_of(system, pool).buffer)
        invalidate_best(system, router, pool)


@kernel
def invalidate_best(system: int, router: int, pool: int) -> None:
    """Let `router` look for its best server of `pool` anew, of every pool where one group holds all."""
    if has_flag(system, KEEP_OBSERVATION):
        together = head_of(system).G == 1
        for j in range(0 if together else pool, head_of(system).J if together else pool + 1):
            list_of(system, router, j).best_entry = UNKNOWN


@kernel
def refresh_best(system: int, router: int, pool: int) -> Any:
    """Return what `router` holds and knows of `pool`: its best server, too, of which it keeps a view."""
    mine = list_of(system, router, pool)
    if mine.best_entry == UNKNOWN:
        row = memory_of(system, router, group_of(system, pool))
        mine.best_entry = best_entry_of(system, router, pool)
        if mine.best_entry >= 0:
            mine.best_queue = queue_at(system, row, mine.best_entry).value
            mine.best_time = time_at(system, row, mine.best_entry).value
    return mine


@kernel
def forget_all(system: int, router: int) -> None:
    """Forget all that `router` remembers; one that remembers every server takes them to be empty."""
    if not has_flag(system, KEEP_MEMORY):
        return
    head, complete = head_of(system), has_flag(system, COMPLETE)
    for group in range(head.G):
        row = memory_of(system, router, group)
        for place in range(head.M):
            if time_at(system, row, place).value == math.inf:
                continue  # no place of the memory, but of the last LANES
            known = complete and place < head.n
            integer_at(row, place).value = place if known else -1
            queue_at(system, row, place).value = 0 if known else UNLIMITED
            time_at(system, row, place).value = -math.inf
    for pool in range(head.J):
        invalidate_best(system, router, pool)


@kernel
def best_entry_of(system: int, router: int, pool: int) -> int:
    """Return the place of the smallest remembered length of `pool`, the freshest of equals; -1: none.

    O(M); where a router remembers every server, O(size of the pool).
    """
    row = memory_of(system, router, group_of(system, pool))
    start, end = 0, head_of(system).M
    if has_flag(system, COMPLETE):
        start, end = pool_of(system, pool).start, pool_of(system, pool).start + pool_of(system, pool).size
    place, least, freshest = -1, UNLIMITED, LATEST
    for k in range(start // LANES * LANES, end, LANES):
        lengths, times = queues_address(system, row) + k * SHORT, times_address(system, row) + k * LONG
        known = mask_of_pool(system, row + k * SHORT, pool)
        length = least_32(lengths, known)
        shortest = known & equal_32(lengths, length)
        time = most_64(times, shortest)
        better = (length < least) | ((length == least) & (time > freshest))
        place = k + first(shortest & equal_64(times, time)) if better else place
        least, freshest = min(length, least), time if better else freshest
    return place


@kernel
def mask_of_pool(system: int, servers: int, pool: int) -> int:
    """Return the mask of those of LANES places, the first at address `servers`, that hold a server of `pool`.

    All, where there are no others: the length in an empty place is UNLIMITED, which no server's is.
    """
    if head_of(system).G == head_of(system).J:
        return EVERY
    known = 0
    for k in range(LANES):
        server = integer_at(servers, k).value
        known |= (1 << k) if server >= 0 and server_of(system, server).pool == pool else 0
    return known


@kernel
def recall(system: int, router: int, pool: int) -> int:
    """Return the best remembered server of `pool`; of all (-1) that of least expected delay; -1: none."""
    server, least, fresh = -1, 0.0, 0.0
    for j in range(head_of(system).J):
        if pool >= 0 and pool != j:
            continue
        place, row = best_entry_of(system, router, j), memory_of(system, router, group_of(system, j))
        if place < 0:
            continue
        delay = (queue_at(system, row, place).value + 1) / pool_of(system, j).rate
        time = time_at(system, row, place).value
        if server < 0 or delay < least or (delay == least and time > fresh):
            server, least, fresh = int(integer_at(row, place).value), delay, time
    return server
