"""The state of a system: few arrays of records, so that what one event touches lies close together.

A kernel knows a system by one integer, its handle: the address of its head, which holds the addresses of the
other arrays, and the traits of the run. So a call passes one word (a tuple of the arrays would pass a hundred
and fifty, and ran four times slower), a batch of systems is an array of integers, and a loop that fixes the
traits is compiled without what they rule out (`run.rollout`). `pull_env.simulation.simulator.Simulator` owns
the arrays and keeps them alive.

Symbols: n servers, J pools, R routers, M places for the servers that a router remembers in each of G groups
(the pools, or one of all servers), Q bins of the law of the wait, F customers fed to the calendar at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.compiler.jit import elements, kernel, records, tagged

UNLIMITED = 2**31 - 1  # buffer of a server without a limit
SHORT_BINS = 64  # levels, or bins, of the law of the wait that lie with what every event touches
LEVELS = 65_536  # queue lengths told apart by `Inspect` and the law of the wait; longer ones count so
WAIT_BINS_PER_OCTAVE = 64  # calendar clock: realised waits are binned by their logarithm
WAIT_OCTAVES = (-30, 50)

ARRIVAL_STREAM, MESSAGE_STREAM, POLICY_STREAM, DELAY_STREAM, FAULT_STREAM = range(5)  # random streams
STREAMS = 5

RING_SIZE = 32  # random numbers of a stream, a power of 2
COMING_ARRIVALS = STREAMS  # the ring of those numbers of ARRIVAL_STREAM that bring a customer

HISTORY_LENGTH = 16  # last answers of a pool by which a router searches

# The traits of a run, as bits of `head.flags` and of the handle of the system: what the policy needs kept
# (what no step reads is not maintained), and the rules of its clock, messages and memory.
KEEP_AGE, KEEP_QUEUE_INDEX, KEEP_ROUTER_INDEX, KEEP_MEMORY, KEEP_OBSERVATION = 1, 2, 4, 8, 16
CALENDAR = 32  # a calendar of departures is the clock; else the Markov clock
STALE = 64  # a pull-message is never withdrawn, and may be stale when it is taken
CHOOSES_ROUTER = 128  # a server chooses the router that it announces itself to
COMPLETE = 256  # a router remembers every server, entry k being that of server k
FAULTS = 512  # messages take time or get lost, or servers fail: events other than departures may happen
KEEP_HISTORY = 1024
PREFETCH = 2048  # random numbers are drawn ahead of their use, to fetch what they point at: see `ahead`
PLAIN = 0  # a Markov clock and the simplest messages: the kernels have a loop of its own for it

ADDRESS_BITS = 48  # a handle is the address of the head and, above these bits, the traits
ADDRESS = (1 << ADDRESS_BITS) - 1

ALWAYS = [  # of the head, in as few cache lines as can be
    # sizes
    ("n", np.int32),
    ("J", np.int32),
    ("R", np.int32),
    ("M", np.int32),
    ("G", np.int32),
    ("Q", np.int32),
    # fixed for a run
    ("threshold", np.int32),  # a server with fewer customers is available; 0: servers announce nothing
    ("recipient_sample", np.int32),  # if CHOOSES_ROUTER: routers compared, 0: all
    ("arrival_threshold", np.uint64),  # Markov clock: an event is an arrival with this probability, x 2^32
    ("time_step", np.float64),  # time units a tick of `now`: 1 / (arrival rate + capacity); calendar: 1
    # addresses of other arrays (shapes at `pull_env.simulation.kernel_data.state_arrays`)
    ("pools", np.int64),
    ("servers", np.int64),
    ("routers", np.int64),
    ("lists", np.int64),
    ("slots", np.int64),
    ("memory", np.int64),
    ("short_histogram", np.int64),
    ("probed", np.int64),
    # the customer at hand
    ("router", np.int32),  # asked router; -1: there is no customer (a trace has ended)
    # the customer placed last
    ("last_router", np.int32),  # the router that placed it
    ("last_server", np.int32),  # the server it was sent to
    ("probed_count", np.int32),  # servers asked for it, which `asked` names; -1: all n were looked at
    ("blocked", np.int32),  # 1: it was blocked
    ("flags", np.int32),  # of the run
    ("wait", np.float64),  # q / rate (Markov), realised (calendar)
    # the run so far
    ("now", np.float64),  # in ticks
    ("areas_time", np.float64),  # the areas of all pools are complete up to this tick
    # messages counted, by kind
    ("pulls", np.int64),
    ("removes", np.int64),
    ("probes", np.int64),
    ("updates", np.int64),
    ("streams", np.uint64, (STREAMS, 4)),  # the last two are not always used
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
        ("phase", np.float64),  # calendar clock: of the arrival process, in [0, 1]
        ("size", np.float64),  # calendar clock: service requirement of the customer at hand, mean 1
        ("fed", np.int64),  # calendar clock: customers used of the feed at hand
        ("departures", np.int64),  # calendar clock: servers in the heap
        ("free_cell", np.int64),  # calendar clock: first free cell of `waiting`
        # troubled systems
        ("fault_entry", np.int64),  # address of what is called by `aside`
        ("conditions", np.int64),
        ("health", np.int64),
        ("event_heap", np.int64),
        ("events", np.int64),
        ("unanswered", np.int64),
        ("drains", np.int64),
        ("event_cells", np.int64),  # of `events`
        ("drain_count", np.int64),  # entries of `drains`
        ("closed_servers", np.int64),  # servers that accept nothing, as they are down or drained
        ("pending_events", np.int64),  # events in `soon`
        ("free_event", np.int64),  # first free cell of `events`
        ("scheduled", np.int64),  # events scheduled since the start
        ("overflow", np.int64),  # events for which there was no room: the run is void
        ("delay", np.float64),  # mean time that a message takes
        ("random_delay", np.int64),  # 1: it is exponential, else constant
        ("loss", np.uint64),  # a message gets lost with this probability, x 2^32
        ("repeat", np.float64),  # time after which a server announces itself again; inf: never
        ("timeout", np.float64),  # time for which a router waits for an answer
        ("restart", np.float64),  # mean time between two restarts of a router; inf: it never restarts
        ("failure_fate", np.int64),  # of customers at a server that fails: CUSTOMERS_*
        ("fault_key", np.uint64),  # decides when servers fail and routers restart
        ("probe_time", np.float64),  # time that the current customer waited for answers
        ("service", np.float64),  # time that the customer placed last will be in service
        ("doomed", np.int64),  # 1: the customer placed last will be lost with its server
        ("lost_customers", np.int64),  # accepted customers lost with a failing server, now or later
        ("stale_messages", np.int64),  # pull-messages that did not hold any more when they came
        ("lost_messages", np.int64),  # messages that got lost
    ],
    align=True,
)
FIRST_STREAM = HEAD.fields["streams"][1]  # type: ignore[index]
ALWAYS_BYTES = FIRST_STREAM + 3 * 32  # with the streams of a Markov clock

POOL = np.dtype(
    [
        ("cumulative_threshold", np.uint64),  # Markov clock: service in this pool if 32 random bits are below
        ("start", np.int64),  # the pool's servers are start, ..., start + size - 1
        ("size", np.int64),
        ("buffer", np.int64),
        ("rate", np.float64),
        ("service_time", np.float64),  # mean: 1 / rate
        ("customers", np.int64),  # customers in the pool
        ("busy", np.int64),  # busy servers
        ("area", np.float64),  # integral of inside, in ticks: see `tally.settle_all`
        ("busy_area", np.float64),
        ("accepted", np.int64),
        ("blocked", np.int64),
        ("waited", np.int64),  # accepted customers that found the server busy
        ("queue_sum", np.int64),  # sum of the queue lengths that accepted customers found
        ("wait_sum", np.float64),  # calendar clock: sum of realised waits
        ("service_sum", np.float64),  # calendar clock: sum of service times of accepted customers
    ],
    align=True,
)

RING = np.dtype(  # random numbers drawn ahead, at places modulo RING_SIZE
    [
        ("numbers", np.uint64, (RING_SIZE,)),
        ("next", np.int64),  # of the one used next; of a stream also where the next to be drawn will stand
        ("end", np.int64),  # of COMING_ARRIVALS: where the next will stand
    ]
)

SERVER = np.dtype(
    [
        ("queue", np.int32),  # customers, the one in service included
        ("pool", np.int32),
        ("holder", np.int32),  # router that got its pull-message, -1: none is out (stale protocol: none was
        # sent since the last arrival here)
        ("slot", np.int32),  # place of that message in the holder's slots (stale protocol: see `place_of`)
    ],
    align=True,
)

ROUTER = np.dtype(
    [
        ("alias_threshold", np.uint64),  # alias table over the routers' shares
        ("alias", np.int64),
        ("held", np.int64),  # pull-messages held, all pools
        ("last_announced", np.int64),  # server that announced itself last, -1: none has
        ("cycle", np.int64),  # next server of the uniform round robin
        ("last_arrival", np.float64),  # tick of its last arrival
        ("recent_gap", np.float64),  # recent mean time between its arrivals
        ("recent_empty", np.float64),  # recent share of its arrivals that found no pull-message
    ],
    align=True,
)

LIST = np.dtype(
    [
        ("held", np.int32),  # pull-messages that this router holds from this pool
        ("oldest", np.int32),  # message identities, -1: none
        ("newest", np.int32),
        ("cycle", np.int32),  # weighted round robin: next server of the pool, counted from its start
        ("best_entry", np.int32),  # entry of the best remembered server: see `memory.look_back`
        ("best_queue", np.int32),  # length of that server
        ("best_time", np.float64),  # of that memory
        ("credit", np.float64),  # weighted round robin: capacity owed to the pool
        ("probed_wait", np.float64),  # recent mean of the waits that probes of this pool promised
        ("probed_idle", np.float64),  # recent share of probes of this pool that found an idle server
        ("mean_received", np.float64),  # mean time at which its messages were received
    ],
    align=True,
)

AGE = np.dtype(
    [
        ("older", np.int32),  # neighbours of a message in order of age, -1: none
        ("newer", np.int32),
        ("sent", np.int64),
    ],
    align=True,
)

HISTORY = np.dtype(
    [
        ("count", np.int64),  # answers of a pool to a router so far
        ("reservation", np.float64),  # the wait for less than which it is worth asking, in time units
        ("queues", np.int32, (HISTORY_LENGTH,)),  # the k-th answer is at k mod HISTORY_LENGTH
    ],
    align=True,
)

PLACE_BYTES = 16  # of a server that is remembered
# clear: end of all work at a server; first, last: cells of `waiting`
WORK = np.dtype([("work_end", np.float64), ("first", np.int32), ("last", np.int32)], align=True)
HEAP = np.dtype([("due", np.float64), ("key", np.int64)])  # what comes next: see `heap`
CELL = np.dtype([("due", np.float64), ("next", np.int32)], align=True)  # of a departure

CONDITION = np.dtype(  # of a pool in a troubled system; times are means, inf: for ever
    [
        ("open", np.int64),  # 0: its servers accept nothing, as they are drained
        ("up", np.float64),  # until a server fails
        ("down", np.float64),  # until it returns
        ("normal", np.float64),  # until a server slows down
        ("slow", np.float64),  # until it is as fast as before
        ("factor", np.float64),  # of its rate while it is slow
    ]
)
HEALTH = np.dtype(  # of a server in a troubled system; a period of odd number is one of failure, or slowness
    [
        ("period_end", np.float64),  # end of the present period
        ("period", np.int64),
        ("work_period_end", np.float64),  # the same at the end of all its work
        ("work_period", np.int64),
        ("slow_period_end", np.float64),  # end of the slow or normal period in which its work ends
        ("slow_period", np.int64),
        ("announcement", np.int64),  # how often it announced itself, or ceased to be announced
    ]
)
DRAIN = np.dtype([("time", np.float64), ("pool", np.int64), ("opens", np.int64)])  # 1: it is added again
EVENT = np.dtype(
    [
        ("kind", np.int32),
        ("server", np.int32),  # or the pool
        ("router", np.int32),
        ("next", np.int32),  # free cell
        ("number", np.int64),  # of the announcement, or of the router's restarts
    ]
)
PULL_ARRIVES, REMOVE_ARRIVES, PULL_REPEATS, SERVER_SWITCHES, POOL_OPENS, POOL_CLOSES, ROUTER_RESTARTS = range(
    7
)
CUSTOMERS_WAIT, CUSTOMERS_LOST, CUSTOMERS_RESTART = range(3)  # if their server fails


def memory_row(places: int) -> np.dtype[Any]:
    """Return how a router's memory of a group lies in memory, its `places` being a multiple of LANES."""
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
        ("price", np.float64),  # of asking a server, in time units of waiting
    ],
    align=True,
)
TAKE, RECALL, SEND, PROBE, INSPECT, CYCLE, LAST, LOOKUP, SEARCH = range(9)
UNIFORM, RATE = range(2)
RANDOM, OLDEST, FASTEST = range(3)
BY_QUEUE, BY_DELAY, BY_QUEUE_THEN_SPEED, BY_WORK = range(4)
SERVER_BYTES, SLOT_OFFSET = SERVER.itemsize, SERVER.fields["slot"][1]  # type: ignore[index]

# Arrays of plain numbers are read as records of one field.
INTEGER = np.dtype([("value", np.int32)])
COUNT = np.dtype([("value", np.int64)])
NUMBER = np.dtype([("value", np.uint64)])
REAL = np.dtype([("value", np.float64)])
STREAM = np.dtype([("a", np.uint64), ("b", np.uint64), ("c", np.uint64), ("d", np.uint64)])

# Items of several groups, sorted by a small integer that moves by one: each move, and the lowest, cost O(1).
INDEX = np.dtype(
    [
        ("order", np.int64),  # (items,) int32  items of a group by ascending level, groups side by side
        ("position", np.int64),  # (items,) int32  where an item stands in `order`
        ("above", np.int64),  # (groups, levels + 1) int32  items of the group at this level or higher
        ("lowest", np.int64),  # (groups,) int64  the lowest level at which the group has an item
        ("levels", np.int64),
    ]
)

# How kernels reach a record: by the address of its array and its place there, or by the handle of a system.
pool_at, router_at, list_at = records(POOL), records(ROUTER), records(LIST)
step_at, cell_at, event_at = records(STEP), records(CELL), records(EVENT)
stream_at, index_at = records(STREAM), records(INDEX)
integer_at, count_at, real_at = records(INTEGER), records(COUNT), records(REAL)
number_at = records(NUMBER)
head_of = tagged(HEAD, ADDRESS_BITS)
pool_of = elements(HEAD, ADDRESS_BITS, "pools", POOL)
server_of = elements(HEAD, ADDRESS_BITS, "servers", SERVER)
router_of = elements(HEAD, ADDRESS_BITS, "routers", ROUTER)
age_of = elements(HEAD, ADDRESS_BITS, "ages", AGE)  # of a pull-message: router x head.apart + server
work_of = elements(HEAD, ADDRESS_BITS, "work", WORK)
probed_of = elements(HEAD, ADDRESS_BITS, "probed", INTEGER)  # names the server asked in this place
condition_of = elements(HEAD, ADDRESS_BITS, "conditions", CONDITION)
health_of = elements(HEAD, ADDRESS_BITS, "health", HEALTH)
ring_of = elements(HEAD, ADDRESS_BITS, "rings", RING)
unanswered_of = elements(HEAD, ADDRESS_BITS, "unanswered", INTEGER)  # 1: no answer came
heap_at, history_at, drain_at = records(HEAP), records(HISTORY), records(DRAIN)
RING_BYTES = RING.itemsize
HISTORY_BYTES, QUEUES_OFFSET = HISTORY.itemsize, HISTORY.fields["queues"][1]  # type: ignore[index]


@kernel
def has_flag(system: int, flags: int) -> bool:
    """Return whether the run has any of `traits`; known without a look at memory."""
    return (system >> ADDRESS_BITS) & flags != 0


@kernel
def stream_of(system: int, which: int) -> Any:
    """Return the words of a random stream, which lie in the head."""
    return stream_at((system & ADDRESS) + FIRST_STREAM, which)


@kernel
def list_of(system: int, router: int, pool: int) -> Any:
    """Return what a router holds and knows of a pool."""
    head = head_of(system)
    return list_at(head.lists, router * head.J + pool)


@kernel
def message_id(system: int, router: int, server: int) -> int:
    """Return the identity of the message of `server` at `router`: only stale ones can be out twice."""
    return router * head_of(system).n + server if has_flag(system, STALE | FAULTS) else server


@kernel
def slot_cell(system: int, router: int, server: int) -> Any:
    """Return the cell that says in which slot the message of `server` at `router` lies.

    It is a field of the server, in the cache line that is needed anyway; of a message that may be stale an
    item of an array.
    """
    head = head_of(system)
    if has_flag(system, STALE | FAULTS):
        return integer_at(head.messages, router * head.n + server)
    return integer_at(head.servers + server * SERVER_BYTES + SLOT_OFFSET, 0)


@kernel
def first_slot(system: int, router: int, pool: int) -> int:
    """Return where the messages of `pool` that `router` holds begin in the array of slots."""
    return int(router * head_of(system).n + pool_of(system, pool).start)


@kernel
def held_server_cell(system: int, router: int, pool: int, k: int) -> Any:
    """Return the cell that names the server of the k-th message that `router` holds from `pool`."""
    return integer_at(head_of(system).slots, first_slot(system, router, pool) + k)


@kernel
def memory_of(system: int, router: int, group: int) -> int:
    """Return the address of what a router remembers of a group: M servers, M lengths, M times."""
    head = head_of(system)
    return head.memory + (router * head.G + group) * head.M * PLACE_BYTES


@kernel
def history_of(system: int, router: int, pool: int) -> Any:
    """Return what the answers of a pool told a router."""
    head = head_of(system)
    return history_at(head.histories, router * head.J + pool)


@kernel
def answer_of(system: int, router: int, pool: int, k: int) -> Any:
    """Return the cell of an answer that a router keeps of a pool."""
    head = head_of(system)
    return integer_at(head.histories + (router * head.J + pool) * HISTORY_BYTES + QUEUES_OFFSET, k)


@kernel
def group_of(system: int, pool: int) -> int:
    """Return the group of a router's memory that holds servers of `pool`."""
    return pool if head_of(system).G > 1 else 0
