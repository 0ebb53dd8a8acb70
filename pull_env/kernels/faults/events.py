"""Events other than arrivals and departures, in a heap by time.

Ties go to the event scheduled first: a key of the heap is the number of events scheduled before, and below
it, in CELL_BITS, the event's cell in the array of events. Python provides the cells, since kernels never
allocate; an event without a cell is counted as overflow, and the run is invalid.
"""

from __future__ import annotations

import math

from pull_env.kernels.access import event_at, head_of, heap_at
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.heap import pop, push

CELL_BITS = 24  # at most 2^24 events may be pending, and 2^39 be scheduled


@kernel
def schedule(system: int, due: float, kind: int, server: int, router: int, number: int) -> None:
    """Schedule an event at `due`; infinity schedules nothing."""
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
    """Advance to the next event, free its cell, and return the cell.

    The event stays readable until the next one is scheduled.
    """
    head = head_of(system)
    head.now = heap_at(head.event_heap, 0).due
    cell = heap_at(head.event_heap, 0).key & ((1 << CELL_BITS) - 1)
    head.pending_events -= 1
    pop(head.event_heap, head.pending_events)
    event_at(head.events, cell).next = head.free_event
    head.free_event = cell
    return int(cell)
