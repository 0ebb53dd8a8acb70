"""A step of an env, and one of a whole batch of envs, which stand side by side."""

from __future__ import annotations

import numpy as np

from pull_env.kernels.jit import entry, kernel, prefetch, records
from pull_env.kernels.observe import CHAIN_STEPS, VIEW, flag_at, outcome_at, view_at
from pull_env.kernels.run import turn
from pull_env.kernels.state import (
    ARRIVALS,
    CALENDAR,
    INTEGER,
    LIST,
    MEMORY,
    MESSAGES,
    POLICY,
    POOL,
    ROUTER,
    SERVER,
    STEP,
    TAKE,
    USED_ALWAYS,
    count_at,
    has,
    head_of,
    list_of,
    pool_of,
    real_at,
    step_at,
)
from pull_env.kernels.stream import (
    HALF,
    LOW,
    below,
    peek,
    pool_of_tick,
    server_at_random,
    weighted_pool,
)

ENDED, HUNGRY = -1, -2  # why an env did not move
CHAIN_BYTES, VIEW_BYTES = CHAIN_STEPS * STEP.itemsize, VIEW.itemsize
HEAD_BYTES = USED_ALWAYS.itemsize
POOL_BYTES, ROUTER_BYTES, LIST_BYTES, MEMORY_BYTES = (r.itemsize for r in (POOL, ROUTER, LIST, MEMORY))
SERVER_BYTES, INTEGER_BYTES = SERVER.itemsize, INTEGER.itemsize

BATCH = np.dtype(
    [
        ("envs", np.int64),
        # addresses
        ("views", np.int64),  # (envs,) VIEW
        ("actions", np.int64),  # (envs,) int64
        ("left", np.int64),  # (envs,) int64  what `act` returned
        ("numbers", np.int64),  # (6, envs): reward, cost, wait, time, float64; messages, router, int64
        ("flags", np.int64),  # (2, envs) bool: blocked, ended in this step
    ]
)
batch_at = records(BATCH)


@entry
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
    if (
        has(sight.system, CALENDAR) and head.fed == head.F and head.F > 0
    ):  # F = 0: there is nothing more to feed
        return HUNGRY
    turn(sight.system, chain, steps, view)
    sight.left = sight.left - 1 if head.router >= 0 else 0
    return sight.left


@entry
def act_all(batch: int, first: int, last: int) -> int:
    """Let the envs `first` to `last` - 1 of `batch` act, each by its entry of the catalog.

    Returns:
        How many ended, or did not move.
    """
    it, count = batch_at(batch, 0), 0
    for k in range(first, last):
        if k + 3 < last:
            fetch(view_at(it.views, k + 3).system, HEAD_BYTES)
        if k + 2 < last:
            fetch_at_hand(view_at(it.views, k + 2).system)
        if k + 1 < last:
            fetch_drawn(view_at(it.views, k + 1).system, chain_of(batch, k + 1))
        left = act(it.views + k * VIEW_BYTES, chain_of(batch, k), CHAIN_STEPS)
        count_at(it.left, k).value = left
        flag_at(it.flags, it.envs + k).value = left == 0
        count += left <= 0
        pack(batch, k)
    return count


@kernel
def chain_of(batch: int, k: int) -> int:
    """Return the address of the steps of env k's action."""
    it = batch_at(batch, 0)
    return view_at(it.views, k).chains + count_at(it.actions, k).value * CHAIN_BYTES


@entry
def pack(batch: int, k: int) -> None:
    """Copy the outcome of env `k` to the arrays of the batch."""
    it = batch_at(batch, 0)
    outcome, envs, numbers = outcome_at(view_at(it.views, k).outcome, 0), it.envs, it.numbers
    real_at(numbers, k).value = 0.0 - outcome.cost
    real_at(numbers, envs + k).value = outcome.cost
    real_at(numbers, 2 * envs + k).value = outcome.wait
    real_at(numbers, 3 * envs + k).value = outcome.time
    count_at(numbers, 4 * envs + k).value = outcome.messages
    count_at(numbers, 5 * envs + k).value = outcome.router
    flag_at(it.flags, k).value = outcome.lost


@entry
def first_refused(batch: int, size: int, restarts: bool) -> int:
    """Return the first env of `batch` that cannot act, as many as there are if all can.

    Args:
        batch: Address of the BATCH.
        size: Entries of the catalog: an action that is not from 0 to `size` - 1 is refused.
        restarts: Whether an env may act whose episode has ended.
    """
    it = batch_at(batch, 0)
    for k in range(it.envs):
        action = count_at(it.actions, k).value
        if action < 0 or action >= size or (view_at(it.views, k).left == 0 and not restarts):
            return k
    return it.envs


@kernel
def fetch(address: int, size: int) -> None:
    """Fetch `size` bytes."""
    for line in range(0, size, 64):
        prefetch(address + line)


@kernel
def fetch_at_hand(system: int) -> None:
    """Fetch what is known to be needed when the customer at hand is placed, but for the head."""
    head = head_of(system)
    fetch(head.pools, head.J * POOL_BYTES)
    router = head.router
    fetch(head.routers + router * ROUTER_BYTES, ROUTER_BYTES)
    fetch(head.lists + router * head.J * LIST_BYTES, head.J * LIST_BYTES)
    fetch(head.memory + router * head.J * head.M * MEMORY_BYTES, head.J * head.M * MEMORY_BYTES)
    prefetch(head.law)  # short queues, of all pools


@kernel
def fetch_drawn(system: int, chain: int) -> None:
    """Fetch what the next random numbers point at, where it is known what they will be used for."""
    head = head_of(system)
    if head.router < 0:  # a trace has ended
        return
    fetch_chosen(system, chain)
    drawn = peek(system, ARRIVALS)
    if drawn & LOW < head.arrival_cut:  # the next customer comes before anybody leaves
        return
    pool = pool_of_tick(system, drawn & LOW)
    place = pool_of(system, pool)
    prefetch(head.servers + (place.start + below(drawn >> HALF, place.size)) * SERVER_BYTES)
    if head.threshold > 0:  # who gets its message
        router = below(peek(system, MESSAGES) & LOW, head.R)
        prefetch(head.routers + router * ROUTER_BYTES)
        prefetch(head.lists + (router * head.J + pool) * LIST_BYTES)


@kernel
def fetch_chosen(system: int, chain: int) -> None:
    """Fetch the server that the first step at `chain` draws, or the slot of the message that it takes."""
    head, step, drawn = head_of(system), step_at(chain, 0), peek(system, POLICY)
    pool = step.pool if step.pool >= 0 else weighted_pool(system, drawn >> HALF)
    held = list_of(system, head.router, pool).held
    if step.kind == TAKE and held > 0:
        slot = list_of(system, head.router, pool).slots + below(drawn & LOW, held)
        prefetch(head.slots + slot * INTEGER_BYTES)
    else:
        prefetch(head.servers + server_at_random(system, pool, drawn) * SERVER_BYTES)
