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
from pull_env.kernels.messages import drop, keep
from pull_env.kernels.random import HALF, LOW, bits
from pull_env.kernels.state import (
    DELAY_STREAM,
    PULL_COMES,
    REMOVE_COMES,
    REPEAT,
    head_of,
    health_of,
    place_of,
    server_of,
)

UNIT = 2.0**-32


@kernel
def travel(system: int) -> float:
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
def launch(system: int, router: int, server: int) -> None:
    """Let `server` announce itself to `router`."""
    server_of(system, server).holder = router
    health_of(system, server).announcement += 1
    send_pull(system, router, server)


@kernel
def send_pull(system: int, router: int, server: int) -> None:
    """Send the pull-message of the present announcement of `server`, or send it again."""
    head, number = head_of(system), health_of(system, server).announcement
    time = travel(system)
    if time == 0.0:
        deliver(system, router, server, number)
    elif time < math.inf:
        schedule(system, head.now + time, PULL_COMES, server, router, number)
    else:
        schedule(system, head.now + head.repeat, REPEAT, server, router, number)


@kernel
def stands(system: int, router: int, server: int, number: int) -> bool:
    """Return whether the announcement of this number, of `server` to `router`, still holds."""
    return server_of(system, server).holder == router and health_of(system, server).announcement == number


@kernel
def deliver(system: int, router: int, server: int, number: int) -> None:
    """Let a pull-message come to `router`; the server will repeat it where it does so."""
    head = head_of(system)
    keep(system, router, server)
    if stands(system, router, server, number):
        schedule(system, head.now + head.repeat, REPEAT, server, router, number)
    else:
        head.stale_messages += 1


@kernel
def repeat(system: int, router: int, server: int, number: int) -> None:
    """Let `server` announce itself again to the same router, if nothing has changed since it did."""
    if stands(system, router, server, number):
        head_of(system).pulls += 1
        send_pull(system, router, server)


@kernel
def recant(system: int, router: int, server: int) -> None:
    """Send a remove-message of `server` to `router`."""
    time = travel(system)
    if time == 0.0:
        remove(system, router, server)
    else:
        schedule(system, head_of(system).now + time, REMOVE_COMES, server, router, 0)


@kernel
def remove(system: int, router: int, server: int) -> None:
    """Let a remove-message come to `router`, which may hold no message of `server`."""
    if place_of(system, router, server).value >= 0:
        drop(system, router, server)


@kernel
def ask(system: int, server: int, one_by_one: bool) -> bool:
    """Ask `server` for its length; return whether it answers in time. The customer at hand waits for it.

    A server that accepts nothing does not answer. Servers are asked one by one where the next answer may not
    be needed, else all at once.
    """
    head = head_of(system)
    head.probes += 1
    there, time, answers = travel(system), head.timeout, False
    if there < math.inf and is_open(system, server):
        head.probes += 1
        back = travel(system)
        answers = there + back <= head.timeout
        time = there + back if answers else time
    head.probe_time = head.probe_time + time if one_by_one else max(head.probe_time, time)
    return answers
