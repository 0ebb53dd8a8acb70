"""A step of an env, and one of a whole batch of envs, which stand side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.compiler.intrinsics import copy, prefetch_far
from pull_env.kernels.compiler.jit import entry, kernel, records
from pull_env.kernels.envs.observe import CHAIN_STEPS, ENTRY_BYTES, VIEW, flag_at, outcome_at, view_at
from pull_env.kernels.prefetch.batches import LIST_BYTES, ROUTER_BYTES, prefetch_next_events, prefetch_range
from pull_env.kernels.run import observe_current, transition
from pull_env.kernels.state import (
    ALWAYS_BYTES,
    CALENDAR,
    PLACE_BYTES,
    POOL,
    STEP,
    count_at,
    has_flag,
    head_of,
    memory_of,
    real_at,
)

NUMBERS, NUMBER_BYTES = 6, 8  # of every env in an answer
ENDED, NEEDS_FEED = -1, -2  # why an env did not move
CHAIN_BYTES, VIEW_BYTES = CHAIN_STEPS * STEP.itemsize, VIEW.itemsize
POOL_BYTES = POOL.itemsize

BATCH = np.dtype(
    [
        ("envs", np.int64),
        # addresses
        ("views", np.int64),  # (envs,) VIEW
        ("actions", np.int64),  # (envs,) int64
        (
            "left",
            np.int64,
        ),  # (envs,) int64  customers to the end of each episode, or what `step_env` returned
        ("observations", np.int64),  # (envs, entries) float32, those of the views
        ("masks", np.int64),  # (envs, size) int8, those of the views
        # constants
        ("entries", np.int64),  # of an observation
        ("size", np.int64),  # actions of the catalog
        ("restarts", np.int64),  # 1: an env may act whose episode has ended
    ]
)
GROUP = 16  # envs whose answers are written together, soon enough to be at hand still
batch_at = records(BATCH)


@entry
def step_env(view: int, chain: int, steps: int) -> int:
    """Let the env of `view` take a turn by the chain of `steps` steps.

    Returns:
        How many customers are left to the episode, 0 where it ended with this one. Or why nothing happened:
        ENDED, the episode had ended before; NEEDS_FEED, the calendar clock must be fed first.
    """
    left = step_unobserved(view, chain, steps)
    if left >= 0:
        observe_current(view_at(view, 0).system, view)
    return left


@kernel
def step_unobserved(view: int, chain: int, steps: int) -> int:
    """Do what `step_env` does, but for the observation."""
    sight = view_at(view, 0)
    head = head_of(sight.system)
    if sight.left == 0:
        return ENDED
    if has_flag(sight.system, CALENDAR) and head.fed == head.F > 0:  # F = 0: there is nothing more to feed
        return NEEDS_FEED
    transition(sight.system, chain, steps, view)
    sight.left = sight.left - 1 if head.router >= 0 else 0
    return int(sight.left)


@kernel
def step_some(batch: int, first: int, last: int, answer: int) -> int:
    """Let the envs `first` to `last` - 1 of `batch` act, and write what they show at address `answer`.

    Returns:
        How many ended, or did not move.
    """
    it, count = batch_at(batch, 0), 0
    for start in range(first, last, GROUP):
        end = min(start + GROUP, last)
        for k in range(start, end):
            if k + 3 < last:
                prefetch_range(view_at(it.views, k + 3).system, ALWAYS_BYTES)
            if k + 2 < last:
                prefetch_state(view_at(it.views, k + 2).system)
            if k + 1 < last:
                prefetch_next_events(view_at(it.views, k + 1).system, chain_of(batch, k + 1))
            left = step_unobserved(it.views + k * VIEW_BYTES, chain_of(batch, k), CHAIN_STEPS)
            count_at(it.left, k).value = left
            count += left <= 0
            prefetch_router(view_at(it.views, k).system)
        for k in range(start, end):
            observe_current(view_at(it.views, k).system, it.views + k * VIEW_BYTES)
        write_answers(batch, start, end, answer)
    return count


@kernel
def chain_of(batch: int, k: int) -> int:
    """Return the address of the steps of env k's action."""
    it = batch_at(batch, 0)
    return view_at(it.views, k).chains + count_at(it.actions, k).value * CHAIN_BYTES


@entry
def write_all(batch: int, first: int, last: int, answer: Any) -> None:
    """Write to `answer` what the envs `first` to `last` - 1 of `batch` show."""
    write_answers(batch, first, last, answer.ctypes.data)


@kernel
def write_answers(batch: int, first: int, last: int, answer: int) -> None:
    """Write what envs show to the arrays that begin at address `answer`: see `envs.batch.layout`."""
    it = batch_at(batch, 0)
    envs, seen = it.envs, answer + NUMBERS * it.envs * NUMBER_BYTES
    masks = seen + envs * it.entries * ENTRY_BYTES
    flags = masks + envs * it.size
    for k in range(first, last):
        outcome = outcome_at(view_at(it.views, k).outcome, 0)
        real_at(answer, k).value = 0.0 - outcome.cost
        real_at(answer, envs + k).value = outcome.cost
        real_at(answer, 2 * envs + k).value = outcome.wait
        real_at(answer, 3 * envs + k).value = outcome.time
        count_at(answer, 4 * envs + k).value = outcome.messages
        count_at(answer, 5 * envs + k).value = outcome.router
        flag_at(flags, k).value = outcome.lost
        flag_at(flags, envs + k).value = count_at(it.left, k).value == 0
        flag_at(flags, 2 * envs + k).value = 0
    row = it.entries * ENTRY_BYTES
    copy(seen + first * row, it.observations + first * row, (last - first) * row)
    copy(masks + first * it.size, it.masks + first * it.size, (last - first) * it.size)


@kernel
def first_invalid(batch: int) -> int:
    """Return the first env of `batch` that cannot act, as many as there are if all can.

    It cannot if its action is none of the catalog, or if its episode has ended and `restarts` is 0.
    """
    it = batch_at(batch, 0)
    for k in range(it.envs):
        action = count_at(it.actions, k).value
        if action < 0 or action >= it.size or (count_at(it.left, k).value == 0 and not it.restarts):
            return k
    return it.envs


@kernel
def prefetch_state(system: int) -> None:
    """Fetch what is known to be needed when the customer at hand is placed, but for the head."""
    head = head_of(system)
    prefetch_range(head.pools, head.J * POOL_BYTES)
    prefetch_router(system)
    prefetch_range(memory_of(system, head.router, 0), head.G * head.M * PLACE_BYTES)
    prefetch_far(head.short_histogram)  # short queues, of all pools


@kernel
def prefetch_router(system: int) -> None:
    """Fetch what the router at hand knows."""
    head = head_of(system)
    router = head.router
    prefetch_range(head.routers + router * ROUTER_BYTES, ROUTER_BYTES)
    prefetch_range(head.lists + router * head.J * LIST_BYTES, head.J * LIST_BYTES)
