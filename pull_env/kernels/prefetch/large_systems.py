"""Prefetching in a large system, by random numbers that are drawn ahead.

Each event touches a random server. If the servers take more memory than the processor's cache, a run would
wait for memory most of its time. So with PREFETCH a loop draws its numbers long before they are used
(`random.bits`), and fetches here what they will be used for. A wrong guess costs time, but changes nothing.
"""

from __future__ import annotations

from typing import Any

from pull_env.kernels.access import SERVER_BYTES, head_of, integer_at, pool_of, ring_of
from pull_env.kernels.compiler.intrinsics import prefetch
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.messages import chosen_slot
from pull_env.kernels.random import (
    HALF,
    LOW,
    below,
    fill_ring,
    pick_router,
    pick_server,
    pool_of_service,
    rewind,
    ring_cell,
)
from pull_env.kernels.state import ARRIVAL_STREAM, COMING_ARRIVALS, INTEGER, POLICY_STREAM, RING_SIZE

# How many arrivals ahead a message is fetched, and its server. The number of messages held changes meanwhile,
# and with it which one is taken: so neither is fetched earlier than necessary.
MESSAGE_AHEAD, SERVER_AHEAD = 8, 3
INTEGER_BYTES = INTEGER.itemsize


@kernel
def start_prefetch(system: int) -> None:
    """Draw the first numbers ahead."""
    for which in (ARRIVAL_STREAM, POLICY_STREAM, COMING_ARRIVALS):
        ring_of(system, which).next = ring_of(system, which).end = 0
    fill_ring(system, ARRIVAL_STREAM)
    fill_ring(system, POLICY_STREAM)
    for k in range(RING_SIZE):
        append_if_arrival(system, ring_cell(system, ARRIVAL_STREAM, k).value)


@kernel
def stop_prefetch(system: int) -> None:
    """Move the streams back to where they are without numbers drawn ahead."""
    rewind(system, ARRIVAL_STREAM)
    rewind(system, POLICY_STREAM)


@kernel
def append_if_arrival(system: int, drawn: Any) -> None:
    """Append the number `drawn` to COMING_ARRIVALS if it will be an arrival."""
    head, coming = head_of(system), ring_of(system, COMING_ARRIVALS)
    ring_cell(system, COMING_ARRIVALS, coming.end - coming.next).value = drawn
    coming.end += drawn & LOW < head.arrival_threshold  # no branch: it would be unpredictable


@kernel
def prefetch_service(system: int) -> None:
    """Fetch the server of the time step drawn last.

    A step that is an arrival has none, but checking would cost more.
    """
    drawn = ring_cell(system, ARRIVAL_STREAM, -1).value
    pool = pool_of(system, pool_of_service(system, drawn & LOW))
    prefetch_server(system, pool.start + below(drawn >> HALF, pool.size))
    append_if_arrival(system, drawn)


@kernel
def prefetch_drawn(system: int, pool: int, weights: int) -> None:
    """Fetch the server of `pool` that the number drawn last picks, if used for that."""
    prefetch_server(system, pick_server(system, pool, weights, ring_cell(system, POLICY_STREAM, -1).value))


@kernel
def prefetch_taken(system: int, step: Any) -> None:
    """Fetch the message that `step` will take for a future arrival, then its server."""
    prefetch(slot_address(system, step, MESSAGE_AHEAD))
    prefetch_server(system, integer_at(slot_address(system, step, SERVER_AHEAD), 0).value)


@kernel
def slot_address(system: int, step: Any, k: int) -> int:
    """Return the address of the slot `step` will use for the k-th arrival from now."""
    drawn = ring_cell(system, POLICY_STREAM, k).value
    slot = chosen_slot(system, coming_router(system, k), step.pool, step.order, drawn)
    return head_of(system).slots + max(slot, 0) * INTEGER_BYTES


@kernel
def coming_router(system: int, k: int) -> Any:
    """Return the router of the k-th arrival from now."""
    return pick_router(system, ring_cell(system, COMING_ARRIVALS, k - 1).value >> HALF)


@kernel
def prefetch_server(system: int, server: int) -> None:
    """Fetch the record of `server`."""
    prefetch(head_of(system).servers + server * SERVER_BYTES)
