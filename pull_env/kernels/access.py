"""Access to the records of a system.

`x_at(address, k)` is the k-th record of the array at an address; `x_of(system, k)` that of an array of a
system, by its handle. A record is a reference: assigning to its fields writes to the array.
"""

from __future__ import annotations

from typing import Any

from pull_env.kernels import state
from pull_env.kernels.compiler.addresses import elements, records, tagged
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import ADDRESS, ADDRESS_BITS, FAULTS, FIRST_STREAM, PLACE_BYTES, STALE

pool_at, router_at, list_at = records(state.POOL), records(state.ROUTER), records(state.LIST)
step_at, cell_at, event_at = records(state.STEP), records(state.CELL), records(state.EVENT)
stream_at, index_at = records(state.STREAM), records(state.INDEX)
integer_at, count_at, real_at = records(state.INTEGER), records(state.COUNT), records(state.REAL)
number_at = records(state.NUMBER)
head_of = tagged(state.HEAD, ADDRESS_BITS)
pool_of = elements(state.HEAD, ADDRESS_BITS, "pools", state.POOL)
server_of = elements(state.HEAD, ADDRESS_BITS, "servers", state.SERVER)
router_of = elements(state.HEAD, ADDRESS_BITS, "routers", state.ROUTER)
age_of = elements(state.HEAD, ADDRESS_BITS, "ages", state.AGE)  # by message id
work_of = elements(state.HEAD, ADDRESS_BITS, "work", state.WORK)
probed_of = elements(state.HEAD, ADDRESS_BITS, "probed", state.INTEGER)  # k-th server probed
condition_of = elements(state.HEAD, ADDRESS_BITS, "conditions", state.CONDITION)
health_of = elements(state.HEAD, ADDRESS_BITS, "health", state.HEALTH)
ring_of = elements(state.HEAD, ADDRESS_BITS, "rings", state.RING)
unanswered_of = elements(state.HEAD, ADDRESS_BITS, "unanswered", state.INTEGER)  # 1: it did not answer
heap_at, history_at, drain_at = records(state.HEAP), records(state.HISTORY), records(state.DRAIN)
SERVER_BYTES, SLOT_OFFSET = state.SERVER.itemsize, state.SERVER.fields["slot"][1]  # type: ignore[index]
RING_BYTES = state.RING.itemsize
HISTORY_BYTES, QUEUES_OFFSET = state.HISTORY.itemsize, state.HISTORY.fields["queues"][1]  # type: ignore[index]


@kernel
def has_flag(system: int, flags: int) -> bool:
    """Return whether the run has any of `flags`; reads no memory."""
    return (system >> ADDRESS_BITS) & flags != 0


@kernel
def stream_of(system: int, which: int) -> Any:
    """Return the words of a random stream."""
    return stream_at((system & ADDRESS) + FIRST_STREAM, which)


@kernel
def list_of(system: int, router: int, pool: int) -> Any:
    """Return what a router holds and knows of a pool, a LIST."""
    head = head_of(system)
    return list_at(head.lists, router * head.J + pool)


@kernel
def message_id(system: int, router: int, server: int) -> int:
    """Return the id of the message of `server` at `router`, an index of `ages`.

    Without stale messages a server has one message at most, and its number is enough.
    """
    return router * head_of(system).n + server if has_flag(system, STALE | FAULTS) else server


@kernel
def slot_cell(system: int, router: int, server: int) -> Any:
    """Return the cell that holds the slot of the message of `server` at `router`.

    It is a field of the server, in the cache line that is needed anyway; where messages may be stale, an item
    of `messages`.
    """
    head = head_of(system)
    if has_flag(system, STALE | FAULTS):
        return integer_at(head.messages, router * head.n + server)
    return integer_at(head.servers + server * SERVER_BYTES + SLOT_OFFSET, 0)


@kernel
def first_slot(system: int, router: int, pool: int) -> int:
    """Return the index in `slots` of the first message of `pool` at `router`."""
    return int(router * head_of(system).n + pool_of(system, pool).start)


@kernel
def held_server_cell(system: int, router: int, pool: int, k: int) -> Any:
    """Return the cell of the server of the k-th message from `pool` at `router`."""
    return integer_at(head_of(system).slots, first_slot(system, router, pool) + k)


@kernel
def memory_of(system: int, router: int, group: int) -> int:
    """Return the address of what a router remembers of a group: see `memory_row`."""
    head = head_of(system)
    return head.memory + (router * head.G + group) * head.M * PLACE_BYTES


@kernel
def history_of(system: int, router: int, pool: int) -> Any:
    """Return the recent answers of a pool to a router, a HISTORY."""
    head = head_of(system)
    return history_at(head.histories, router * head.J + pool)


@kernel
def answer_of(system: int, router: int, pool: int, k: int) -> Any:
    """Return the cell of the k-th answer kept in a HISTORY."""
    head = head_of(system)
    return integer_at(head.histories + (router * head.J + pool) * HISTORY_BYTES + QUEUES_OFFSET, k)


@kernel
def group_of(system: int, pool: int) -> int:
    """Return the group of a router's memory that has the servers of `pool`."""
    return pool if head_of(system).G > 1 else 0
