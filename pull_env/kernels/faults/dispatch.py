"""The operations behind `entry.call_faults`, and the processing of events."""

from __future__ import annotations

import math

from pull_env.kernels import state
from pull_env.kernels.access import event_at, head_of, pool_of, server_of
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.faults.entry import (
    BEST_OPEN_SERVER,
    PLAN_SERVICE,
    PROBE_SERVER,
    PROCESS_EVENT,
    SEND_REMOVE,
    START_ANNOUNCEMENT,
)
from pull_env.kernels.faults.events import pop_event
from pull_env.kernels.faults.failures import close_pool, open_pool, restart_router, switch_server
from pull_env.kernels.faults.message_delay import (
    probe_server,
    receive_pull,
    receive_remove,
    repeat_pull,
    send_remove,
    start_announcement,
)
from pull_env.kernels.faults.server_health import is_open, plan_service
from pull_env.kernels.random import LOW, below, bits
from pull_env.kernels.routing.steps import rank_value, work_left


@entry
def dispatch_operation(system: int, what: int, first: int, second: int) -> float:
    """Dispatch operation `what` and return its result, 0 if it has none."""
    result = 0.0
    if what == PROCESS_EVENT:
        process_event(system)
    elif what == START_ANNOUNCEMENT:
        start_announcement(system, first, second)
    elif what == SEND_REMOVE:
        send_remove(system, first, second)
    elif what == PLAN_SERVICE:
        result = plan_service(system, first, second)
    elif what == PROBE_SERVER:
        result = 1.0 if probe_server(system, first, second != 0) else 0.0
    elif what == BEST_OPEN_SERVER:
        result = float(best_open_server(system, first))
    return result


@kernel
def process_event(system: int) -> None:
    """Process the next event that is not a departure."""
    event = event_at(head_of(system).events, pop_event(system))
    kind, server, router, number = event.kind, event.server, event.router, event.number
    if kind == state.PULL_ARRIVES:
        receive_pull(system, router, server, number)
    elif kind == state.REMOVE_ARRIVES:
        receive_remove(system, router, server)
    elif kind == state.PULL_REPEATS:
        repeat_pull(system, router, server, number)
    elif kind == state.SERVER_SWITCHES:
        switch_server(system, server)
    elif kind == state.POOL_OPENS:
        open_pool(system, server)
    elif kind == state.POOL_CLOSES:
        close_pool(system, server)
    else:
        restart_router(system, router, number)


@kernel
def best_open_server(system: int, rank: int) -> int:
    """Return the best server of those that accept customers, ties at random: O(n).

    If none does, all are equal.
    """
    n, least, speed, ties = head_of(system).n, math.inf, 0.0, 0
    for server in range(n):
        value, rate = server_merit(system, server, rank)
        if value < least or (value == least and rate > speed):
            least, speed, ties = value, rate, 0
        ties += value == least and rate == speed
    k = below(bits(system, state.POLICY_STREAM) & LOW, ties)
    for server in range(n):
        if server_merit(system, server, rank) == (least, speed):
            if k == 0:
                return server
            k -= 1
    return -1


@kernel
def server_merit(system: int, server: int, rank: int) -> tuple[float, float]:
    """Return the merit of a server: least value first, then highest rate."""
    if not is_open(system, server):
        return math.inf, 0.0
    rate = pool_of(system, server_of(system, server).pool).rate
    if rank == state.BY_WORK:
        return work_left(system, server), 0.0
    value = rank_value(server_of(system, server).queue, rate, rank)
    return value, rate if rank == state.BY_QUEUE_THEN_SPEED else 0.0
