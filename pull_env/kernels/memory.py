"""What a router remembers: the servers whose length it learned last, that length, and when.

It remembers M servers in each group, which is a pool or all of them; or every server from the start, each in
an entry of its own. An answer, or a pull-message taken, is knowledge; an assignment adds one to a length that
is remembered.
"""

from __future__ import annotations

from pull_env.kernels.jit import kernel
from pull_env.kernels.state import (
    group_of,
    head_of,
    memory_of,
    pool_of,
    server_of,
)


@kernel
def entry_of(system: int, router: int, server: int) -> int:
    """Return the entry of `server` in its group, -1 if it is not remembered."""
    if head_of(system).complete:
        return server
    group = group_of(system, server_of(system, server).pool)
    for k in range(head_of(system).M):
        if memory_of(system, router, group, k).server == server:
            return k
    return -1


@kernel
def remember(system: int, router: int, server: int, queue: int) -> None:
    """Note that `server` has `queue` customers now, in place of its last entry or the oldest entry."""
    group = group_of(system, server_of(system, server).pool)
    at = entry_of(system, router, server)
    if at < 0:
        at = 0
        for k in range(1, head_of(system).M):
            if memory_of(system, router, group, k).when < memory_of(system, router, group, at).when:
                at = k
    entry = memory_of(system, router, group, at)
    entry.server, entry.queue, entry.when = server, queue, head_of(system).now


@kernel
def note_assignment(system: int, router: int, server: int) -> None:
    """Add the customer just assigned to the remembered length of `server`, up to its buffer."""
    pool, at = server_of(system, server).pool, entry_of(system, router, server)
    if at >= 0:
        entry = memory_of(system, router, group_of(system, pool), at)
        entry.queue = min(entry.queue + 1, pool_of(system, pool).buffer)


@kernel
def best_in_pool(system: int, router: int, pool: int) -> int:
    """Return the entry of the smallest remembered length, the freshest of equals; -1 if there is none."""
    best, group = -1, group_of(system, pool)
    first, last = 0, head_of(system).M
    if head_of(system).complete:
        first, last = pool_of(system, pool).start, pool_of(system, pool).start + pool_of(system, pool).size
    for k in range(first, last):
        entry = memory_of(system, router, group, k)
        if entry.server < 0 or server_of(system, entry.server).pool != pool:
            continue
        rival = memory_of(system, router, group, max(best, 0))
        if best < 0 or entry.queue < rival.queue or (entry.queue == rival.queue and entry.when > rival.when):
            best = k
    return best


@kernel
def recall(system: int, router: int, pool: int) -> int:
    """Return the best remembered server of `pool`; of all (-1) that of least expected delay; -1: none."""
    server, least, fresh = -1, 0.0, 0.0
    for j in range(head_of(system).J):
        if pool >= 0 and pool != j:
            continue
        best = best_in_pool(system, router, j)
        if best < 0:
            continue
        entry = memory_of(system, router, group_of(system, j), best)
        delay = (entry.queue + 1) / pool_of(system, j).rate
        if server < 0 or delay < least or (delay == least and entry.when > fresh):
            server, least, fresh = int(entry.server), delay, entry.when
    return server
