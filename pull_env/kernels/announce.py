"""A server announces itself to a router by a pull-message, and withdraws it.

It announces itself when it becomes available, that is, has fewer customers than `head.threshold`, and
withdraws the message when it no longer is.
"""

from __future__ import annotations

from pull_env.kernels.access import has_flag, head_of, health_of, integer_at, router_of, server_of, slot_cell
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.entry import SEND_REMOVE, START_ANNOUNCEMENT, call_faults
from pull_env.kernels.messages import contains, delete, store
from pull_env.kernels.random import LOW, below, bits
from pull_env.kernels.routing.level_index import count_lowest, pick_lowest
from pull_env.kernels.state import CHOOSES_ROUTER, FAULTS, MESSAGE_STREAM, STALE


@kernel
def choose_recipient(system: int) -> int:
    """Return the router that an announcement is sent to."""
    head, R = head_of(system), head_of(system).R
    if not has_flag(system, CHOOSES_ROUTER):
        return below(bits(system, MESSAGE_STREAM) & LOW, R)
    if head.recipient_sample == 0:
        k = below(bits(system, MESSAGE_STREAM) & LOW, count_lowest(head_of(system).by_held, 0))
        return pick_lowest(head_of(system).by_held, 0, R, k)
    best = -1
    for k in range(head.recipient_sample):
        router = below(bits(system, MESSAGE_STREAM) & LOW, R)
        while contains(head.sampled, k, router):
            router = below(bits(system, MESSAGE_STREAM) & LOW, R)
        integer_at(head.sampled, k).value = router
        if best < 0 or router_of(system, router).held < router_of(system, best).held:
            best = router
    head.probes += 2 * head.recipient_sample
    return best


@kernel
def announce(system: int, server: int) -> None:
    """Send a pull-message of `server`."""
    head_of(system).pulls += 1
    router = choose_recipient(system)
    if has_flag(system, FAULTS):
        call_faults(system, START_ANNOUNCEMENT, router, server)
    else:
        receive(system, router, server)


@kernel
def receive(system: int, router: int, server: int) -> None:
    """Store the message of `server` at `router`, without delay."""
    server_of(system, server).holder = router
    store(system, router, server)


@kernel
def end_message(system: int, router: int, server: int) -> None:
    """Withdraw the message of `server` if a customer from `router` fills it.

    Where messages may be stale, nothing is withdrawn, but the server forgets that it announced itself. With
    FAULTS `router` may hold a message that is out of date: it learns that at once, from the customer's fate.
    """
    record = server_of(system, server)
    if record.holder >= 0:
        if has_flag(system, STALE):
            end_announcement(system, server)  # it will announce itself again, even if a message is still out
        elif record.queue >= head_of(system).threshold:
            withdraw(system, router, server)
    delayed = has_flag(system, FAULTS) and not has_flag(system, STALE) and head_of(system).threshold > 0
    if delayed and record.holder != router and slot_cell(system, router, server).value >= 0:
        delete(system, router, server)


@kernel
def withdraw(system: int, router: int, server: int) -> None:
    """Withdraw the message of `server`; notify its holder unless that is `router`.

    `router` knows already; -1: none does.
    """
    holder = server_of(system, server).holder
    end_announcement(system, server)
    head_of(system).removes += holder != router
    if not has_flag(system, FAULTS):
        delete(system, holder, server)
    elif holder != router:
        call_faults(system, SEND_REMOVE, holder, server)


@kernel
def end_announcement(system: int, server: int) -> None:
    """End the announcement of `server`."""
    server_of(system, server).holder = -1
    if has_flag(system, FAULTS):
        health_of(system, server).announcement += 1
