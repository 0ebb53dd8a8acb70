"""The steps a router can take for the customer at hand; each returns a server, or -1 where it cannot act."""

from __future__ import annotations

from typing import Any

from pull_env.kernels.index import count_lowest, lowest_level, pick_lowest
from pull_env.kernels.jit import kernel
from pull_env.kernels.memory import recall, remember
from pull_env.kernels.messages import choose, contains, drop
from pull_env.kernels.state import (
    BY_DELAY,
    BY_QUEUE,
    BY_QUEUE_THEN_SPEED,
    BY_WORK,
    CYCLE,
    INSPECT,
    KEEP_MEMORY,
    KEEP_VIEW,
    PROBE,
    RATE,
    RECALL,
    SEND,
    TAKE,
    asked_of,
    head_of,
    list_of,
    pool_of,
    router_of,
    server_of,
    work_of,
)
from pull_env.kernels.stream import HALF, LOW, POLICY, below, bits, weighted_pool

RECENT = 1 / 16  # weight of the latest in a router's running means


@kernel
def serve(system: int, router: int, step: Any) -> int:
    """Return the server that `step` gives the customer at `router`; -1 if the step cannot act."""
    if step.kind == TAKE:
        return take(system, router, step)
    if step.kind == PROBE:
        return probe(system, router, step)
    if step.kind == SEND:
        return draw_server(system, step)
    if step.kind == INSPECT:
        return inspect(system, step)
    if step.kind == CYCLE:
        return cycle(system, router, step)
    if step.kind == RECALL:
        return recall(system, router, step.pool)
    return -1


@kernel
def take(system: int, router: int, step: Any) -> int:
    """Choose a server whose pull-message `router` holds. The message is used up when the server ceases to be
    available.

    That is when `assign` withdraws it; a stale message is used up at once. It promises a length below the
    threshold, and that is what the router remembers.
    """
    server = choose(system, router, step.pool, step.order)
    if server >= 0:
        if head_of(system).stale:
            drop(system, router, server)
        if head_of(system).keeps & KEEP_MEMORY:
            remember(system, router, server, head_of(system).threshold - 1)
    return server


@kernel
def draw_server(system: int, step: Any) -> int:
    """Draw a server: of the pool, or of all, uniformly or by rate; one draw of the stream."""
    drawn = bits(system, POLICY)
    pool = int(step.pool)
    if pool < 0:
        if step.weights != RATE:
            return below(drawn & LOW, head_of(system).n)
        pool = weighted_pool(system, drawn >> HALF)
    return pool_of(system, pool).start + below(drawn & LOW, pool_of(system, pool).size)


@kernel
def probe(system: int, router: int, step: Any) -> int:
    """Ask servers one at a time until one promises a wait of `stop_at` or less; return the best."""
    population = head_of(system).n if step.pool < 0 else pool_of(system, step.pool).size
    at_most = step.at_most if step.replace else min(step.at_most, population)
    best, least, speed = -1, 0.0, 0.0
    for count in range(at_most):
        server = draw_server(system, step)
        while not step.replace and contains(head_of(system).asked, count, server):
            server = draw_server(system, step)
        asked_of(system, count).value = server
        head_of(system).answers = count + 1
        head_of(system).probes += 2
        queue, pool = server_of(system, server).queue, server_of(system, server).pool
        rate = pool_of(system, pool).rate
        note_answer(system, router, server, queue)
        value = (queue + 1) / rate if step.rank == BY_DELAY else float(queue)
        if step.rank == BY_WORK:
            value = work_left(system, server)
        better = value == least and rate > speed and step.rank == BY_QUEUE_THEN_SPEED
        if best < 0 or value < least or better:
            best, least, speed = server, value, rate
        if queue / rate <= step.stop_at:
            break
    return best


@kernel
def note_answer(system: int, router: int, server: int, queue: int) -> None:
    """Keep what the answer of a probe tells the router."""
    keeps = head_of(system).keeps
    if keeps & KEEP_MEMORY:
        remember(system, router, server, queue)
    if keeps & KEEP_VIEW:
        pool = server_of(system, server).pool
        mine = list_of(system, router, pool)
        mine.answer += RECENT * (queue / pool_of(system, pool).rate - mine.answer)
        mine.idle += RECENT * ((1.0 if queue == 0 else 0.0) - mine.idle)


@kernel
def work_left(system: int, server: int) -> float:
    """Return the unfinished work at `server` in time units (calendar clock)."""
    return max(work_of(system, server).clear - head_of(system).now, 0.0)


@kernel
def inspect(system: int, step: Any) -> int:
    """Look at all servers and return the best, a random one of equals: O(J) by the index of queue lengths."""
    head_of(system).probes += 2 * head_of(system).n
    head_of(system).answers = -1
    if step.rank == BY_WORK:
        return least_work(system)
    J, index = head_of(system).J, head_of(system).by_queue
    least, speed = merit(system, 0, step.rank)
    for j in range(1, J):
        value, rate = merit(system, j, step.rank)
        if value < least or (value == least and rate > speed):
            least, speed = value, rate
    ties = 0
    for j in range(J):
        if merit(system, j, step.rank) == (least, speed):
            ties += count_lowest(index, j)
    k = below(bits(system, POLICY) & LOW, ties)
    for j in range(J):
        if merit(system, j, step.rank) == (least, speed):
            if k < count_lowest(index, j):
                return pick_lowest(index, j, pool_of(system, j).start + pool_of(system, j).size, k)
            k -= count_lowest(index, j)
    return -1


@kernel
def merit(system: int, pool: int, rank: int) -> tuple[float, float]:
    """Return what the best server of `pool` is compared by: smaller first value, then larger second."""
    queue, rate = lowest_level(head_of(system).by_queue, pool), pool_of(system, pool).rate
    if rank == BY_DELAY:
        return (queue + 1) / rate, 0.0
    return float(queue), 0.0 if rank == BY_QUEUE else rate


@kernel
def least_work(system: int) -> int:
    """Return a server of least unfinished work, a random one of equals: O(n)."""
    least, ties = work_left(system, 0), 1
    for server in range(1, head_of(system).n):
        work = work_left(system, server)
        if work < least:
            least, ties = work, 1
        elif work == least:
            ties += 1
    k = below(bits(system, POLICY) & LOW, ties)
    for server in range(head_of(system).n):
        if work_left(system, server) == least:
            if k == 0:
                return server
            k -= 1
    return -1


@kernel
def cycle(system: int, router: int, step: Any) -> int:
    """Return the next server of the router's round robin: over all servers, or smoothly weighted by rate.

    Weighted: each pool earns its capacity at every turn, the richest pool serves and pays for all, and within
        the pool the servers take turns. So a server's share is its rate over the capacity, spread as evenly
        as can be.
    """
    if step.weights != RATE:
        holder = router_of(system, router)
        server = holder.cycle
        holder.cycle = server + 1 if server + 1 < head_of(system).n else 0
        return int(server)
    richest, total = 0, 0.0
    for j in range(head_of(system).J):
        p = pool_of(system, j)
        list_of(system, router, j).credit += p.rate * p.size
        total += p.rate * p.size
        if list_of(system, router, j).credit > list_of(system, router, richest).credit:
            richest = j
    chosen, p = list_of(system, router, richest), pool_of(system, richest)
    chosen.credit -= total
    server = chosen.cycle
    chosen.cycle = server + 1 if server + 1 < p.size else 0
    return int(p.start + server)
