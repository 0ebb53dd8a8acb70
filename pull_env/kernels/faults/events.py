"""What happens in a troubled system besides arrivals and departures: a heap of events, by time and order.

A key of the heap is the order in which events were scheduled, and below it, in CELL_BITS, where the event
lies in the array of events. Python gives that room, since nothing is allocated here; an event for which there
is none is counted, and the run is void.
"""

from __future__ import annotations

import math

from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.heap import pop, push
from pull_env.kernels.state import event_at, head_of, heap_at

CELL_BITS = 24  # at most so many events may be pending; 2^39 can be scheduled


@kernel
def schedule(system: int, due: float, kind: int, server: int, router: int, number: int) -> None:
    """Let an event happen at `due`; at inf it never does."""
    head = head_of(system)
    if due == math.inf:
        return
    cell = head.free_event
    if cell >= head.event_cells:
        head.overflow += 1
        return
    event = event_at(head.events, cell)
    head.free_event = event.next
    event.kind, event.server, event.router, event.number = kind, server, router, number
    push(head.event_heap, head.pending_events, due, head.scheduled << CELL_BITS | cell)
    head.pending_events += 1
    head.scheduled += 1


@kernel
def next_event_time(system: int) -> float:
    """Return when the next event is due; inf: there is none."""
    head = head_of(system)
    return heap_at(head.event_heap, 0).due if head.pending_events > 0 else math.inf


@kernel
def pop_event(system: int) -> int:
    """Go to the time of the next event, free its cell, and return where it lies; it stays readable there."""
    head = head_of(system)
    head.now = heap_at(head.event_heap, 0).due
    cell = heap_at(head.event_heap, 0).key & ((1 << CELL_BITS) - 1)
    head.pending_events -= 1
    pop(head.event_heap, head.pending_events)
    event_at(head.events, cell).next = head.free_event
    head.free_event = cell
    return int(cell)
