"""Messages of a troubled system: they take time, get lost, overtake each other, and may come too late.

A server knows when it announced itself and to whom (`holder`), not what that router holds. A message without
delay is there at once; with no delay and no loss all is as in a system without trouble, to the bit.
"""

from __future__ import annotations

import math

import numpy as np

from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.events import schedule
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.messages import delete, store
from pull_env.kernels.random import HALF, LOW, bits
from pull_env.kernels.state import (
    DELAY_STREAM,
    PULL_ARRIVES,
    PULL_REPEATS,
    REMOVE_ARRIVES,
    head_of,
    health_of,
    server_of,
    slot_cell,
)

UNIT = 2.0**-32


@kernel
def message_time(system: int) -> float:
    """Return how long a message takes that is sent now; inf: it gets lost."""
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
    """Let `server` announce itself to `router`."""
    server_of(system, server).holder = router
    health_of(system, server).announcement += 1
    send_pull(system, router, server)


@kernel
def send_pull(system: int, router: int, server: int) -> None:
    """Send the pull-message of the present announcement of `server`, or send it again."""
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
    """Return whether the announcement of this number, of `server` to `router`, still holds."""
    return server_of(system, server).holder == router and health_of(system, server).announcement == number


@kernel
def receive_pull(system: int, router: int, server: int, number: int) -> None:
    """Let a pull-message come to `router`; the server will repeat it where it does so."""
    head = head_of(system)
    store(system, router, server)
    if is_current(system, router, server, number):
        schedule(system, head.now + head.repeat, PULL_REPEATS, server, router, number)
    else:
        head.stale_messages += 1


@kernel
def repeat_pull(system: int, router: int, server: int, number: int) -> None:
    """Let `server` announce itself again to the same router, if nothing has changed since it did."""
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
    """Let a remove-message come to `router`, which may hold no message of `server`."""
    if slot_cell(system, router, server).value >= 0:
        delete(system, router, server)


@kernel
def probe_server(system: int, server: int, one_by_one: bool) -> bool:
    """Ask `server` for its length; return whether it answers in time. The customer at hand waits for it.

    A server that accepts nothing does not answer. Servers are asked one by one where the next answer may not
    be needed, else all at once.
    """
    head = head_of(system)
    head.probes += 1
    there, time, answers = message_time(system), head.timeout, False
    if there < math.inf and is_open(system, server):
        head.probes += 1
        back = message_time(system)
        answers = there + back <= head.timeout
        time = there + back if answers else time
    head.probe_time = head.probe_time + time if one_by_one else max(head.probe_time, time)
    return answers
