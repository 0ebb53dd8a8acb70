"""Messages that take time, get lost, overtake each other, and may arrive too late.

A server knows when and to whom (`holder`) it announced itself, not what that router holds. A message without
delay arrives at once: with no delay and no loss, results are bit-identical to those without FAULTS.
"""

from __future__ import annotations

import math

import numpy as np

from pull_env.kernels.access import head_of, health_of, server_of, slot_cell
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.events import schedule
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.messages import delete, store
from pull_env.kernels.random import HALF, LOW, bits
from pull_env.kernels.state import DELAY_STREAM, PULL_ARRIVES, PULL_REPEATS, REMOVE_ARRIVES

UNIT = 2.0**-32


@kernel
def message_time(system: int) -> float:
    """Return how long a message sent now takes; inf: it gets lost."""
    head = head_of(system)
    if head.loss == np.uint64(0) and not head.random_delay:
        return float(head.delay)
    drawn = bits(system, DELAY_STREAM)
    if (drawn & LOW) < head.loss:
        head.lost_messages += 1
        return math.inf
    return -math.log((float(drawn >> HALF) + 1.0) * UNIT) * head.delay if head.random_delay else head.delay


@kernel
def start_announcement(system: int, router: int, server: int) -> None:
    """Announce `server` to `router`."""
    server_of(system, server).holder = router
    health_of(system, server).announcement += 1
    send_pull(system, router, server)


@kernel
def send_pull(system: int, router: int, server: int) -> None:
    """Send, or send again, the pull-message of the current announcement of `server`."""
    head, number = head_of(system), health_of(system, server).announcement
    time = message_time(system)
    if time == 0.0:
        receive_pull(system, router, server, number)
    elif time < math.inf:
        schedule(system, head.now + time, PULL_ARRIVES, server, router, number)
    else:
        schedule(system, head.now + head.repeat, PULL_REPEATS, server, router, number)


@kernel
def is_current(system: int, router: int, server: int, number: int) -> bool:
    """Return whether announcement `number` of `server` to `router` is up to date."""
    return server_of(system, server).holder == router and health_of(system, server).announcement == number


@kernel
def receive_pull(system: int, router: int, server: int, number: int) -> None:
    """Store a pull-message that arrives at `router`; schedule its repetition."""
    head = head_of(system)
    store(system, router, server)
    if is_current(system, router, server, number):
        schedule(system, head.now + head.repeat, PULL_REPEATS, server, router, number)
    else:
        head.stale_messages += 1


@kernel
def repeat_pull(system: int, router: int, server: int, number: int) -> None:
    """Repeat the pull-message of `server`, unless its announcement has ended."""
    if is_current(system, router, server, number):
        head_of(system).pulls += 1
        send_pull(system, router, server)


@kernel
def send_remove(system: int, router: int, server: int) -> None:
    """Send a remove-message of `server` to `router`."""
    time = message_time(system)
    if time == 0.0:
        receive_remove(system, router, server)
    else:
        schedule(system, head_of(system).now + time, REMOVE_ARRIVES, server, router, 0)


@kernel
def receive_remove(system: int, router: int, server: int) -> None:
    """Delete the message of `server` at `router`, which may not hold it."""
    if slot_cell(system, router, server).value >= 0:
        delete(system, router, server)


@kernel
def probe_server(system: int, server: int, one_by_one: bool) -> bool:
    """Probe `server`; return whether it answers in time.

    The current customer waits for the answer; a closed server gives none. Probes are sent one by one if the
    next one may not be needed, else all at once.
    """
    head = head_of(system)
    head.probes += 1
    request, time, answers = message_time(system), head.timeout, False
    if request < math.inf and is_open(system, server):
        head.probes += 1
        reply = message_time(system)
        answers = request + reply <= head.timeout
        time = request + reply if answers else time
    head.probe_time = head.probe_time + time if one_by_one else max(head.probe_time, time)
    return answers
