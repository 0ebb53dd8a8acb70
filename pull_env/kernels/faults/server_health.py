"""When servers fail, return, or are slow: a function of the key of the run.

So failures are the same for all policies on one seed, and a server's future is known when a customer joins:
as service is FCFS, its wait and its service time, interruptions included, are fixed at that moment.
"""

from __future__ import annotations

import math

import numpy as np

from pull_env.kernels.access import condition_of, head_of, health_of, pool_of, server_of, work_of
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import CUSTOMERS_LOST, CUSTOMERS_RESTART

FAILURES, SLOWNESS, RESTARTS = range(3)  # processes of alternating periods, numbered from 0
PROCESSES = 3
MOST_TRIES = 1000  # a service that starts over at each interruption is resumed after so many
U = np.uint64
GOLDEN, FIRST, SECOND = U(0x9E3779B97F4A7C15), U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
S11, S27, S30, S31 = U(11), U(27), U(30), U(31)


@kernel
def mix(word: np.uint64) -> np.uint64:
    """Return 64 mixed bits: the finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    word = (word ^ (word >> S30)) * FIRST
    word = (word ^ (word >> S27)) * SECOND
    return word ^ (word >> S31)


@kernel
def exponential(system: int, process: int, item: int, period: int) -> float:
    """Return the exponential number, mean 1, of a period of a process of an item."""
    drawn = mix(mix(head_of(system).fault_key + U(item * PROCESSES + process) * GOLDEN) + U(period) * GOLDEN)
    return -math.log((float(drawn >> S11) + 1.0) * 2.0**-53)


@kernel
def up_or_down_time(system: int, server: int, period: int) -> float:
    """Return the length of a period of `server`: up, or if `period` is odd, down."""
    condition = condition_of(system, server_of(system, server).pool)
    mean = condition.down if period & 1 else condition.up
    return exponential(system, FAILURES, server, period) * mean if mean < math.inf else math.inf


@kernel
def speed_time(system: int, server: int, period: int) -> float:
    """Return the length of a period of `server`: normal, or if `period` is odd, slow."""
    condition = condition_of(system, server_of(system, server).pool)
    mean = condition.slow if period & 1 else condition.normal
    return exponential(system, SLOWNESS, server, period) * mean if mean < math.inf else math.inf


@kernel
def is_open(system: int, server: int) -> bool:
    """Return whether `server` accepts customers: it is up, and not drained."""
    health = health_of(system, server)
    up = (health.period & 1 == 0) & (head_of(system).now < health.period_end)
    return up & (condition_of(system, server_of(system, server).pool).open != 0)


@kernel
def plan_service(system: int, server: int, queue: int) -> float:
    """Return when the current customer will start at `server`, of length `queue`.

    Its service time is written to `head.service`, and whether it will be lost to `head.doomed`.
    """
    head, health = head_of(system), health_of(system, server)
    starts = head.now if queue == 0 else work_of(system, server).work_end
    lost_at = loss_time(system, server)
    service = service_duration(system, server, starts, head.size) if starts < lost_at else 0.0
    head.doomed = starts >= lost_at or service == math.inf
    if head.doomed:
        head.lost_customers += 1
        starts = min(starts, health.period_end)
        service = health.period_end - starts
    head.service = service
    return float(starts)


@kernel
def loss_time(system: int, server: int) -> float:
    """Return when the customers now at `server` will be lost with it; inf: never."""
    lost = head_of(system).failure_fate == CUSTOMERS_LOST
    return health_of(system, server).period_end if lost else math.inf


@kernel
def service_duration(system: int, server: int, starts: float, need: float) -> float:
    """Return how long `server` takes, from `starts`, for a requirement of `need`.

    Interruptions and slow periods are included. The periods at the end of its work are kept, as its next
    customer starts no earlier.

    Returns:
        That time; inf: the server fails before, and its customers are lost.
    """
    head, health = head_of(system), health_of(system, server)
    pool = server_of(system, server).pool
    rate, factor = pool_of(system, pool).rate, condition_of(system, pool).factor
    now, left, tries = starts, need, 0
    while True:
        while health.work_period_end <= now:
            health.work_period += 1
            health.work_period_end += up_or_down_time(system, server, health.work_period)
        while health.slow_period_end <= now:
            health.slow_period += 1
            health.slow_period_end += speed_time(system, server, health.slow_period)
        speed = rate * factor if health.slow_period & 1 else rate
        end = min(health.work_period_end, health.slow_period_end)
        up = health.work_period & 1 == 0
        if up and left / speed <= end - now:
            return left / speed if now == starts else now - starts + left / speed
        if end >= loss_time(system, server):
            return math.inf
        left -= speed * (end - now) if up else 0.0
        interrupted = up and end == health.work_period_end
        if interrupted and head.failure_fate == CUSTOMERS_RESTART and tries < MOST_TRIES:
            left, tries = need, tries + 1
        now = end
