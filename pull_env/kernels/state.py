"""The state of a system: few arrays of records, so that what one event touches lies close together.

A kernel knows a system by one integer, the address of its head; the head holds the addresses of the other
arrays. So a call passes one word (a tuple of the arrays would pass a hundred and fifty, and ran four times
slower), and a batch of systems is an array of integers. `pull_env.system.Simulator` owns the arrays and keeps
them alive.

Symbols: n servers, J pools, R routers, M servers that a router remembers in each of G groups (the pools, or
one of all servers), Q bins of the law of the wait, F customers fed to the calendar at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.jit import kernel, records

UNLIMITED = 2**31 - 1  # buffer of a server without a limit
LEVELS = 65_536  # queue lengths told apart by `Inspect` and the law of the wait; longer ones count so
WAIT_BINS_PER_OCTAVE = 64  # calendar clock: realised waits are binned by their logarithm
WAIT_OCTAVES = (-30, 50)

# What the policy of the run needs kept, as bits of `head.keeps`: what no step reads is not maintained.
KEEP_AGE, KEEP_QUEUE_INDEX, KEEP_ROUTER_INDEX, KEEP_MEMORY, KEEP_VIEW = 1, 2, 4, 8, 16

USED_ALWAYS = np.dtype(
    [
        # sizes and addresses of other arrays (shapes at `pull_env.arrays`)
        ("n", np.int64),
        ("J", np.int64),
        ("R", np.int64),
        ("M", np.int64),
        ("G", np.int64),
        ("Q", np.int64),
        ("streams", np.int64),
        ("pools", np.int64),
        ("servers", np.int64),
        ("routers", np.int64),
        ("lists", np.int64),
        ("messages", np.int64),
        ("slots", np.int64),
        ("memory", np.int64),
        ("law", np.int64),
        ("asked", np.int64),
        # fixed for a run
        ("arrival_cut", np.uint64),  # Markov clock: an event is an arrival with this probability, x 2^32
        ("tick", np.float64),  # time units a tick of `now`: 1 / (arrival rate + capacity); calendar: 1
        ("calendar", np.int64),  # 0: Markov clock, 1: calendar of departures
        ("keeps", np.int64),  # KEEP_* bits
        ("threshold", np.int64),  # a server with fewer customers is available; 0: servers announce nothing
        ("stale", np.int64),  # 1: a pull-message is never withdrawn, and may be stale when it is taken
        ("complete", np.int64),  # 1: a router remembers every server, entry k being that of server k
        ("recipient", np.int64),  # RECIPIENT_*, or d > 0: the router with fewest messages among d sampled
        # the customer at hand
        ("router", np.int64),  # asked router; -1: there is no customer (a trace has ended)
        # the customer placed last
        ("sender", np.int64),  # the router that placed it
        ("target", np.int64),  # the server it was sent to
        ("answers", np.int64),  # servers asked for it, which `asked` names; -1: all n were looked at
        ("wait", np.float64),  # q / rate (Markov), realised (calendar)
        ("lost", np.int64),  # 1: it was blocked
        # the run so far
        ("now", np.float64),  # in ticks
        ("inside", np.int64),  # customers in the system
        ("arrivals", np.int64),
        ("departures", np.int64),
        ("starved", np.int64),  # routers that hold no pull-message
        # messages counted, by kind
        ("pulls", np.int64),
        ("removes", np.int64),
        ("probes", np.int64),
        ("updates", np.int64),
        ("F", np.int64),
    ]
)
HEAD = np.dtype(
    [
        *USED_ALWAYS.descr,  # first, as few cache lines as can be
        ("sent", np.int64),  # pull-messages sent since the start: the age of a message
        ("ages", np.int64),
        ("limits", np.int64),
        ("table", np.int64),
        ("sampled", np.int64),
        ("by_queue", np.int64),
        ("by_held", np.int64),
        ("work", np.int64),
        ("waiting", np.int64),
        ("heap", np.int64),
        ("gaps", np.int64),
        ("sizes", np.int64),
        ("fed_routers", np.int64),
        ("fed_phases", np.int64),
        ("phase", np.float64),  # calendar clock: of the arrival process, in [0, 1]
        ("size", np.float64),  # calendar clock: service requirement of the customer at hand, mean 1
        ("fed", np.int64),  # calendar clock: customers used of the feed at hand
        ("queued", np.int64),  # calendar clock: servers in the heap
        ("free", np.int64),  # calendar clock: first free cell of `waiting`
    ],
    align=True,
)
RECIPIENT_UNIFORM, RECIPIENT_FEWEST = 0, -1

POOL = np.dtype(
    [
        ("cut", np.uint64),  # alias table over the capacities N_j mu_j
        ("alias", np.int64),
        ("start", np.int64),  # the pool's servers are start, ..., start + size - 1
        ("size", np.int64),
        ("buffer", np.int64),
        ("rate", np.float64),
        ("inside", np.int64),  # customers in the pool
        ("busy", np.int64),  # busy servers
        ("since", np.float64),  # the areas are complete up to this tick
        ("area", np.float64),  # integral of inside, in ticks
        ("busy_area", np.float64),
        ("accepted", np.int64),
        ("blocked", np.int64),
        ("waited", np.int64),  # accepted customers that found the server busy
        ("found", np.int64),  # sum of the queue lengths that accepted customers found
        ("wait", np.float64),  # calendar clock: sum of realised waits
        ("service", np.float64),  # calendar clock: sum of service times of accepted customers
    ],
    align=True,
)

SERVER = np.dtype(
    [
        ("queue", np.int32),  # customers, the one in service included
        ("pool", np.int32),
        (
            "announced",
            np.int32,
        ),  # 1: a pull-message is out (stale protocol: sent since the last arrival here)
    ],
    align=True,
)

ROUTER = np.dtype(
    [
        ("cut", np.uint64),  # alias table over the routers' shares
        ("alias", np.int64),
        ("held", np.int64),  # pull-messages held, all pools
        ("last", np.int64),  # server that announced itself last, -1: none has
        ("cycle", np.int64),  # next server of the uniform round robin
        ("seen", np.float64),  # tick of its last arrival
        ("gap", np.float64),  # recent mean time between its arrivals
        ("empty", np.float64),  # recent share of its arrivals that found no pull-message
    ],
    align=True,
)

LIST = np.dtype(
    [
        ("held", np.int64),  # pull-messages that this router holds from this pool
        ("oldest", np.int64),  # message identities, -1: none
        ("newest", np.int64),
        (
            "best",
            np.int64,
        ),  # entry of the memory: see `find_best`; -1: none
        ("cycle", np.int64),  # weighted round robin: next server of the pool, counted from its start
        ("credit", np.float64),  # weighted round robin: capacity owed to the pool
        ("answer", np.float64),  # recent mean of the waits that probes of this pool promised
        ("idle", np.float64),  # recent share of probes of this pool that found an idle server
    ],
    align=True,
)

MESSAGE = np.dtype(
    [
        ("slot", np.int32),  # place in the holder's slots, -1: not out
        ("router", np.int32),  # the holder
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

MEMORY = np.dtype([("server", np.int32), ("queue", np.int32), ("when", np.float64)], align=True)
# clear: end of all work at a server; first, last: cells of `waiting`
WORK = np.dtype([("clear", np.float64), ("first", np.int32), ("last", np.int32)], align=True)
HEAP = np.dtype([("due", np.float64), ("server", np.int64)])  # a departure
CELL = np.dtype([("size", np.float64), ("next", np.int32)], align=True)

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
    ],
    align=True,
)
TAKE, RECALL, SEND, PROBE, INSPECT, CYCLE, LAST, LOOKUP = range(8)
UNIFORM, RATE = range(2)
RANDOM, OLDEST, FASTEST = range(3)
BY_QUEUE, BY_DELAY, BY_QUEUE_THEN_SPEED, BY_WORK = range(4)


# Arrays of plain numbers are read as records of one field.
INTEGER = np.dtype([("value", np.int32)])
COUNT = np.dtype([("value", np.int64)])
REAL = np.dtype([("value", np.float64)])
STREAM = np.dtype([("a", np.uint64), ("b", np.uint64), ("c", np.uint64), ("d", np.uint64)])

# Items of several groups, sorted by a small integer that moves by one: each move, and the lowest, cost O(1).
INDEX = np.dtype(
    [
        ("order", np.int64),  # (items,) int32  items of a group by ascending level, groups side by side
        ("place", np.int64),  # (items,) int32  where an item stands in `order`
        ("above", np.int64),  # (groups, levels + 1) int32  items of the group at this level or higher
        ("lowest", np.int64),  # (groups,) int64  the lowest level at which the group has an item
        ("levels", np.int64),
    ]
)

# How kernels reach a record: by the address of its array and its place there.
head_at, pool_at, server_at, router_at = records(HEAD), records(POOL), records(SERVER), records(ROUTER)
list_at, message_at, memory_at, step_at = records(LIST), records(MESSAGE), records(MEMORY), records(STEP)
work_at, cell_at, stream_at, index_at = records(WORK), records(CELL), records(STREAM), records(INDEX)
integer_at, count_at, real_at = records(INTEGER), records(COUNT), records(REAL)
age_at, heap_at = records(AGE), records(HEAP)


@kernel
def head_of(system: int) -> Any:
    """Return the one record that holds the numbers of `system` and the addresses of its arrays."""
    return head_at(system, 0)


@kernel
def pool_of(system: int, pool: int) -> Any:
    """Return the record of a pool."""
    return pool_at(head_at(system, 0).pools, pool)


@kernel
def server_of(system: int, server: int) -> Any:
    """Return the record of a server."""
    return server_at(head_at(system, 0).servers, server)


@kernel
def router_of(system: int, router: int) -> Any:
    """Return the record of a router."""
    return router_at(head_at(system, 0).routers, router)


@kernel
def list_of(system: int, router: int, pool: int) -> Any:
    """Return what a router holds and knows of a pool."""
    head = head_at(system, 0)
    return list_at(head.lists, router * head.J + pool)


@kernel
def message_of(system: int, message: int) -> Any:
    """Return the record of a pull-message, by its identity."""
    return message_at(head_at(system, 0).messages, message)


@kernel
def age_of(system: int, message: int) -> Any:
    """Return where a pull-message stands in order of age, by its identity."""
    return age_at(head_at(system, 0).ages, message)


@kernel
def slot_of(system: int, router: int, pool: int, slot: int) -> Any:
    """Return the cell that names the server of a router's message, by its place in the list of a pool."""
    head = head_at(system, 0)
    return integer_at(head.slots, router * head.n + pool_at(head.pools, pool).start + slot)


@kernel
def memory_of(system: int, router: int, group: int, entry: int) -> Any:
    """Return an entry of a router's memory."""
    head = head_at(system, 0)
    return memory_at(head.memory, (router * head.G + group) * head.M + entry)


@kernel
def work_of(system: int, server: int) -> Any:
    """Return the record of a server on the calendar."""
    return work_at(head_at(system, 0).work, server)


@kernel
def asked_of(system: int, place: int) -> Any:
    """Return the cell that names the server asked in this place for the customer at hand."""
    return integer_at(head_at(system, 0).asked, place)


@kernel
def group_of(system: int, pool: int) -> int:
    """Return the group of a router's memory that holds servers of `pool`."""
    return pool if head_at(system, 0).G > 1 else 0
