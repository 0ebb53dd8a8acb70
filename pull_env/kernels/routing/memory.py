"""What a router remembers: servers, the queue length each last reported, and when.

Each group (a pool, or all servers) has M entries; with COMPLETE a router remembers every server from the
start, entry k being that of server k. Answers and used pull-messages are recorded; an assignment adds one to
a remembered length. Servers, lengths and times are separate vectors, so that one instruction handles LANES
entries. Times are compared by their bits, which order like integers: no time is negative, except -inf in an
empty entry.
"""

from __future__ import annotations

import math
from typing import Any

from pull_env.kernels.access import (
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
from pull_env.kernels.compiler.intrinsics import (
    ALL_LANES,
    LANES,
    equal_lanes_32,
    equal_lanes_64,
    lowest_bit,
    max_64,
    min_32,
    min_64,
)
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import COMPLETE, KEEP_MEMORY, KEEP_OBSERVATION, UNLIMITED

INT_BYTES, FLOAT_BYTES = 4, 8  # of a server or a queue length, and of a time
LATEST = (1 << 63) - 1
UNKNOWN = -2  # `best_entry` of a memory that has changed


@kernel
def queues_address(system: int, row: int) -> int:
    """Return the address of the queue lengths of the memory at address `row`."""
    return row + head_of(system).M * INT_BYTES


@kernel
def times_address(system: int, row: int) -> int:
    """Return the address of the times of the memory at address `row`."""
    return row + head_of(system).M * FLOAT_BYTES


@kernel
def queue_at(system: int, row: int, entry: int) -> Any:
    """Return the cell of the queue length of an entry."""
    return integer_at(queues_address(system, row), entry)


@kernel
def time_at(system: int, row: int, entry: int) -> Any:
    """Return the cell of the time of an entry."""
    return real_at(times_address(system, row), entry)


@kernel
def find_entry(system: int, row: int, server: int) -> int:
    """Return the entry of `server`, -1 if it is not remembered."""
    if has_flag(system, COMPLETE):
        return server
    entry = -1
    for k in range(0, head_of(system).M, LANES):
        same = equal_lanes_32(row + k * INT_BYTES, server)
        entry = k + lowest_bit(same) if same != 0 else entry
    return entry


@kernel
def oldest_entry(system: int, row: int) -> int:
    """Return the entry to replace: the first empty one, else the first oldest."""
    entry, oldest = -1, LATEST
    for k in range(0, head_of(system).M, LANES):
        times = times_address(system, row) + k * FLOAT_BYTES
        time = min_64(times, ALL_LANES)
        entry = k + lowest_bit(equal_lanes_64(times, time)) if time < oldest else entry
        oldest = min(time, oldest)
    return entry


@kernel
def remember(system: int, router: int, server: int, queue: int) -> None:
    """Record that `server` has `queue` customers now, if needed for the oldest entry."""
    row = memory_of(system, router, group_of(system, server_of(system, server).pool))
    entry = find_entry(system, row, server)
    if entry < 0:
        entry = oldest_entry(system, row)
    integer_at(row, entry).value = server
    queue_at(system, row, entry).value = queue
    time_at(system, row, entry).value = head_of(system).now
    invalidate_best(system, router, server_of(system, server).pool)


@kernel
def add_assignment(system: int, router: int, server: int) -> None:
    """Add the current customer to the remembered length of `server`, up to its buffer."""
    pool = server_of(system, server).pool
    row = memory_of(system, router, group_of(system, pool))
    entry = find_entry(system, row, server)
    if entry >= 0:
        length = queue_at(system, row, entry)
        length.value = min(length.value + 1, pool_of(system, pool).buffer)
        invalidate_best(system, router, pool)


@kernel
def invalidate_best(system: int, router: int, pool: int) -> None:
    """Mark the best remembered server of `pool` as unknown: memory has changed.

    Where one group has all servers, this concerns every pool.
    """
    if has_flag(system, KEEP_OBSERVATION):
        together = head_of(system).G == 1
        for j in range(0 if together else pool, head_of(system).J if together else pool + 1):
            list_of(system, router, j).best_entry = UNKNOWN


@kernel
def refresh_best(system: int, router: int, pool: int) -> Any:
    """Return the LIST of `router` and `pool`, its best remembered server up to date."""
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
    """Clear the memory of `router`; with COMPLETE it takes all servers to be empty."""
    if not has_flag(system, KEEP_MEMORY):
        return
    head, complete = head_of(system), has_flag(system, COMPLETE)
    for group in range(head.G):
        row = memory_of(system, router, group)
        for entry in range(head.M):
            if time_at(system, row, entry).value == math.inf:
                continue  # padding of the last LANES
            known = complete and entry < head.n
            integer_at(row, entry).value = entry if known else -1
            queue_at(system, row, entry).value = 0 if known else UNLIMITED
            time_at(system, row, entry).value = -math.inf
    for pool in range(head.J):
        invalidate_best(system, router, pool)


@kernel
def best_entry_of(system: int, router: int, pool: int) -> int:
    """Return the entry of the shortest remembered queue of `pool`; -1: none.

    Ties go to the most recent. O(M); with COMPLETE, O(size of the pool).
    """
    row = memory_of(system, router, group_of(system, pool))
    start, end = 0, head_of(system).M
    if has_flag(system, COMPLETE):
        start, end = pool_of(system, pool).start, pool_of(system, pool).start + pool_of(system, pool).size
    entry, least, freshest = -1, UNLIMITED, LATEST
    for k in range(start // LANES * LANES, end, LANES):
        lengths = queues_address(system, row) + k * INT_BYTES
        times = times_address(system, row) + k * FLOAT_BYTES
        known = mask_of_pool(system, row + k * INT_BYTES, pool)
        length = min_32(lengths, known)
        shortest = known & equal_lanes_32(lengths, length)
        time = max_64(times, shortest)
        better = (length < least) | ((length == least) & (time > freshest))
        entry = k + lowest_bit(shortest & equal_lanes_64(times, time)) if better else entry
        least, freshest = min(length, least), time if better else freshest
    return entry


@kernel
def mask_of_pool(system: int, servers: int, pool: int) -> int:
    """Return the mask of those of LANES servers from address `servers` in `pool`.

    All, if each pool has its own group: an empty entry has length UNLIMITED, which no server has.
    """
    if head_of(system).G == head_of(system).J:
        return ALL_LANES
    known = 0
    for k in range(LANES):
        server = integer_at(servers, k).value
        known |= (1 << k) if server >= 0 and server_of(system, server).pool == pool else 0
    return known


@kernel
def recall(system: int, router: int, pool: int) -> int:
    """Return the best remembered server of `pool` (-1: of least delay); -1: none."""
    server, least, fresh = -1, 0.0, 0.0
    for j in range(head_of(system).J):
        if pool >= 0 and pool != j:
            continue
        entry, row = best_entry_of(system, router, j), memory_of(system, router, group_of(system, j))
        if entry < 0:
            continue
        delay = (queue_at(system, row, entry).value + 1) / pool_of(system, j).rate
        time = time_at(system, row, entry).value
        if server < 0 or delay < least or (delay == least and time > fresh):
            server, least, fresh = int(integer_at(row, entry).value), delay, time
    return server
