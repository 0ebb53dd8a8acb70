"""The arrays of a system and their place in memory.

The small ones are side by side, as an event touches many of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np

from pull_env.kernels import state
from pull_env.kernels.compiler.intrinsics import LANES
from pull_env.kernels.compiler.jit import address
from pull_env.simulation.kernel_data.linked_record import Array, LinkedRecord, shallow_copy

SMALL = 1 << 18  # bytes; larger arrays are separate: most of their pages may never be touched, and are free
LINE = 64  # bytes of a cache line


@dataclass
class LevelIndex(LinkedRecord):
    """Items sorted by level, for `kernels.routing.level_index`."""

    record: Array  # (1,) INDEX
    lowest: Array  # (groups,) int64
    order: Array  # (items,) int32
    position: Array  # (items,) int32
    above: Array  # (groups, levels + 1) int32
    linked = ("lowest", "order", "position", "above")

    @classmethod
    def of(cls, sizes: list[int], levels: int) -> LevelIndex:
        """Allocate an index of groups of these sizes; call `fill` next."""
        items = sum(sizes)
        record = np.zeros(1, state.INDEX)
        record["levels"] = levels
        return cls(
            record=record,
            lowest=np.zeros(len(sizes), np.int64),
            order=np.zeros(items, np.int32),
            position=np.zeros(items, np.int32),
            above=np.zeros((len(sizes), levels + 1), np.int32),
        )

    def fill(self, sizes: list[int]) -> None:
        """Put all items at level 0; all arrays must be zeros."""
        self.order[:] = self.position[:] = np.arange(self.order.size)
        self.above[:, 0] = sizes


@dataclass
class StateArrays(LinkedRecord):
    """The arrays of a system, linked by `head`; those not needed have length 1.

    The order is that in memory: first what every event touches.
    """

    head: Array  # (1,) HEAD
    pools: Array  # (J,) POOL
    routers: Array  # (R,) ROUTER
    lists: Array  # (R, J) LIST
    short_histogram: Array  # (SHORT_BINS, J) int64  accepted customers by queue found (Markov), else by wait
    memory: Array  # (R, G) of `state.memory_row`  G groups of servers: the pools, or all in one
    histories: Array  # (R, J) HISTORY
    servers: Array  # (n,) SERVER
    messages: Array  # (R, n) int32  where messages may be stale: their slots, -1: not held
    ages: Array  # (n,) AGE by server; where messages may be stale: (R n,) by router and server
    slots: Array  # (R, n) int32  servers whose messages a router holds, pool by pool
    probed: Array  # (largest at_most,) int32  servers probed for the customer at hand, or for the last one
    unanswered: Array  # (largest at_most,) int32  with faults: 1: that server did not answer
    sampled: Array  # (announce.sample,) int32  routers sampled by the server that announced itself last
    limits: Array  # (n,) int32  longest queues that the table of `Lookup` tells apart
    table: Array  # (product of limits + 1,) int32  its servers
    by_queue: LevelIndex  # servers of a pool by queue length
    by_held: LevelIndex  # routers by messages held (one group)
    work: Array  # (n,) WORK
    departure_heap: Array  # (n,) HEAP  next departures of busy servers, a heap by (due, server)
    conditions: Array  # (J,) CONDITION
    health: Array  # (n,) HEALTH
    drains: Array  # (drains,) DRAIN
    long_histogram: Array  # (Q - SHORT_BINS, J) int64  the other bins
    rings: Array  # (STREAMS + 1,) RING  random numbers drawn ahead; the last: COMING
    waiting: Array  # (cells,) CELL  requirements of customers in queue, linked by server
    event_heap: Array  # (cells,) HEAP  events other than departures
    events: Array  # (cells,) EVENT  what they are, the free ones linked
    gaps: Array  # (F,) float64  gaps between the next arrivals
    sizes: Array  # (F,) float64  their service requirements, mean 1
    fed_routers: Array  # (F,) int32  that they ask; -1: drawn by the routers' shares
    fed_phases: Array  # (F,) float64  phases of the arrival process, in [0, 1]
    room: Array | None = None  # (bytes,) uint8  memory of the small arrays, once they are gathered

    @property
    def record(self) -> Array:  # type: ignore[override]
        """The head, which links to the others."""
        return self.head

    def link(self) -> None:
        """Write all addresses into head and indexes; call it when an array was replaced."""
        for index in (self.by_queue, self.by_held):
            index.link()
        super().link()
        self._write_sizes()
        if self.head["flags"][0] & state.FAULTS:
            from pull_env.kernels.faults.dispatch import dispatch_operation  # compiled only where needed

            self.head["fault_entry"] = address(dispatch_operation)

    def link_fed(self) -> None:
        """Write the addresses of the arrays FED only, a tenth of the time of `link`."""
        self._write_addresses(FED)
        self._write_sizes()

    def _write_sizes(self) -> None:
        """Write the lengths of the arrays that are replaced during a run to the head."""
        self.head["F"], self.head["event_cells"] = self.gaps.size, self.events.size

    def gather(self, room: Array | None = None) -> None:
        """Move the small arrays side by side into `room`, (bytes,) uint8.

        `room` begins at a cache line; None: allocate it.
        """
        small = [part for part in self._parts() if part[2].nbytes <= SMALL]
        ends = list(accumulate(whole_lines(array.nbytes) for _, _, array in small))
        self.room = lines(ends[-1]) if room is None else room[: ends[-1]]
        self._small = [(*part, first) for part, first in zip(small, [0, *ends], strict=False)]
        for owner, name, array, first in self._small:
            moved = np.ndarray(array.shape, array.dtype, self.room, first)
            moved[...] = array
            self._set(owner, name, moved)
        self._small = [(owner, name, self._get(owner, name), first) for owner, name, _, first in self._small]
        self._large = [(owner, name) for owner, name, array in self._parts() if array.nbytes > SMALL]
        self._by_level = ("above",) if self.head["flags"][0] & state.CALENDAR else ("long_histogram", "above")
        self.link()

    def clone_into(self, room: Array) -> StateArrays:
        """Return equal arrays in `room`; these must be gathered, and not yet reset.

        That is faster than to allocate, fill and gather others: addresses in the room are shifted, not looked
        up. Those of the feed are shared: the feed replaces them before they are used.
        """
        assert self.room is not None
        other = shallow_copy(self)
        other.by_queue, other.by_held = shallow_copy(self.by_queue), shallow_copy(self.by_held)
        other.room = room[: self.room.size]
        other.room[:] = self.room
        for owner, name, array, first in self._small:
            other._set(owner, name, np.ndarray(array.shape, array.dtype, other.room, first))
        for owner, name in self._large:
            array = self._get(owner, name)
            other._set(owner, name, copy_lowest(name, array) if name in self._by_level else array.copy())
        other._shift(other.room.ctypes.data - self.room.ctypes.data)
        return other

    @property
    def streams(self) -> Array:
        """The random streams in the head, (STREAMS, 4) uint64."""
        return self.head["streams"][0]  # type: ignore[no-any-return]

    @property
    def histogram(self) -> Array:
        """Accepted customers by queue found (Markov clock) or bin of wait, (Q, J) int64."""
        return np.concatenate([self.short_histogram, self.long_histogram])[: int(self.head["Q"][0])]

    def extent(self) -> int:
        """Return the bytes of the small arrays side by side."""
        return sum(whole_lines(array.nbytes) for _, _, array in self._parts() if array.nbytes <= SMALL)

    def clear(self) -> None:
        """Set all arrays except the head to 0; they must be gathered."""
        assert self.room is not None
        self.room[whole_lines(self.head.nbytes) :] = 0
        dense = [part for part in self._large if part[1] not in self._by_level]
        for owner, name in self._large:
            if name in self._by_level:
                wipe(levels(name, self._get(owner, name)))
        for owner, name in dense:
            shape, dtype = self._get(owner, name).shape, self._get(owner, name).dtype
            self._set(owner, name, None)  # first: two of a million servers need not fit at once
            self._set(owner, name, np.zeros(shape, dtype))
        if dense:
            self.link()

    def _shift(self, by: int) -> None:
        """Correct the addresses in a head moved `by` bytes together with the small arrays."""
        words = [WORDS[name] for owner, name, _, _ in self._small if owner is None and name in WORDS]
        self.head.view(np.int64)[words] += by
        for owner, name in self._large:
            if owner is None:
                self.head[name] = self._get(owner, name).ctypes.data
        for name in ("by_queue", "by_held"):
            index = getattr(self, name)
            index.record = index.record.copy()
            index.link()
            self.head[name] = index.address

    def _parts(self) -> Iterator[tuple[str | None, str, Array]]:
        """Yield index name (or None), name and array of all but the feed's arrays."""
        for name in ("head", *ADDRESSES):
            value = getattr(self, name)
            if isinstance(value, LevelIndex):
                yield from ((name, part, getattr(value, part)) for part in LevelIndex.linked)
            elif name not in FED:
                yield None, name, value

    def _get(self, owner: str | None, name: str) -> Array:
        array: Array = getattr(self if owner is None else getattr(self, owner), name)
        return array

    def _set(self, owner: str | None, name: str, array: Array | None) -> None:
        setattr(self if owner is None else getattr(self, owner), name, array)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the room out of copies, whose arrays are copied one by one."""
        return {**self.__dict__, "room": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over the copied or unpickled arrays, and move them side by side."""
        super().__setstate__(attributes)
        self.gather()


def whole_lines(size: int) -> int:
    """Return `size` bytes rounded up to whole cache lines."""
    return -(-size // LINE) * LINE


def whole_lanes(count: int) -> int:
    """Return `count` numbers rounded up to whole vectors."""
    return -(-count // LANES) * LANES


def lines(size: int) -> Array:
    """Return `size` bytes of 0, uint8, the first of which begins a cache line."""
    bytes_ = np.empty(size + LINE, np.uint8)  # not `zeros`, which takes no large pages of memory
    bytes_[...] = 0
    first = -bytes_.ctypes.data % LINE
    return bytes_[first : first + size]


def copy_lowest(name: str, array: Array) -> Array:
    """Return a copy of an array whose only nonzero level is the lowest.

    It touches no other pages.
    """
    other = np.zeros(array.shape, array.dtype)
    levels(name, other)[0] = levels(name, array)[0]
    return other


def levels(name: str, array: Array) -> Array:
    """Return `long_histogram`, or `above` of an index, as (levels, groups)."""
    return array if name == "long_histogram" else array.T


def wipe(levels: Array) -> None:
    """Set `levels`, (levels, groups), to 0.

    A queue grows by one at a time, so the levels used come first; the pages of the others were never touched,
    and are not touched here.
    """
    for first in range(0, len(levels), 64):
        used = levels[first : first + 64]
        if not used.any():
            break
        used[...] = 0


ADDRESSES = tuple(each.name for each in fields(StateArrays) if each.name not in ("head", "room"))
StateArrays.linked = ADDRESSES
WORDS = {name: state.HEAD.fields[name][1] // 8 for name in ADDRESSES}  # type: ignore[index]  # words of the head
FED = ("waiting", "event_heap", "events", "gaps", "sizes", "fed_routers", "fed_phases")
