"""All that only troubled systems do, behind one entry: see `aside`."""

from __future__ import annotations

import math

from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.faults.entry import ASK, BEST_OPEN, HAPPEN, LAUNCH, RECANT, STAY
from pull_env.kernels.faults.events import take_event
from pull_env.kernels.faults.failures import close_pool, open_pool, restart, switch
from pull_env.kernels.faults.message_delay import ask, deliver, launch, recant, remove, repeat
from pull_env.kernels.faults.server_health import is_open, stay
from pull_env.kernels.random import LOW, below, bits
from pull_env.kernels.routing.steps import promise, work_left
from pull_env.kernels.state import (
    BY_QUEUE_THEN_SPEED,
    BY_WORK,
    CLOSE,
    OPEN,
    POLICY_STREAM,
    PULL_COMES,
    REMOVE_COMES,
    REPEAT,
    SWITCH,
    event_at,
    head_of,
    pool_of,
    server_of,
)


@entry
def dispatch_operation(system: int, what: int, first: int, second: int) -> float:
    """Do what `what` names, with its arguments, and return what it gives."""
    result = 0.0
    if what == HAPPEN:
        happen(system)
    elif what == LAUNCH:
        launch(system, first, second)
    elif what == RECANT:
        recant(system, first, second)
    elif what == STAY:
        result = stay(system, first, second)
    elif what == ASK:
        result = 1.0 if ask(system, first, second != 0) else 0.0
    elif what == BEST_OPEN:
        result = float(best_open(system, first))
    return result


@kernel
def happen(system: int) -> None:
    """Let the next event happen that is no departure."""
    event = event_at(head_of(system).events, take_event(system))
    kind, server, router, number = event.kind, event.server, event.router, event.number
    if kind == PULL_COMES:
        deliver(system, router, server, number)
    elif kind == REMOVE_COMES:
        remove(system, router, server)
    elif kind == REPEAT:
        repeat(system, router, server, number)
    elif kind == SWITCH:
        switch(system, server)
    elif kind == OPEN:
        open_pool(system, server)
    elif kind == CLOSE:
        close_pool(system, server)
    else:
        restart(system, router, number)


@kernel
def best_open(system: int, rank: int) -> int:
    """Return the best server of those that accept customers, a random one of equals: O(n).

    Of all, as empty, if none does.
    """
    n, least, speed, ties = head_of(system).n, math.inf, 0.0, 0
    for server in range(n):
        value, rate = merit_of(system, server, rank)
        if value < least or (value == least and rate > speed):
            least, speed, ties = value, rate, 0
        ties += value == least and rate == speed
    k = below(bits(system, POLICY_STREAM) & LOW, ties)
    for server in range(n):
        if merit_of(system, server, rank) == (least, speed):
            if k == 0:
                return server
            k -= 1
    return -1


@kernel
def merit_of(system: int, server: int, rank: int) -> tuple[float, float]:
    """Return what a server is compared by: smaller first value, then larger second."""
    if not is_open(system, server):
        return math.inf, 0.0
    rate = pool_of(system, server_of(system, server).pool).rate
    if rank == BY_WORK:
        return work_left(system, server), 0.0
    return promise(server_of(system, server).queue, rate, rank), rate if rank == BY_QUEUE_THEN_SPEED else 0.0
