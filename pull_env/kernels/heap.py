"""A heap of what comes next: entries (due, key) at an address, the soonest first, of equals the lower key.

Whoever owns a heap keeps its size. With four branches it is half as deep as with two, and siblings lie side
by side.
"""

from __future__ import annotations

from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import heap_at

BRANCHES_LOG = 2


@kernel
def sooner(due: float, key: int, other_due: float, other: int) -> bool:
    """Return whether (due, key) comes before the other."""
    return due < other_due or (due == other_due and key < other)


@kernel
def push(heap: int, size: int, due: float, key: int) -> None:
    """Add an entry to the heap of `size` entries at address `heap`: let it rise from the end."""
    place = size
    while place > 0:
        above = heap_at(heap, (place - 1) >> BRANCHES_LOG)
        if not sooner(due, key, above.due, above.key):
            break
        entry = heap_at(heap, place)
        entry.due, entry.key = above.due, above.key
        place = (place - 1) >> BRANCHES_LOG
    entry = heap_at(heap, place)
    entry.due, entry.key = due, key


@kernel
def pop(heap: int, size: int) -> None:
    """Take the first entry out of the heap, which keeps `size`: the last one sinks from the top."""
    if size > 0:
        last = heap_at(heap, size)
        sink(heap, size, last.due, last.key)


@kernel
def sink(heap: int, size: int, due: float, key: int) -> None:
    """Let an entry sink from the top, in place of the first, until all below it come later."""
    place, child = 0, 1
    while child < size:
        best_due, best = heap_at(heap, child).due, heap_at(heap, child).key
        lowest = child
        for k in range(child + 1, min(child + (1 << BRANCHES_LOG), size)):
            other = heap_at(heap, k)
            if sooner(other.due, other.key, best_due, best):
                best_due, best, lowest = other.due, other.key, k
        if sooner(due, key, best_due, best):
            break
        entry = heap_at(heap, place)
        entry.due, entry.key = best_due, best
        place = lowest
        child = (place << BRANCHES_LOG) + 1
    entry = heap_at(heap, place)
    entry.due, entry.key = due, key
