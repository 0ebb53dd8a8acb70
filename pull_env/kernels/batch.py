"""A step of an env, and one of a whole batch of envs, which stand side by side."""

from __future__ import annotations

from pull_env.kernels.jit import kernel, prefetch
from pull_env.kernels.observe import CHAIN_STEPS, VIEW, view_at
from pull_env.kernels.run import turn
from pull_env.kernels.state import HEAD, LIST, MEMORY, POOL, ROUTER, STEP, count_at, head_of

ENDED, HUNGRY = -1, -2  # why an env did not move
CHAIN_BYTES, VIEW_BYTES = CHAIN_STEPS * STEP.itemsize, VIEW.itemsize
HEAD_BYTES = HEAD.itemsize
POOL_BYTES, ROUTER_BYTES, LIST_BYTES, MEMORY_BYTES = (r.itemsize for r in (POOL, ROUTER, LIST, MEMORY))


@kernel
def act(view: int, chain: int, steps: int) -> int:
    """Let the env of `view` take a turn by the chain of `steps` steps.

    Returns:
        How many customers are left to the episode, 0 where it ended with this one. Or why nothing happened:
        ENDED, the episode had ended before; HUNGRY, the calendar clock must be fed first.
    """
    sight = view_at(view, 0)
    head = head_of(sight.system)
    if sight.left == 0:
        return ENDED
    if head.calendar and head.fed == head.F and head.F > 0:  # F = 0: there is nothing more to feed
        return HUNGRY
    turn(sight.system, chain, steps, view)
    sight.left = sight.left - 1 if head.router >= 0 else 0
    return sight.left


@kernel
def act_all(views: int, actions: int, left: int, first: int, last: int) -> int:
    """Let the envs `first` to `last` - 1 act, each by its entry of the catalog.

    Args:
        views: Address of (envs,) VIEW.
        actions: Address of (envs,) int64.
        left: Address of (envs,) int64, which is overwritten by what `act` returns.
        first: The first env.
        last: One after the last env.

    Returns:
        How many envs ended, or did not move.
    """
    count = 0
    for k in range(first, last):
        if k + 2 < last:
            fetch(view_at(views, k + 2).system, HEAD_BYTES)
        if k + 1 < last:
            fetch_at_hand(view_at(views, k + 1).system)
        view = views + k * VIEW_BYTES
        chain = view_at(view, 0).chains + count_at(actions, k).value * CHAIN_BYTES
        now = count_at(left, k)
        now.value = act(view, chain, CHAIN_STEPS)
        count += now.value <= 0
    return count


@kernel
def first_refused(views: int, actions: int, envs: int, size: int, restarts: bool) -> int:
    """Return the first env that cannot act, `envs` if all can.

    Args:
        views: Address of (envs,) VIEW.
        actions: Address of (envs,) int64: one that is not from 0 to `size` - 1 is refused.
        envs: How many.
        size: Entries of the catalog.
        restarts: Whether an env may act whose episode has ended.
    """
    for k in range(envs):
        action = count_at(actions, k).value
        if action < 0 or action >= size or (view_at(views, k).left == 0 and not restarts):
            return k
    return envs


@kernel
def fetch(address: int, size: int) -> None:
    """Fetch `size` bytes."""
    for line in range(0, size, 64):
        prefetch(address + line)


@kernel
def fetch_at_hand(system: int) -> None:
    """Fetch what is known to be needed when the customer at hand is placed, but for the head."""
    head = head_of(system)
    fetch(head.streams, 128)
    fetch(head.pools, head.J * POOL_BYTES)
    router = head.router
    fetch(head.routers + router * ROUTER_BYTES, ROUTER_BYTES)
    fetch(head.lists + router * head.J * LIST_BYTES, head.J * LIST_BYTES)
    fetch(head.memory + router * head.J * head.M * MEMORY_BYTES, head.J * head.M * MEMORY_BYTES)
    for j in range(head.J):
        prefetch(head.law + j * head.Q * 8)
