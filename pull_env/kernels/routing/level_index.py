"""Items sorted by a small integer that changes by one, in O(1).

Used for servers by queue length and routers by messages held. The items of a level are side by side in
`order`, so that moving one to the next level is a swap with the end of its block. Levels beyond the last one
kept count as the last. An index is known by the address of its INDEX record.
"""

from __future__ import annotations

from pull_env.kernels.access import count_at, index_at, integer_at
from pull_env.kernels.compiler.jit import kernel


@kernel
def count_above(index: int, group: int, level: int) -> int:
    """Return how many items of `group` are at `level` or higher."""
    it = index_at(index, 0)
    return integer_at(it.above, group * (it.levels + 1) + level).value


@kernel
def _swap(index: int, item: int, target: int) -> None:
    """Swap `item` with the item at position `target`."""
    it = index_at(index, 0)
    source = integer_at(it.position, item).value
    other = integer_at(it.order, target).value
    integer_at(it.order, source).value, integer_at(it.order, target).value = other, item
    integer_at(it.position, other).value, integer_at(it.position, item).value = source, target


@kernel
def raise_level(index: int, group: int, end: int, item: int, level: int) -> None:
    """Move `item` from `level` to `level` + 1; its group ends before position `end`."""
    it = index_at(index, 0)
    if level + 1 >= it.levels:
        return
    _swap(index, item, end - count_above(index, group, level + 1) - 1)
    integer_at(it.above, group * (it.levels + 1) + level + 1).value += 1
    if count_above(index, group, level + 1) == count_above(index, group, 0):
        lowest = count_at(it.lowest, group)
        lowest.value = max(lowest.value, level + 1)


@kernel
def lower_level(index: int, group: int, end: int, item: int, level: int) -> None:
    """Move `item` from `level` to `level` - 1."""
    it = index_at(index, 0)
    if level >= it.levels:
        return
    _swap(index, item, end - count_above(index, group, level))
    integer_at(it.above, group * (it.levels + 1) + level).value -= 1
    lowest = count_at(it.lowest, group)
    lowest.value = min(lowest.value, level - 1)


@kernel
def lowest_level(index: int, group: int) -> int:
    """Return the lowest level at which `group` has an item."""
    return count_at(index_at(index, 0).lowest, group).value


@kernel
def count_lowest(index: int, group: int) -> int:
    """Return how many items of `group` are at its lowest level."""
    level = lowest_level(index, group)
    return count_above(index, group, level) - count_above(index, group, level + 1)


@kernel
def pick_lowest(index: int, group: int, end: int, k: int) -> int:
    """Return the k-th item at the lowest level of `group`, in the order of the index."""
    first = end - count_above(index, group, lowest_level(index, group))
    return integer_at(index_at(index, 0).order, first + k).value
