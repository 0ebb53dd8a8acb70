"""The steps of a policy: each returns a server for the current customer, or -1.

-1 means that the step cannot act, and the next one of the chain is tried.
"""

from __future__ import annotations

import math
from typing import Any

from pull_env.kernels.access import (
    has_flag,
    head_of,
    integer_at,
    list_of,
    memory_of,
    pool_of,
    probed_of,
    router_of,
    server_of,
    unanswered_of,
    work_of,
)
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.entry import BEST_OPEN_SERVER, PROBE_SERVER, call_faults
from pull_env.kernels.messages import choose_message, contains, delete
from pull_env.kernels.prefetch.large_systems import prefetch_drawn, prefetch_taken
from pull_env.kernels.random import LOW, below, bits, pick_server
from pull_env.kernels.routing.level_index import count_lowest, lowest_level, pick_lowest
from pull_env.kernels.routing.memory import queue_at, recall, remember, time_at
from pull_env.kernels.routing.optimal_search import search
from pull_env.kernels.routing.probe_answers import record_answer
from pull_env.kernels.state import (
    BY_DELAY,
    BY_QUEUE_THEN_SPEED,
    BY_WORK,
    CALENDAR,
    CYCLE,
    FAULTS,
    INSPECT,
    KEEP_HISTORY,
    KEEP_MEMORY,
    KEEP_QUEUE_INDEX,
    LAST,
    LOOKUP,
    POLICY_STREAM,
    PREFETCH,
    PROBE,
    RATE,
    RECALL,
    SEARCH,
    SEND,
    STALE,
    TAKE,
)


@kernel
def try_step(system: int, router: int, step: Any) -> int:
    """Return the server that `step` gives a customer at `router`; -1: cannot act."""
    if step.kind == TAKE:
        return take(system, router, step)
    if step.kind == PROBE:
        return probe(system, router, step)
    if step.kind == SEND:
        return send(system, step)
    if has_flag(system, KEEP_QUEUE_INDEX) and step.kind == INSPECT:
        return inspect(system, step)
    if step.kind == CYCLE:
        return cycle(system, router, step)
    if has_flag(system, KEEP_MEMORY) and step.kind == RECALL:
        return recall(system, router, step.pool)
    if step.kind == LAST:
        return int(router_of(system, router).last_announced)
    if step.kind == LOOKUP:
        return look_up(system, step)
    if has_flag(system, KEEP_HISTORY) and step.kind == SEARCH:
        return search(system, router, step)
    return -1


@kernel
def take(system: int, router: int, step: Any) -> int:
    """Choose a server whose pull-message `router` holds.

    A message is used up when its server becomes unavailable, which `run.assign` notices; a stale message at
    once. It announces a queue shorter than the threshold, and that is what the router remembers.
    """
    if has_flag(system, PREFETCH):
        prefetch_taken(system, step)
    server = choose_message(system, router, step.pool, step.order)
    if server >= 0:
        if has_flag(system, STALE):
            delete(system, router, server)
        if has_flag(system, KEEP_MEMORY):
            remember(system, router, server, head_of(system).threshold - 1)
    return server


@kernel
def send(system: int, step: Any) -> int:
    """Choose a server at random."""
    server = pick_server(system, step.pool, step.weights, bits(system, POLICY_STREAM))
    if has_flag(system, PREFETCH):
        prefetch_drawn(system, step.pool, step.weights)
    return server


@kernel
def probe(system: int, router: int, step: Any) -> int:
    """Probe servers one by one until a wait is at most `stop_at`; return the best."""
    population = head_of(system).n if step.pool < 0 else pool_of(system, step.pool).size
    at_most = step.at_most if step.replace else min(step.at_most, population)
    best, least, speed, probed = -1, math.inf, 0.0, 0
    while probed < at_most:
        server = pick_server(system, step.pool, step.weights, bits(system, POLICY_STREAM))
        while not step.replace and contains(head_of(system).probed, probed, server):
            server = pick_server(system, step.pool, step.weights, bits(system, POLICY_STREAM))
        if has_flag(system, PREFETCH):
            prefetch_drawn(system, step.pool, step.weights)
        probed_of(system, probed).value = server
        probed += 1
        head_of(system).probed_count = probed
        if has_flag(system, FAULTS):
            answers = call_faults(system, PROBE_SERVER, server, step.stop_at >= 0.0) != 0.0
            unanswered_of(system, probed - 1).value = not answers
            if not answers:
                continue
        else:
            head_of(system).probes += 2
        queue, pool = server_of(system, server).queue, server_of(system, server).pool
        rate = pool_of(system, pool).rate
        record_answer(system, router, server, queue, step)
        value = rank_value(queue, rate, step.rank)
        if has_flag(system, CALENDAR) and step.rank == BY_WORK:
            value = work_left(system, server)
        faster = (value == least) & (rate > speed) & (step.rank == BY_QUEUE_THEN_SPEED)
        better = (value < least) | faster  # no branch: it would be unpredictable
        best = server if better else best
        least = value if better else least
        speed = rate if better else speed
        if step.stop_at >= 0.0 and queue / rate <= step.stop_at:
            break
    if has_flag(system, KEEP_MEMORY) and step.recall:
        best = better_remembered(system, router, step, best, probed)
        remember_answers(system, router, probed)
    if has_flag(system, FAULTS) and best < 0:
        best = int(probed_of(system, 0).value)  # no answer
    return best


@kernel
def remember_answers(system: int, router: int, probed: int) -> None:
    """Remember the servers just probed.

    Only when all were probed, as remembering may replace entries that `better_remembered` considers.
    """
    for k in range(probed):
        server = probed_of(system, k).value
        if has_flag(system, FAULTS) and unanswered_of(system, k).value:
            continue
        remember(system, router, server, server_of(system, server).queue)


@kernel
def better_remembered(system: int, router: int, step: Any, best: int, probed: int) -> int:
    """Return the best remembered server if better than `best` (-1: none), else that."""
    least, speed, fresh = math.inf, 0.0, math.inf
    if best >= 0:
        speed = pool_of(system, server_of(system, best).pool).rate
        least = rank_value(server_of(system, best).queue, speed, step.rank)
    for group in range(head_of(system).G):
        row = memory_of(system, router, group)
        for k in range(head_of(system).M):
            server, time = int(integer_at(row, k).value), time_at(system, row, k).value
            if server < 0:
                continue
            pool = server_of(system, server).pool
            if step.pool >= 0 and step.pool != pool:
                continue
            rate = pool_of(system, pool).rate
            value = rank_value(queue_at(system, row, k).value, rate, step.rank)
            if value > least:
                continue
            if value == least:
                faster = step.rank == BY_QUEUE_THEN_SPEED and rate > speed
                slower = step.rank == BY_QUEUE_THEN_SPEED and rate < speed
                if slower or (not faster and time <= fresh):
                    continue
            if not contains(head_of(system).probed, probed, server):
                best, least, speed, fresh = server, value, rate, time
    return best


@kernel
def work_left(system: int, server: int) -> float:
    """Return the unfinished work at `server` in time units (calendar clock)."""
    return max(work_of(system, server).work_end - head_of(system).now, 0.0)


@kernel
def inspect(system: int, step: Any) -> int:
    """Look at all servers and return the best; ties at random.

    O(J) by the index of queue lengths. O(n) by work if no server is idle, or if some accept nothing.
    """
    head = head_of(system)
    head.probes += 2 * head.n
    head.probed_count = -1
    if has_flag(system, FAULTS):
        head.probe_time += 2.0 * head.delay  # full information is never lost, and takes the mean time
        if head.closed_servers > 0:
            return int(call_faults(system, BEST_OPEN_SERVER, step.rank, 0))
    if has_flag(system, CALENDAR) and step.rank == BY_WORK and not any_idle(system):
        return least_work(system)
    J, index = head_of(system).J, head_of(system).by_queue
    least, speed = pool_merit(system, 0, step.rank)
    for j in range(1, J):
        value, rate = pool_merit(system, j, step.rank)
        if value < least or (value == least and rate > speed):
            least, speed = value, rate
    ties = 0
    for j in range(J):
        if pool_merit(system, j, step.rank) == (least, speed):
            ties += count_lowest(index, j)
    k = below(bits(system, POLICY_STREAM) & LOW, ties)
    for j in range(J):
        if pool_merit(system, j, step.rank) == (least, speed):
            if k < count_lowest(index, j):
                return pick_lowest(index, j, pool_of(system, j).start + pool_of(system, j).size, k)
            k -= count_lowest(index, j)
    return -1


@kernel
def pool_merit(system: int, pool: int, rank: int) -> tuple[float, float]:
    """Return the merit of the best server of `pool`: least value, then highest rate."""
    queue, rate = lowest_level(head_of(system).by_queue, pool), pool_of(system, pool).rate
    return rank_value(queue, rate, rank), rate if rank == BY_QUEUE_THEN_SPEED else 0.0


@kernel
def rank_value(queue: int, rate: float, rank: int) -> float:
    """Return what servers are ranked by, least first: the delay, or the queue length."""
    return (queue + 1) / rate if rank == BY_DELAY else float(queue)


@kernel
def any_idle(system: int) -> bool:
    """Return whether a server is idle."""
    least = 1
    for j in range(head_of(system).J):
        least = min(least, lowest_level(head_of(system).by_queue, j))
    return least == 0


@kernel
def look_up(system: int, step: Any) -> int:
    """Return the server in the table for the queue lengths of all servers."""
    head, index = head_of(system), 0
    head.probes += 2 * step.at_most
    head.probed_count = -1
    if has_flag(system, FAULTS) and step.at_most > 0:
        head.probe_time += 2.0 * head.delay
    for server in range(head.n):
        limit = integer_at(head.limits, server).value
        index = index * (limit + 1) + min(server_of(system, server).queue, limit)
    return integer_at(head.table, index).value


@kernel
def least_work(system: int) -> int:
    """Return a server of least unfinished work, ties at random: O(n)."""
    least, ties = work_left(system, 0), 1
    for server in range(1, head_of(system).n):
        work = work_left(system, server)
        if work < least:
            least, ties = work, 1
        elif work == least:
            ties += 1
    k = below(bits(system, POLICY_STREAM) & LOW, ties)
    for server in range(head_of(system).n):
        if work_left(system, server) == least:
            if k == 0:
                return server
            k -= 1
    return -1


@kernel
def cycle(system: int, router: int, step: Any) -> int:
    """Return the next server of the round robin, over all servers or weighted by rate.

    Weighted, and smooth: each pool earns its capacity at every customer, the richest one serves and pays the
    total, and its servers take turns. A server's share is its rate over the capacity, as evenly as possible.
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
