"""What happens next: two clocks behind `advance`, which runs the system to its next arrival, and `admit`.

Markov clock: Poisson arrivals and exponential service, uniformised. Every tick is an arrival with a fixed
probability, else the service clock of a server drawn by rate ticks: a busy server completes, an idle one does
nothing. No list of busy servers is kept, one draw decides a tick (its low half what happens, its high half to
whom), and arrivals and service ticks do not depend on what a policy did: policies on one seed are coupled.
`now` counts ticks, all of the same mean length, so averages over ticks are averages over time.

Calendar clock: gaps between arrivals and service requirements are given (drawn outside, or from a trace). A
server that works holds one entry in a heap of departures; what else happens in a troubled system is in
another (`events`).
"""

from __future__ import annotations

import math

from pull_env.kernels.announce import announce
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.entry import PLAN_SERVICE, PROCESS_EVENT, call_faults
from pull_env.kernels.faults.events import next_event_time
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.heap import pop, push, sink
from pull_env.kernels.prefetch.large_systems import prefetch_service
from pull_env.kernels.random import (
    HALF,
    LOW,
    U,
    below,
    bits,
    pick_router,
    pool_of_service,
)
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


@kernel
def advance(system: int) -> None:
    """Run the system to its next arrival; `head.router` says who is asked, -1 that a trace has ended."""
    if has_flag(system, CALENDAR):
        advance_calendar(system)
    else:
        advance_markov(system)


@kernel
def advance_markov(system: int) -> None:
    """Tick until a customer arrives."""
    while not markov_step(system):
        pass


@kernel
def markov_step(system: int) -> bool:
    """Let the Markov clock tick once; return whether a customer arrives."""
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
    """Let all happen that is due by the next arrival; of what is due at once, departures come first."""
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
    """Put the next customer into the hands of `router`."""
    head = head_of(system)
    head.router = router
    if has_flag(system, PREFETCH):
        ring_of(system, COMING_ARRIVALS).next += 1
    if has_flag(system, KEEP_OBSERVATION):
        asked = router_of(system, router)
        asked.recent_gap += RECENT * (head.now - asked.last_arrival - asked.recent_gap)
        asked.last_arrival = head.now
        asked.recent_empty += RECENT * ((1.0 if asked.held == 0 else 0.0) - asked.recent_empty)


@kernel
def complete_service(system: int, server: int) -> None:
    """Let a customer leave `server` if there is one; it announces itself if it is available and did not yet.

    Without branches: whether a server is busy, or idle after a departure, cannot be foreseen, and a wrong
    guess costs more than all that is done here.
    """
    head, place = head_of(system), server_of(system, server)
    pool = pool_of(system, place.pool)
    busy = place.queue > 0
    if has_flag(system, KEEP_QUEUE_INDEX) and busy:
        lower_level(head_of(system).by_queue, place.pool, pool.start + pool.size, server, place.queue)
    found, elapsed = place.queue, head.now - head.areas_time
    queue = found - busy
    idle = busy & (queue == 0)
    place.queue = queue
    pool.customers -= busy
    pool.busy -= idle
    pool.area += elapsed if busy else 0.0
    pool.busy_area += elapsed if idle else 0.0
    # Busy before, and fewer than the threshold now: one comparison of what cannot be foreseen, as -1, which
    # is what an idle server gives, is more than any threshold if it is read as a number without sign.
    if U(found - 1) < U(head.threshold) and place.holder < 0:
        if has_flag(system, FAULTS) and not is_open(system, server):
            return
        announce(system, server)


@kernel
def admit(system: int, server: int) -> float:
    """Add the customer at hand to the queue of `server`, which has room; return its wait."""
    head, place = head_of(system), server_of(system, server)
    pool = pool_of(system, place.pool)
    elapsed = head.now - head.areas_time
    if has_flag(system, KEEP_QUEUE_INDEX):
        raise_level(head_of(system).by_queue, place.pool, pool.start + pool.size, server, place.queue)
    found = place.queue
    place.queue = found + 1
    pool.customers += 1
    pool.area -= elapsed
    pool.busy += found == 0
    pool.busy_area -= elapsed if found == 0 else 0.0
    if has_flag(system, CALENDAR):
        return enqueue(system, server, found)
    return found * pool.service_time


@kernel
def enqueue(system: int, server: int, found: int) -> float:
    """Fix the wait of the customer at hand at `server`, FCFS; return it."""
    head, work = head_of(system), work_of(system, server)
    pool = pool_of(system, server_of(system, server).pool)
    service = head.size / pool.rate
    starts = head.now if found == 0 else work.work_end
    if has_flag(system, FAULTS):
        starts = call_faults(system, PLAN_SERVICE, server, found)
        service = head.service
    work.work_end = starts + service
    pool.service_sum += service
    if found == 0:
        push(head.departure_heap, head.departures, work.work_end, server)
        head.departures += 1
        return float(starts - head.now)
    number = head.free_cell
    cell = cell_at(head.waiting, number)
    head.free_cell = cell.next
    cell.due, cell.next = work.work_end, -1
    if found == 1:
        work.first = number
    else:
        cell_at(head.waiting, work.last).next = number
    work.last = number
    return float(starts - head.now)


@kernel
def start_next_service(system: int, server: int) -> None:
    """Start the next customer in the queue of `server`, whose customer in service leaves now."""
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
