"""The two clocks: `advance` runs a system to its next arrival.

Markov clock: Poisson arrivals and exponential service, uniformised. Each time step is an arrival with a fixed
probability, else a service event at a server drawn by rate: a busy server completes a customer, an idle one
does nothing. No list of busy servers is needed. One draw decides a step (its low half what happens, its high
half where), and neither arrivals nor service events depend on what a policy did, so policies are coupled by
the seed. `now` counts time steps, all of the same mean length: averages over steps are averages over time.

Calendar clock: gaps between arrivals and service requirements are given, drawn outside or from a trace. Every
busy server has one entry in a heap of departures; other events, with FAULTS, are in another
(`faults.events`).

`admit` adds a customer to a server, `complete_service` removes one.
"""

from __future__ import annotations

import math

from pull_env.kernels.access import (
    cell_at,
    has_flag,
    head_of,
    heap_at,
    integer_at,
    pool_of,
    real_at,
    ring_of,
    router_of,
    server_of,
    work_of,
)
from pull_env.kernels.announce import announce
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.entry import PLAN_SERVICE, PROCESS_EVENT, call_faults
from pull_env.kernels.faults.events import next_event_time
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.heap import pop, push, sink
from pull_env.kernels.prefetch.large_systems import prefetch_service
from pull_env.kernels.random import HALF, LOW, U, below, bits, pick_router, pool_of_service
from pull_env.kernels.routing.level_index import lower_level, raise_level
from pull_env.kernels.routing.probe_answers import RECENT
from pull_env.kernels.state import (
    ARRIVAL_STREAM,
    CALENDAR,
    COMING_ARRIVALS,
    FAULTS,
    KEEP_OBSERVATION,
    KEEP_QUEUE_INDEX,
    PREFETCH,
)


@kernel
def advance(system: int) -> None:
    """Run the system to its next arrival at `head.router`; -1: the trace has ended."""
    if has_flag(system, CALENDAR):
        advance_calendar(system)
    else:
        advance_markov(system)


@kernel
def advance_markov(system: int) -> None:
    """Take time steps until a customer arrives."""
    while not markov_step(system):
        pass


@kernel
def markov_step(system: int) -> bool:
    """Take one time step of the Markov clock; return whether a customer arrives."""
    head = head_of(system)
    head.now += 1.0
    drawn = bits(system, ARRIVAL_STREAM)
    if has_flag(system, PREFETCH):
        prefetch_service(system)
    low, high = drawn & LOW, drawn >> HALF
    if low < head.arrival_threshold:
        arrive(system, pick_router(system, high))
        return True
    pool = pool_of(system, pool_of_service(system, low))
    complete_service(system, pool.start + below(high, pool.size))
    return False


@kernel
def advance_calendar(system: int) -> None:
    """Process all events due before the next arrival; at equal times departures first."""
    head = head_of(system)
    if head.fed == head.F:
        head.router = -1
        return
    arrival = head.now + real_at(head.gaps, head.fed).value
    while True:
        due = heap_at(head.departure_heap, 0).due if head.departures > 0 else math.inf
        if has_flag(system, FAULTS) and next_event_time(system) < due:
            if next_event_time(system) > arrival:
                break
            call_faults(system, PROCESS_EVENT, 0, 0)
            continue
        if due > arrival:
            break
        head.now = due
        server = int(heap_at(head.departure_heap, 0).key)
        start_next_service(system, server)
        complete_service(system, server)
    head.now = arrival
    head.size = real_at(head.sizes, head.fed).value
    head.phase = real_at(head.fed_phases, head.fed).value
    router = integer_at(head.fed_routers, head.fed).value
    head.fed += 1
    arrive(system, router if router >= 0 else pick_router(system, bits(system, ARRIVAL_STREAM) >> HALF))


@kernel
def arrive(system: int, router: int) -> None:
    """Make the next arrival, at `router`, the current customer."""
    head = head_of(system)
    head.router = router
    if has_flag(system, PREFETCH):
        ring_of(system, COMING_ARRIVALS).next += 1
    if has_flag(system, KEEP_OBSERVATION):
        record = router_of(system, router)
        record.recent_gap += RECENT * (head.now - record.last_arrival - record.recent_gap)
        record.last_arrival = head.now
        record.recent_empty += RECENT * ((1.0 if record.held == 0 else 0.0) - record.recent_empty)


@kernel
def complete_service(system: int, server: int) -> None:
    """Complete service at `server` if it is busy.

    The server announces itself if it becomes available and has no message out. Written without branches:
    whether a server is busy, or idle afterwards, is unpredictable, and a mispredicted branch costs more than
    all of this.
    """
    head, record = head_of(system), server_of(system, server)
    pool = pool_of(system, record.pool)
    busy = record.queue > 0
    if has_flag(system, KEEP_QUEUE_INDEX) and busy:
        lower_level(head_of(system).by_queue, record.pool, pool.start + pool.size, server, record.queue)
    before, elapsed = record.queue, head.now - head.areas_time
    queue = before - busy
    idle = busy & (queue == 0)
    record.queue = queue
    pool.customers -= busy
    pool.busy -= idle
    pool.area += elapsed if busy else 0.0
    pool.busy_area += elapsed if idle else 0.0
    # Was busy, and is below the threshold now, in one unpredictable comparison: an idle server gives -1,
    # which as an unsigned number exceeds any threshold.
    if U(before - 1) < U(head.threshold) and record.holder < 0:
        if has_flag(system, FAULTS) and not is_open(system, server):
            return
        announce(system, server)


@kernel
def admit(system: int, server: int) -> float:
    """Add the current customer to `server`, which has room; return its wait."""
    head, record = head_of(system), server_of(system, server)
    pool = pool_of(system, record.pool)
    elapsed = head.now - head.areas_time
    if has_flag(system, KEEP_QUEUE_INDEX):
        raise_level(head_of(system).by_queue, record.pool, pool.start + pool.size, server, record.queue)
    queue = record.queue
    record.queue = queue + 1
    pool.customers += 1
    pool.area -= elapsed
    pool.busy += queue == 0
    pool.busy_area -= elapsed if queue == 0 else 0.0
    if has_flag(system, CALENDAR):
        return enqueue(system, server, queue)
    return queue * pool.service_time


@kernel
def enqueue(system: int, server: int, queue: int) -> float:
    """Schedule the current customer at `server`, of length `queue`; return its wait."""
    head, work = head_of(system), work_of(system, server)
    pool = pool_of(system, server_of(system, server).pool)
    service = head.size / pool.rate
    starts = head.now if queue == 0 else work.work_end
    if has_flag(system, FAULTS):
        starts = call_faults(system, PLAN_SERVICE, server, queue)
        service = head.service
    work.work_end = starts + service
    pool.service_sum += service
    if queue == 0:
        push(head.departure_heap, head.departures, work.work_end, server)
        head.departures += 1
        return float(starts - head.now)
    number = head.free_cell
    cell = cell_at(head.waiting, number)
    head.free_cell = cell.next
    cell.due, cell.next = work.work_end, -1
    if queue == 1:
        work.first = number
    else:
        cell_at(head.waiting, work.last).next = number
    work.last = number
    return float(starts - head.now)


@kernel
def start_next_service(system: int, server: int) -> None:
    """Start serving the next customer at `server`, whose current customer departs now."""
    head = head_of(system)
    if server_of(system, server).queue == 1:
        head.departures -= 1
        pop(head.departure_heap, head.departures)
        return
    work = work_of(system, server)
    number = work.first
    cell = cell_at(head.waiting, number)
    work.first = cell.next
    cell.next = head.free_cell
    head.free_cell = number
    sink(head.departure_heap, head.departures, cell.due, server)
