"""The state of a system: constants, flags, and the records in its arrays.

There are few arrays, of records, so that what one event touches is close together in memory. The folder's
docstring shows how a handle leads to them, and `access.py` has the kernels that do.
A handle is one word: passing all arrays as a tuple would pass 150 words, and ran four times slower. Flags in
the handle let a loop that fixes them be compiled without the code they rule out (`run.rollout_plain`).

Symbols: n servers, J pools, R routers, G groups of servers that a router remembers (the pools, or one of all
servers) with M entries each, Q bins of the histogram of waits, F customers fed to the calendar at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNLIMITED = 2**31 - 1  # buffer of a server without a limit
SHORT_BINS = 64  # bins of the histogram of waits kept close to what every event touches
LEVELS = 65_536  # queue lengths that `Inspect` and the histogram distinguish; the last includes longer ones
WAIT_BINS_PER_OCTAVE = 64  # calendar clock: realised waits are binned by their logarithm
WAIT_OCTAVES = (-30, 50)

ARRIVAL_STREAM, MESSAGE_STREAM, POLICY_STREAM, DELAY_STREAM, FAULT_STREAM = range(5)  # random streams
STREAMS = 5

RING_SIZE = 32  # random numbers drawn ahead of their use, a power of 2
COMING_ARRIVALS = STREAMS  # the ring of those numbers of ARRIVAL_STREAM that are arrivals

HISTORY_LENGTH = 16  # recent answers of a pool that `Search` uses

# Flags of a run, in `head.flags` and in the handle: what the policy reads and so must be maintained, and the
# rules of clock, messages and memory.
KEEP_AGE, KEEP_QUEUE_INDEX, KEEP_ROUTER_INDEX, KEEP_MEMORY, KEEP_OBSERVATION = 1, 2, 4, 8, 16
CALENDAR = 32  # the clock is a calendar of departures; else the Markov clock
STALE = 64  # a pull-message is never withdrawn, and may be stale when it is used
CHOOSES_ROUTER = 128  # a server chooses the router to which it announces itself
COMPLETE = 256  # a router remembers every server, entry k being that of server k
FAULTS = 512  # messages take time or get lost, or servers fail: there are events other than departures
KEEP_HISTORY = 1024
PREFETCH = 2048  # random numbers are drawn ahead of their use: see `prefetch.large_systems`
PLAIN = 0  # Markov clock and the simplest messages: there is a loop compiled for this case

ADDRESS_BITS = 48  # a handle has the address of the head in its low bits, and the flags above them
ADDRESS = (1 << ADDRESS_BITS) - 1

ALWAYS = [  # the part of the head used in every run, in as few cache lines as possible
    # sizes
    ("n", np.int32),
    ("J", np.int32),
    ("R", np.int32),
    ("M", np.int32),
    ("G", np.int32),
    ("Q", np.int32),
    # fixed for a run
    ("threshold", np.int32),  # a server with fewer customers is available; 0: no announcements
    ("recipient_sample", np.int32),  # if CHOOSES_ROUTER: routers compared, 0: all
    ("arrival_threshold", np.uint64),  # Markov clock: probability that a time step is an arrival, x 2^32
    ("time_step", np.float64),  # time units per step of `now`: 1 / (arrival rate + capacity); calendar: 1
    # addresses of other arrays (shapes at `pull_env.simulation.kernel_data.state_arrays`)
    ("pools", np.int64),
    ("servers", np.int64),
    ("routers", np.int64),
    ("lists", np.int64),
    ("slots", np.int64),
    ("memory", np.int64),
    ("short_histogram", np.int64),
    ("probed", np.int64),
    # the current customer
    ("router", np.int32),  # where it arrived; -1: there is no customer (a trace has ended)
    # the last customer assigned
    ("last_router", np.int32),
    ("last_server", np.int32),
    ("probed_count", np.int32),  # servers probed for it, listed in `probed`; -1: all n were inspected
    ("blocked", np.int32),  # 1: it was blocked
    ("flags", np.int32),
    ("wait", np.float64),  # Markov clock: queue / rate; calendar: realised
    # the run so far
    ("now", np.float64),  # in time steps
    ("areas_time", np.float64),  # `now` when the areas were last updated
    # messages counted, by kind
    ("pulls", np.int64),
    ("removes", np.int64),
    ("probes", np.int64),
    ("updates", np.int64),
    ("streams", np.uint64, (STREAMS, 4)),  # the last two are used only with FAULTS
]
HEAD = np.dtype(
    [
        *ALWAYS,
        ("F", np.int64),
        ("rings", np.int64),
        ("sent", np.int64),  # pull-messages sent since the start: the age of a message
        ("messages", np.int64),
        ("ages", np.int64),
        ("long_histogram", np.int64),
        ("limits", np.int64),
        ("table", np.int64),
        ("sampled", np.int64),
        ("histories", np.int64),
        ("by_queue", np.int64),
        ("by_held", np.int64),
        ("work", np.int64),
        ("waiting", np.int64),
        ("departure_heap", np.int64),
        ("gaps", np.int64),
        ("sizes", np.int64),
        ("fed_routers", np.int64),
        ("fed_phases", np.int64),
        ("phase", np.float64),  # calendar clock: phase of the arrival process, in [0, 1]
        ("size", np.float64),  # calendar clock: service requirement of the current customer, mean 1
        ("fed", np.int64),  # calendar clock: customers used of the F fed
        ("departures", np.int64),  # calendar clock: entries of `departure_heap`, one per busy server
        ("free_cell", np.int64),  # calendar clock: first free cell of `waiting`
        # runs with FAULTS
        ("fault_entry", np.int64),  # address of the compiled `faults.dispatch.dispatch_operation`
        ("conditions", np.int64),
        ("health", np.int64),
        ("event_heap", np.int64),
        ("events", np.int64),
        ("unanswered", np.int64),
        ("drains", np.int64),
        ("event_cells", np.int64),  # of `events`
        ("drain_count", np.int64),  # entries of `drains`
        ("closed_servers", np.int64),  # servers that accept nothing: down or drained
        ("pending_events", np.int64),  # entries of `event_heap`
        ("free_event", np.int64),  # first free cell of `events`
        ("scheduled", np.int64),  # events scheduled since the start
        ("overflow", np.int64),  # events for which there was no room: the run is invalid
        ("delay", np.float64),  # mean time that a message takes
        ("random_delay", np.int64),  # 1: exponential; 0: constant
        ("loss", np.uint64),  # probability that a message gets lost, x 2^32
        ("repeat", np.float64),  # time after which a server announces itself again; inf: never
        ("timeout", np.float64),  # longest time that a router waits for an answer
        ("restart", np.float64),  # mean time between two restarts of a router; inf: it never restarts
        ("failure_fate", np.int64),  # of customers at a server that fails: CUSTOMERS_WAIT, _LOST or _RESTART
        ("fault_key", np.uint64),  # determines when servers fail and routers restart
        ("probe_time", np.float64),  # time that the current customer waited for answers
        ("service", np.float64),  # service time of the last customer assigned
        ("doomed", np.int64),  # 1: the last customer assigned will be lost with its server
        ("lost_customers", np.int64),  # accepted customers lost with a failing server, now or later
        ("stale_messages", np.int64),  # pull-messages that were out of date when they arrived
        ("lost_messages", np.int64),  # messages lost
    ],
    align=True,
)
FIRST_STREAM = HEAD.fields["streams"][1]  # type: ignore[index]
ALWAYS_BYTES = FIRST_STREAM + 3 * 32  # including the streams of the Markov clock

POOL = np.dtype(
    [
        ("cumulative_threshold", np.uint64),  # Markov clock: service up to this pool if bits are below
        ("start", np.int64),  # the pool's servers are start, ..., start + size - 1
        ("size", np.int64),
        ("buffer", np.int64),
        ("rate", np.float64),
        ("service_time", np.float64),  # mean: 1 / rate
        ("customers", np.int64),  # customers in the pool
        ("busy", np.int64),  # busy servers
        ("area", np.float64),  # integral of `customers` over time steps: see `statistics.update_areas`
        ("busy_area", np.float64),  # integral of `busy`
        ("accepted", np.int64),
        ("blocked", np.int64),
        ("waited", np.int64),  # accepted customers that met a busy server
        ("queue_sum", np.int64),  # sum of the queue lengths that accepted customers met
        ("wait_sum", np.float64),  # calendar clock: sum of realised waits
        ("service_sum", np.float64),  # calendar clock: sum of service times of accepted customers
    ],
    align=True,
)

RING = np.dtype(  # random numbers drawn ahead; positions count modulo RING_SIZE
    [
        ("numbers", np.uint64, (RING_SIZE,)),
        ("next", np.int64),  # position of the next number to use; for a stream also where the next drawn goes
        ("end", np.int64),  # COMING_ARRIVALS only: where the next number goes
    ]
)

SERVER = np.dtype(
    [
        ("queue", np.int32),  # customers, the one in service included
        ("pool", np.int32),
        ("holder", np.int32),  # router with its pull-message, -1: none (STALE: none since the last arrival)
        ("slot", np.int32),  # index of that message among the holder's slots (STALE: see `slot_cell`)
    ],
    align=True,
)

ROUTER = np.dtype(
    [
        ("alias_threshold", np.uint64),  # alias method over the routers' shares
        ("alias", np.int64),
        ("held", np.int64),  # pull-messages held, all pools
        ("last_announced", np.int64),  # server of the last announcement, -1: none
        ("cycle", np.int64),  # next server of the uniform round robin
        ("last_arrival", np.float64),  # time of its last arrival
        ("recent_gap", np.float64),  # recent mean time between its arrivals
        ("recent_empty", np.float64),  # recent share of its arrivals that met no pull-message
    ],
    align=True,
)

LIST = np.dtype(  # what a router holds and knows of a pool
    [
        ("held", np.int32),  # pull-messages
        ("oldest", np.int32),  # ends of the chain by age, see `message_id`; -1: none
        ("newest", np.int32),
        ("cycle", np.int32),  # weighted round robin: next server, counted from the pool's start
        ("best_entry", np.int32),  # entry of the best remembered server: see `memory.refresh_best`
        ("best_queue", np.int32),  # its remembered queue length
        ("best_time", np.float64),  # when that was learned
        ("credit", np.float64),  # weighted round robin: capacity owed to the pool
        ("probed_wait", np.float64),  # recent mean of queue / rate in answers to probes
        ("probed_idle", np.float64),  # recent share of answers from idle servers
        ("mean_received", np.float64),  # mean time at which messages were received; removals ignored
    ],
    align=True,
)

AGE = np.dtype(  # links of a pull-message in the chain by age
    [
        ("older", np.int32),  # message ids, -1: none
        ("newer", np.int32),
        ("sent", np.int64),  # `head.sent` when it was received
    ],
    align=True,
)

HISTORY = np.dtype(  # answers of a pool to a router
    [
        ("count", np.int64),  # answers so far
        ("reservation", np.float64),  # a probe pays if the best wait so far is longer; in time units
        ("queues", np.int32, (HISTORY_LENGTH,)),  # the k-th answer is at k mod HISTORY_LENGTH
    ],
    align=True,
)

PLACE_BYTES = 16  # of a remembered server: see `memory_row`
# work_end: when all work at a server is done; first, last: cells of `waiting`
WORK = np.dtype([("work_end", np.float64), ("first", np.int32), ("last", np.int32)], align=True)
HEAP = np.dtype([("due", np.float64), ("key", np.int64)])  # see `heap`
CELL = np.dtype([("due", np.float64), ("next", np.int32)], align=True)  # departure of a waiting customer

CONDITION = np.dtype(  # how servers of a pool fail and slow down; mean times, inf: never ends
    [
        ("open", np.int64),  # 0: drained, its servers accept nothing
        ("up", np.float64),  # of uptime
        ("down", np.float64),  # of downtime
        ("normal", np.float64),  # at full rate
        ("slow", np.float64),  # at reduced rate
        ("factor", np.float64),  # of the rate while slow
    ]
)
HEALTH = np.dtype(  # of a server; a period of odd number is one of failure, or of slowness
    [
        ("period_end", np.float64),  # end of the current period
        ("period", np.int64),
        ("work_period_end", np.float64),  # end of the period in which all its work is done
        ("work_period", np.int64),
        ("slow_period_end", np.float64),  # end of the slow or normal period in which its work ends
        ("slow_period", np.int64),
        ("announcement", np.int64),  # number of announcements begun or ended
    ]
)
DRAIN = np.dtype([("time", np.float64), ("pool", np.int64), ("opens", np.int64)])  # opens: 1: added again
EVENT = np.dtype(  # other than arrivals and departures
    [
        ("kind", np.int32),
        ("server", np.int32),  # or pool
        ("router", np.int32),
        ("next", np.int32),  # next free cell
        ("number", np.int64),  # of the announcement, or of the restart
    ]
)
PULL_ARRIVES, REMOVE_ARRIVES, PULL_REPEATS = range(3)  # kinds of EVENT
SERVER_SWITCHES, POOL_OPENS, POOL_CLOSES, ROUTER_RESTARTS = range(3, 7)
CUSTOMERS_WAIT, CUSTOMERS_LOST, CUSTOMERS_RESTART = range(3)  # if their server fails


def memory_row(places: int) -> np.dtype[Any]:
    """Return the layout of a router's memory of a group of M = `places` entries."""
    return np.dtype([("server", np.int32, places), ("queue", np.int32, places), ("time", np.float64, places)])


STEP = np.dtype(
    [
        ("kind", np.int32),
        ("pool", np.int32),  # -1: any
        ("weights", np.int32),  # UNIFORM or RATE
        ("order", np.int32),  # RANDOM, OLDEST or FASTEST
        ("at_most", np.int32),
        ("rank", np.int32),  # BY_*
        ("replace", np.int32),
        ("recall", np.int32),
        ("stop_at", np.float64),  # in time units; -1: never stop early
        ("price", np.float64),  # of a probe, in time units of waiting
    ],
    align=True,
)
TAKE, RECALL, SEND, PROBE, INSPECT, CYCLE, LAST, LOOKUP, SEARCH = range(9)
UNIFORM, RATE = range(2)
RANDOM, OLDEST, FASTEST = range(3)
BY_QUEUE, BY_DELAY, BY_QUEUE_THEN_SPEED, BY_WORK = range(4)

# Arrays of plain numbers are read as records with one field.
INTEGER = np.dtype([("value", np.int32)])
COUNT = np.dtype([("value", np.int64)])
NUMBER = np.dtype([("value", np.uint64)])
REAL = np.dtype([("value", np.float64)])
STREAM = np.dtype([("a", np.uint64), ("b", np.uint64), ("c", np.uint64), ("d", np.uint64)])

# Items of several groups, sorted by a small integer that changes by one: see `routing.level_index`.
INDEX = np.dtype(
    [  # addresses
        ("order", np.int64),  # (items,) int32  items by ascending level, group after group
        ("position", np.int64),  # (items,) int32  position of an item in `order`
        ("above", np.int64),  # (groups, levels + 1) int32  items of the group at this level or higher
        ("lowest", np.int64),  # (groups,) int64  the lowest level at which the group has an item
        ("levels", np.int64),
    ]
)
