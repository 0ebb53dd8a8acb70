"""What the router at hand knows, as numbers in [0, 1]; for a critic in training, the state of the system too.

An env owns a VIEW record. It says where the observation and the mask of real actions are to be written, and
holds the constants that they need. Layout of the observation: J blocks of POOL_ENTRIES, one block of
ROUTER_ENTRIES; with the state J blocks of POOL_STATE_ENTRIES and one of STATE_ENTRIES follow.
`pull_env.envs.observation` names every entry, and has written those that never change, as well as the marks
of the actions that are always real.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.index import count_above
from pull_env.kernels.jit import kernel, records
from pull_env.kernels.state import (
    LAST,
    RECALL,
    TAKE,
    group_of,
    head_of,
    integer_at,
    list_of,
    memory_of,
    pool_of,
    real_at,
    router_of,
    step_at,
)

POOL_ENTRIES, ROUTER_ENTRIES = 8, 4
POOL_STATE_ENTRIES, STATE_ENTRIES = 5, 3
CHAIN_STEPS = 2  # steps of an action: what it means, and the step to fall back on

VIEW = np.dtype(
    [
        # addresses
        ("system", np.int64),  # the head of the system in view
        ("observation", np.int64),  # (entries,) float32
        ("mask", np.int64),  # (actions,) int8  1: the action means now what it says
        ("outcome", np.int64),  # (1,) OUTCOME
        ("chains", np.int64),  # (actions, CHAIN_STEPS) STEP
        ("doubtful", np.int64),  # (doubts,) int32  actions that are not always real
        ("gaps", np.int64),  # (R,) float64  nominal mean time between a router's arrivals, in ticks
        ("halves", np.int64),  # (J,) float64  queue at which the remembered wait is observed as 1/2
        # constants
        ("actions", np.int64),
        ("doubts", np.int64),
        ("with_state", np.int64),  # 1: append the state; needs KEEP_QUEUE_INDEX
        ("service", np.float64),  # mean service time n / capacity, in time units
        ("service_ticks", np.float64),  # the same in ticks
        ("fastest", np.float64),  # largest rate of a pool
        ("wait_price", np.float64),
        ("message_price", np.float64),
        ("block_price", np.float64),
        # the episode
        ("left", np.int64),  # customers until its end; 0: it has ended, or not begun
    ],
    align=True,
)

OUTCOME = np.dtype(
    [
        ("cost", np.float64),  # of the step: wait or blocking, and messages
        ("wait", np.float64),  # of the customer placed; 0 if it was blocked
        ("lost", np.bool_),  # whether it was blocked
        ("messages", np.int64),  # sent from its arrival to the next one
        ("router", np.int64),  # now asked; -1: the customers have come to an end
        ("time", np.float64),  # now, in time units
    ],
    align=True,
)

view_at, outcome_at = records(VIEW), records(OUTCOME)
entry_at, flag_at = records(np.dtype([("value", np.float32)])), records(np.dtype([("value", np.int8)]))


@kernel
def observe(system: int, router: int, view: int) -> None:
    """Write what `router` sees now to the arrays of `view`: O(J M), and O(R) more with the state.

    `router` is the one at hand, or the last one asked where the customers have come to an end.
    """
    head = head_of(system)
    for pool in range(head.J):
        observe_pool(system, router, pool, view)
    observe_router(system, router, view)
    if view_at(view, 0).with_state:
        observe_state(system, router, view)
    mark_real_actions(system, router, view)
    stamp(system, view)


@kernel
def stamp(system: int, view: int) -> None:
    """Write who is asked now, and when."""
    head, outcome = head_of(system), outcome_at(view_at(view, 0).outcome, 0)
    outcome.router = head.router
    outcome.time = head.now * head.tick


@kernel
def write(view: int, k: int, value: float) -> None:
    """Set entry `k` of the observation."""
    entry_at(view_at(view, 0).observation, k).value = value


@kernel
def part(value: float, half: float) -> float:
    """Map [0, inf] to [0, 1], and `half` to 1/2: value / (half + value)."""
    return 1.0 - half / (half + value)  # a server known from the start was last heard of an infinite time ago


@kernel
def observe_pool(system: int, router: int, pool: int, view: int) -> None:
    """Write what `router` knows of `pool`; its size, rate and buffer are written already."""
    sight, mine, at = view_at(view, 0), list_of(system, router, pool), pool * POOL_ENTRIES
    write(view, at + 3, part(float(mine.held), 1.0))
    if mine.best < 0:
        write(view, at + 4, 1.0)
        write(view, at + 5, 1.0)
    else:
        known = memory_of(system, router, group_of(system, pool), mine.best)
        write(view, at + 4, part(float(known.queue), real_at(sight.halves, pool).value))
        write(view, at + 5, part(head_of(system).now - known.when, sight.service_ticks))
    write(view, at + 6, part(mine.answer, sight.service))
    write(view, at + 7, mine.idle)


@kernel
def observe_router(system: int, router: int, view: int) -> None:
    """Write what `router` knows beyond the pools; the price of a message and the load are written already."""
    own, at = router_of(system, router), head_of(system).J * POOL_ENTRIES
    gap = real_at(view_at(view, 0).gaps, router).value
    write(view, at, part(gap, own.gap) if gap < np.inf else 0.5)  # infinite: nobody ever arrives
    write(view, at + 1, own.empty)


@kernel
def observe_state(system: int, router: int, view: int) -> None:
    """Write what only a simulator sees."""
    head = head_of(system)
    at = head.J * POOL_ENTRIES + ROUTER_ENTRIES
    for pool in range(head.J):
        size = pool_of(system, pool).size
        for queue in range(POOL_STATE_ENTRIES):
            servers = count_above(head.by_queue, pool, queue)
            if queue + 1 < POOL_STATE_ENTRIES:  # the last entry counts all longer queues as well
                servers -= count_above(head.by_queue, pool, queue + 1)
            write(view, at + pool * POOL_STATE_ENTRIES + queue, servers / size)
    at += head.J * POOL_STATE_ENTRIES
    out = 0
    for other in range(head.R):
        out += router_of(system, other).held
    write(view, at, head.starved / head.R)
    write(view, at + 1, router_of(system, router).held / max(out, 1))
    write(view, at + 2, head.phase)


@kernel
def mark_real_actions(system: int, router: int, view: int) -> None:
    """Write the marks of the doubtful actions: 0 where one would only do what it falls back on."""
    sight = view_at(view, 0)
    for k in range(sight.doubts):
        action = integer_at(sight.doubtful, k).value
        step = step_at(sight.chains, action * CHAIN_STEPS)
        flag_at(sight.mask, action).value = can_act(system, router, step)


@kernel
def can_act(system: int, router: int, step: Any) -> bool:
    """Return whether `step` can give the customer at `router` a server."""
    if step.kind == TAKE:
        if step.pool < 0:
            return bool(router_of(system, router).held > 0)
        return bool(list_of(system, router, step.pool).held > 0)
    if step.kind == RECALL:
        for pool in range(head_of(system).J):
            if (step.pool < 0 or step.pool == pool) and list_of(system, router, pool).best >= 0:
                return True
        return False
    if step.kind == LAST:
        return bool(router_of(system, router).last >= 0)
    return True
