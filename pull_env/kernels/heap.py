"""A priority queue of entries (due, key) at an address.

The soonest entry is first; ties go to the lower key. The caller keeps the size. With four branches the heap
is half as deep as with two, and siblings are side by side in memory.
"""

from __future__ import annotations

from pull_env.kernels.access import heap_at
from pull_env.kernels.compiler.jit import kernel

BRANCHES_LOG = 2


@kernel
def sooner(due: float, key: int, other_due: float, other: int) -> bool:
    """Return whether (due, key) comes before the other."""
    return due < other_due or (due == other_due and key < other)


@kernel
def push(heap: int, size: int, due: float, key: int) -> None:
    """Add an entry to the heap at address `heap`, which has `size` entries so far."""
    index = size
    while index > 0:
        above = heap_at(heap, (index - 1) >> BRANCHES_LOG)
        if not sooner(due, key, above.due, above.key):
            break
        entry = heap_at(heap, index)
        entry.due, entry.key = above.due, above.key
        index = (index - 1) >> BRANCHES_LOG
    entry = heap_at(heap, index)
    entry.due, entry.key = due, key


@kernel
def pop(heap: int, size: int) -> None:
    """Remove the first entry of the heap, which keeps `size`."""
    if size > 0:
        last = heap_at(heap, size)
        sink(heap, size, last.due, last.key)


@kernel
def sink(heap: int, size: int, due: float, key: int) -> None:
    """Reindex the first entry by another, which sinks until all below it come later."""
    index, child = 0, 1
    while child < size:
        best_due, best = heap_at(heap, child).due, heap_at(heap, child).key
        lowest = child
        for k in range(child + 1, min(child + (1 << BRANCHES_LOG), size)):
            other = heap_at(heap, k)
            if sooner(other.due, other.key, best_due, best):
                best_due, best, lowest = other.due, other.key, k
        if sooner(due, key, best_due, best):
            break
        entry = heap_at(heap, index)
        entry.due, entry.key = best_due, best
        index = lowest
        child = (index << BRANCHES_LOG) + 1
    entry = heap_at(heap, index)
    entry.due, entry.key = due, key
