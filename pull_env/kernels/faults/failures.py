"""Servers fail and return, pools are drained and added, routers restart."""

from __future__ import annotations

import math

from pull_env.kernels import state
from pull_env.kernels.access import (
    condition_of,
    drain_at,
    has_flag,
    head_of,
    health_of,
    held_server_cell,
    history_of,
    list_of,
    pool_of,
    router_of,
    server_of,
)
from pull_env.kernels.announce import announce, end_announcement, withdraw
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.faults.events import schedule
from pull_env.kernels.faults.server_health import RESTARTS, exponential, is_open, speed_time, up_or_down_time
from pull_env.kernels.messages import delete
from pull_env.kernels.random import bits
from pull_env.kernels.routing.memory import forget_all


@entry
def start_faults(system: int) -> None:
    """Schedule the first faults of a system just started, all servers being up."""
    head = head_of(system)
    head.fault_key = bits(system, state.FAULT_STREAM)
    for server in range(head.n):
        health = health_of(system, server)
        health.period_end = health.work_period_end = up_or_down_time(system, server, 0)
        health.slow_period_end = speed_time(system, server, 0)
        schedule(system, health.period_end, state.SERVER_SWITCHES, server, -1, 0)
        holder = server_of(system, server).holder
        if holder >= 0:
            schedule(system, head.repeat, state.PULL_REPEATS, server, holder, health.announcement)
    for router in range(head.R):
        schedule_restart(system, router, 0)
    for k in range(head.drain_count):
        drain = drain_at(head.drains, k)
        kind = state.POOL_OPENS if drain.opens else state.POOL_CLOSES
        schedule(system, drain.time, kind, drain.pool, -1, 0)


@kernel
def switch_server(system: int, server: int) -> None:
    """Let `server` fail, unnoticed by routers, or return.

    If it is available on its return, it announces itself.
    """
    health = health_of(system, server)
    health.period += 1
    health.period_end += up_or_down_time(system, server, health.period)
    schedule(system, health.period_end, state.SERVER_SWITCHES, server, -1, 0)
    down = health.period & 1
    if condition_of(system, server_of(system, server).pool).open:
        head_of(system).closed_servers += 1 if down else -1
    if down:
        end_announcement(system, server)
    else:
        announce_if_available(system, server)


@kernel
def announce_if_available(system: int, server: int) -> None:
    """Announce `server`, which may accept customers again, if it is available."""
    record, threshold = server_of(system, server), head_of(system).threshold
    if threshold > 0 and record.holder < 0 and record.queue < threshold and is_open(system, server):
        announce(system, server)


@kernel
def open_pool(system: int, pool: int) -> None:
    """Add a pool that was drained."""
    condition_of(system, pool).open = 1
    first = pool_of(system, pool).start
    for server in range(first, first + pool_of(system, pool).size):
        head_of(system).closed_servers -= 1 - (health_of(system, server).period & 1)
        announce_if_available(system, server)


@kernel
def close_pool(system: int, pool: int) -> None:
    """Drain a pool: its servers accept no more customers, and end their announcements."""
    condition_of(system, pool).open = 0
    first = pool_of(system, pool).start
    for server in range(first, first + pool_of(system, pool).size):
        head_of(system).closed_servers += 1 - (health_of(system, server).period & 1)
        if server_of(system, server).holder < 0:
            continue
        if has_flag(system, state.STALE):
            end_announcement(system, server)
        else:
            withdraw(system, -1, server)


@kernel
def schedule_restart(system: int, router: int, number: int) -> None:
    """Schedule the next restart of `router` after `number` restarts."""
    head = head_of(system)
    if head.restart < math.inf:
        time = exponential(system, RESTARTS, router, number) * head.restart
        schedule(system, head.now + time, state.ROUTER_RESTARTS, -1, router, number)


@kernel
def restart_router(system: int, router: int, number: int) -> None:
    """Let `router` forget its messages, its memory, and what it learned from probes."""
    for pool in range(head_of(system).J):
        mine = list_of(system, router, pool)
        while mine.held > 0:
            delete(system, router, held_server_cell(system, router, pool, mine.held - 1).value)
        mine.probed_wait = mine.probed_idle = 0.0
        if has_flag(system, state.KEEP_HISTORY):
            history = history_of(system, router, pool)
            history.count, history.reservation = 0, 0.0
    router_of(system, router).last_announced = -1
    forget_all(system, router)
    schedule_restart(system, router, number + 1)
