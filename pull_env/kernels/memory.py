"""What a router remembers: in each pool the last M servers that it knew the length of, that length, and when.

An answer, or a pull-message taken, is knowledge; an assignment adds one to a length that is remembered.
"""

from __future__ import annotations

from pull_env.kernels.jit import kernel
from pull_env.kernels.state import UNLIMITED, head_of, memory_of, pool_of, server_of


@kernel
def remember(system: int, router: int, server: int, queue: int) -> None:
    """Note that `server` has `queue` customers now, in place of its last entry or the oldest entry."""
    pool = server_of(system, server).pool
    at = 0
    for k in range(head_of(system).M):
        if memory_of(system, router, pool, k).server == server:
            at = k
            break
        if memory_of(system, router, pool, k).when < memory_of(system, router, pool, at).when:
            at = k
    entry = memory_of(system, router, pool, at)
    entry.server, entry.queue, entry.when = server, queue, head_of(system).now


@kernel
def note_assignment(system: int, router: int, server: int) -> None:
    """Add the customer just assigned to the remembered length of `server`, up to its buffer."""
    pool = server_of(system, server).pool
    for k in range(head_of(system).M):
        entry = memory_of(system, router, pool, k)
        if entry.server == server:
            entry.queue = min(entry.queue + 1, pool_of(system, pool).buffer)


@kernel
def best_in_pool(system: int, router: int, pool: int) -> int:
    """Return the entry of the smallest remembered length, the freshest of equals; -1 if there is none."""
    best, least, fresh = -1, UNLIMITED, 0.0
    for k in range(head_of(system).M):  # without branches: their outcomes cannot be foreseen
        entry = memory_of(system, router, pool, k)
        tie = (entry.queue == least) & (entry.when > fresh)
        better = (entry.server >= 0) & ((entry.queue < least) | tie)
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
        best = best_in_pool(system, router, j)
        if best < 0:
            continue
        entry = memory_of(system, router, j, best)
        delay = (entry.queue + 1) / pool_of(system, j).rate
        if server < 0 or delay < least or (delay == least and entry.when > fresh):
            server, least, fresh = int(entry.server), delay, entry.when
    return server
