"""What a router remembers: the servers whose length it learned last, that length, and when.

It remembers M servers in each group, which is a pool or all of them; or every server from the start, each in
an entry of its own. An answer, or a pull-message taken, is knowledge; an assignment adds one to a length that
is remembered.
"""

from __future__ import annotations

import math

from pull_env.kernels.jit import kernel
from pull_env.kernels.state import (
    COMPLETE,
    KEEP_MEMORY,
    UNLIMITED,
    group_of,
    has,
    head_of,
    list_of,
    memory_of,
    pool_of,
    server_of,
)


@kernel
def entry_of(system: int, router: int, server: int) -> int:
    """Return the entry of `server` in its group, -1 if it is not remembered."""
    if has(system, COMPLETE):
        return server
    at, group = -1, group_of(system, server_of(system, server).pool)
    for k in range(head_of(system).M):  # no early end: it cannot be foreseen, which costs more
        at = k if memory_of(system, router, group, k).server == server else at
    return at


@kernel
def oldest_entry(system: int, router: int, group: int) -> int:
    """Return the entry to forget first: an empty one, else the oldest."""
    at, since = 0, math.inf
    for k in range(head_of(system).M):
        when = memory_of(system, router, group, k).when
        at = k if when < since else at
        since = min(when, since)
    return at


@kernel
def remember(system: int, router: int, server: int, queue: int) -> None:
    """Note that `server` has `queue` customers now, in place of its last entry or the oldest entry."""
    pool = server_of(system, server).pool
    group, at = group_of(system, pool), entry_of(system, router, server)
    if at < 0:
        at = oldest_entry(system, router, group)
    entry = memory_of(system, router, group, at)
    forgotten, before = entry.server, entry.queue
    entry.server, entry.queue, entry.when = server, queue, head_of(system).now
    compare(system, router, pool, at, queue > before)
    if head_of(system).G == 1 and forgotten >= 0 and server_of(system, forgotten).pool != pool:
        other = list_of(system, router, server_of(system, forgotten).pool)
        if other.best == at:
            other.best = find_best(system, router, server_of(system, forgotten).pool)


@kernel
def note_assignment(system: int, router: int, server: int) -> None:
    """Add the customer just assigned to the remembered length of `server`, up to its buffer."""
    pool, at = server_of(system, server).pool, entry_of(system, router, server)
    if at >= 0:
        entry = memory_of(system, router, group_of(system, pool), at)
        before = entry.queue
        entry.queue = min(before + 1, pool_of(system, pool).buffer)
        compare(system, router, pool, at, entry.queue > before)


@kernel
def forget_all(system: int, router: int) -> None:
    """Forget all that `router` remembers; one that remembers every server takes them to be empty."""
    if not has(system, KEEP_MEMORY):
        return
    head, complete = head_of(system), has(system, COMPLETE)
    for group in range(head.G):
        for k in range(head.M):
            entry = memory_of(system, router, group, k)
            entry.server, entry.queue, entry.when = k if complete else -1, 0, -math.inf
    for pool in range(head.J):
        list_of(system, router, pool).best = pool_of(system, pool).start if complete else -1


@kernel
def compare(system: int, router: int, pool: int, at: int, longer: bool) -> None:
    """Note whether entry `at`, just written, is the best of `pool` now; `longer`: than what stood there."""
    mine, group = list_of(system, router, pool), group_of(system, pool)
    if mine.best < 0:
        mine.best = at
    elif mine.best == at:
        if longer:
            mine.best = find_best(system, router, pool)
    else:
        new, best = memory_of(system, router, group, at), memory_of(system, router, group, mine.best)
        fresher = new.when > best.when or (new.when == best.when and at < mine.best)
        if new.queue < best.queue or (new.queue == best.queue and fresher):
            mine.best = at


@kernel
def find_best(system: int, router: int, pool: int) -> int:
    """Return the entry of the smallest remembered length, the freshest of equals; -1 if there is none.

    `list_of(system, router, pool).best` always holds it: most steps ask for it, and few change it.
    """
    best, least, fresh, group = -1, UNLIMITED, 0.0, group_of(system, pool)
    first, last = 0, head_of(system).M
    if has(system, COMPLETE):
        first, last = pool_of(system, pool).start, pool_of(system, pool).start + pool_of(system, pool).size
    mixed = head_of(system).G == 1
    for k in range(first, last):
        entry = memory_of(system, router, group, k)
        known = entry.server >= 0
        if mixed and known:
            known = server_of(system, entry.server).pool == pool
        tie = (entry.queue == least) & (entry.when > fresh)
        better = known & ((entry.queue < least) | tie)  # no branches: their outcomes cannot be foreseen
        best = k if better else best
        least = entry.queue if better else least
        fresh = entry.when if better else fresh
    return best


@kernel
def recall(system: int, router: int, pool: int) -> int:
    """Return the best remembered server of `pool`; of all (-1) that of least expected delay; -1: none."""
    server, least, fresh = -1, 0.0, 0.0
    for j in range(head_of(system).J):
        if pool >= 0 and pool != j:
            continue
        best = list_of(system, router, j).best
        if best < 0:
            continue
        entry = memory_of(system, router, group_of(system, j), best)
        delay = (entry.queue + 1) / pool_of(system, j).rate
        if server < 0 or delay < least or (delay == least and entry.when > fresh):
            server, least, fresh = int(entry.server), delay, entry.when
    return server
