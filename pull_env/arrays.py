"""The arrays of a system, and where they lie: the small ones side by side, as an event touches many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels import state

Array = npt.NDArray[Any]

SMALL = 1 << 18  # bytes; larger arrays lie alone: most of such a one may never be touched, and costs nothing
LINE = 64  # bytes of a cache line
REPLACED = ("waiting", "gaps", "sizes", "room")


@dataclass
class Index:
    """Items sorted by level, as `kernels.index` keeps them; see INDEX in `kernels.state`."""

    record: Array  # (1,) INDEX
    lowest: Array  # (groups,) int64
    order: Array  # (items,) int32
    place: Array  # (items,) int32
    above: Array  # (groups, levels + 1) int32

    @classmethod
    def of(cls, sizes: list[int], levels: int) -> Index:
        """Allocate an index of groups of `sizes`; call `fill` next."""
        items = sum(sizes)
        return cls(
            record=np.zeros(1, state.INDEX),
            lowest=np.zeros(len(sizes), np.int64),
            order=np.zeros(items, np.int32),
            place=np.zeros(items, np.int32),
            above=np.zeros((len(sizes), levels + 1), np.int32),
        )

    def fill(self, sizes: list[int]) -> None:
        """Let all items stand at level 0, the groups of `sizes` side by side; all arrays must hold 0."""
        self.order[:] = self.place[:] = np.arange(self.order.size)
        self.above[:, 0] = sizes


@dataclass
class Arrays:
    """The arrays of a system, reached by the addresses in `head`; those not needed have length 1.

    The order is that in memory: what every event touches comes first.
    """

    head: Array  # (1,) HEAD
    streams: Array  # (STREAMS, 4) uint64
    pools: Array  # (J,) POOL
    routers: Array  # (R,) ROUTER
    lists: Array  # (R, J) LIST
    memory: Array  # (R, G, M) MEMORY  G groups of servers: the pools, or all in one
    servers: Array  # (n,) SERVER
    messages: Array  # (n,) MESSAGE by server; stale protocol: (R n,) by router and server
    ages: Array  # AGE, like messages
    slots: Array  # (R, n) int32  servers whose messages a router holds, pool by pool
    asked: Array  # (largest at_most,) int32  servers probed for the customer at hand, or for the last one
    sampled: Array  # (announce.sample,) int32  routers sampled by the server that announced itself last
    limits: Array  # (n,) int32  longest queues that the table of `Lookup` tells apart
    table: Array  # (product of limits + 1,) int32  its servers
    by_queue: Index  # servers of a pool by queue length
    by_held: Index  # routers by messages held (one group)
    work: Array  # (n,) WORK
    heap: Array  # (n,) int32  servers that work, a binary heap by (due, server)
    law: Array  # (Q, J) int64  accepted customers by queue found (Markov) or by bin of their wait (calendar)
    waiting: Array  # (cells,) CELL  requirements of customers in queue, linked by server
    gaps: Array  # (F,) float64  times between the arrivals that come next
    sizes: Array  # (F,) float64  their service requirements, mean 1
    room: Array = field(init=False)  # (bytes,) uint8  where the small ones lie

    def link(self) -> None:
        """Write the addresses of all arrays into the head; call it whenever an array was replaced."""
        head = self.head[0]
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Index):
                for name in ("order", "place", "above", "lowest"):
                    value.record[name] = getattr(value, name).ctypes.data
                value.record["levels"] = value.above.shape[1] - 1
                head[each.name] = value.record.ctypes.data
            elif each.name not in ("head", "room"):
                head[each.name] = value.ctypes.data
        head["F"] = self.gaps.size

    def parts(self) -> Iterator[tuple[Any, str, Array]]:
        """Yield all arrays that are never replaced, in order, each with its owner and its name there."""
        for name in (each.name for each in fields(self) if each.name not in REPLACED):
            value = getattr(self, name)
            if isinstance(value, Index):
                yield from ((value, part.name, getattr(value, part.name)) for part in fields(value))
            else:
                yield self, name, value

    def gather(self, room: Array | None = None) -> None:
        """Move the small arrays side by side into `room`, (bytes,) uint8, from a cache line on.

        None: into a new one, just large enough.
        """
        small = [(owner, name, array) for owner, name, array in self.parts() if array.nbytes <= SMALL]
        ends = np.cumsum([whole_lines(array.nbytes) for _, _, array in small])
        room = lines(int(ends[-1])) if room is None else room
        for (owner, name, array), end in zip(small, ends.tolist(), strict=True):
            first = end - whole_lines(array.nbytes)
            place = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
            place[...] = array
            setattr(owner, name, place)
        self.room = room[: int(ends[-1])]
        self.link()

    def clear(self) -> None:
        """Set all to 0, and let go of the feed; call `link` when the head is filled."""
        self.room[:] = 0
        for owner, name, array in self.parts():
            if array.nbytes > SMALL:
                renew(owner, name, array)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the room out of copies, whose arrays are copied one by one."""
        return {**self.__dict__, "room": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self.gather()


def whole_lines(size: int) -> int:
    """Return `size` bytes rounded up to whole cache lines."""
    return -(-size // LINE) * LINE


def lines(size: int) -> Array:
    """Return `size` bytes of 0, uint8, the first of which begins a cache line."""
    bytes_ = np.zeros(size + LINE, np.uint8)
    first = -bytes_.ctypes.data % LINE
    return bytes_[first : first + size]


def renew(owner: Any, name: str, array: Array) -> None:
    """Set a large array to 0.

    Of levels only the first few were ever used; the pages of the rest were never touched, and stay so.
    """
    if name in ("law", "above"):
        levels = array if name == "law" else array.T
        for first in range(0, len(levels), 64):
            used = levels[first : first + 64]
            if not used.any():
                break
            used[...] = 0
    else:
        setattr(owner, name, None)  # first: two of a million servers need not fit at once
        setattr(owner, name, np.zeros(array.shape, array.dtype))
