"""A step of an env, and of a batch of envs, whose views are rows of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.access import count_at, has_flag, head_of, real_at
from pull_env.kernels.compiler.addresses import records
from pull_env.kernels.compiler.intrinsics import copy
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.envs.observe import CHAIN_STEPS, ENTRY_BYTES, VIEW, flag_at, outcome_at, view_at
from pull_env.kernels.prefetch.batches import (
    prefetch_next_events,
    prefetch_range,
    prefetch_router,
    prefetch_state,
)
from pull_env.kernels.run import observe_current, transition
from pull_env.kernels.state import ALWAYS_BYTES, CALENDAR, STEP

NUMBERS, NUMBER_BYTES = 6, 8  # per env in the outputs, besides observation, mask and flags
ENDED, NEEDS_FEED = -1, -2  # why an env did not advance
CHAIN_BYTES, VIEW_BYTES = CHAIN_STEPS * STEP.itemsize, VIEW.itemsize

BATCH = np.dtype(
    [
        ("envs", np.int64),
        # addresses
        ("views", np.int64),  # (envs,) VIEW
        ("actions", np.int64),  # (envs,) int64
        ("left", np.int64),  # (envs,) int64  customers left to each episode, or what `step_env` returned
        ("observations", np.int64),  # (envs, entries) float32, those of the views
        ("masks", np.int64),  # (envs, size) int8, those of the views
        # constants
        ("entries", np.int64),  # of an observation
        ("size", np.int64),  # actions of the catalog
        ("restarts", np.int64),  # 1: an env may step whose episode has ended
    ]
)
GROUP = 16  # envs whose outputs are written together, while they are in the cache
batch_at = records(BATCH)


@entry
def step_env(view: int, chain: int, steps: int) -> int:
    """Route the current customer of an env by the chain of its action, and observe.

    Returns:
        How many customers are left to the episode, 0 if it ended with this one. Or why nothing happened:
        ENDED, the episode had ended before; NEEDS_FEED, the calendar clock must be fed first.
    """
    left = step_unobserved(view, chain, steps)
    if left >= 0:
        observe_current(view_at(view, 0).system, view)
    return left


@kernel
def refusal_of(view: int) -> int:
    """Return 0 if the env of `view` can step, else ENDED or NEEDS_FEED."""
    record = view_at(view, 0)
    head = head_of(record.system)
    if record.left == 0:
        return ENDED
    if has_flag(record.system, CALENDAR) and head.fed == head.F > 0:  # F = 0: no more customers
        return NEEDS_FEED
    return 0


@kernel
def count_down(view: int) -> int:
    """Count the assigned customer; return how many are left, 0 at the end."""
    observed = view_at(view, 0)
    observed.left = observed.left - 1 if head_of(observed.system).router >= 0 else 0
    return int(observed.left)


@kernel
def step_unobserved(view: int, chain: int, steps: int) -> int:
    """Do what `step_env` does, without observing."""
    refusal = refusal_of(view)
    if refusal < 0:
        return refusal
    transition(view_at(view, 0).system, chain, steps, view)
    return count_down(view)


@kernel
def step_some(batch: int, first: int, last: int, outputs: int) -> int:
    """Step the envs `first` to `last` - 1; write their outputs at address `outputs`.

    Returns:
        How many ended, or did not advance.
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
        write_outputs(batch, start, end, outputs)
    return count


@kernel
def chain_of(batch: int, k: int) -> int:
    """Return the address of the steps of env k's action."""
    it = batch_at(batch, 0)
    return view_at(it.views, k).chains + count_at(it.actions, k).value * CHAIN_BYTES


@entry
def write_all(batch: int, first: int, last: int, outputs: Any) -> None:
    """Write the state of the envs `first` to `last` - 1 to `outputs`."""
    write_outputs(batch, first, last, outputs.ctypes.data)


@kernel
def write_outputs(batch: int, first: int, last: int, outputs: int) -> None:
    """Write the state of envs `first` to `last` - 1 to the arrays at `outputs`.

    Their layout is that of `pull_env.envs.batch.layout`.
    """
    it = batch_at(batch, 0)
    envs, observations = it.envs, outputs + NUMBERS * it.envs * NUMBER_BYTES
    masks = observations + envs * it.entries * ENTRY_BYTES
    flags = masks + envs * it.size
    for k in range(first, last):
        outcome = outcome_at(view_at(it.views, k).outcome, 0)
        real_at(outputs, k).value = 0.0 - outcome.cost
        real_at(outputs, envs + k).value = outcome.cost
        real_at(outputs, 2 * envs + k).value = outcome.wait
        real_at(outputs, 3 * envs + k).value = outcome.time
        count_at(outputs, 4 * envs + k).value = outcome.messages
        count_at(outputs, 5 * envs + k).value = outcome.router
        flag_at(flags, k).value = outcome.lost
        flag_at(flags, envs + k).value = count_at(it.left, k).value == 0
        flag_at(flags, 2 * envs + k).value = 0
    row = it.entries * ENTRY_BYTES
    copy(observations + first * row, it.observations + first * row, (last - first) * row)
    copy(masks + first * it.size, it.masks + first * it.size, (last - first) * it.size)


@kernel
def first_invalid(batch: int) -> int:
    """Return the first env that cannot step; the number of envs if all can.

    An env cannot if its action is not in the catalog, or if its episode has ended and `restarts` is 0.
    """
    it = batch_at(batch, 0)
    for k in range(it.envs):
        action = count_at(it.actions, k).value
        if action < 0 or action >= it.size or (count_at(it.left, k).value == 0 and not it.restarts):
            return k
    return it.envs
