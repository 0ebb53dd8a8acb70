"""What a router knows, as numbers in [0, 1]; for a critic also the system's state.

An env owns a VIEW record. It has the addresses of the observation and of the mask of available actions, and
the constants that they need. Layout of the observation: J blocks of POOL_ENTRIES, one of ROUTER_ENTRIES; with
the state also J blocks of POOL_STATE_ENTRIES and one of STATE_ENTRIES. `pull_env.simulation.kernel_data.view`
names every entry, and writes in advance those that never change and the mask of always available actions.

An action is available if it does what it says, rather than what it falls back on.
"""

from __future__ import annotations

import numpy as np

from pull_env.kernels.access import head_of, pool_of, real_at, router_of
from pull_env.kernels.compiler.addresses import records
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.routing.level_index import count_above
from pull_env.kernels.routing.memory import refresh_best

POOL_ENTRIES, ROUTER_ENTRIES = 9, 4
POOL_CONSTANTS = 3  # the first entries of a pool
POOL_STATE_ENTRIES, STATE_ENTRIES = 5, 4
CHAIN_STEPS = 2  # steps of an action: what it means, and what it falls back on

VIEW = np.dtype(
    [
        # addresses
        ("system", np.int64),  # the handle
        ("observation", np.int64),  # (entries,) float32
        ("mask", np.int64),  # (actions,) int8  1: available
        ("outcome", np.int64),  # (1,) OUTCOME
        ("chains", np.int64),  # (actions, CHAIN_STEPS) STEP
        ("conditional", np.int64),  # (conditional_count,) CONDITIONAL_ACTION
        ("nominal_gaps", np.int64),  # (R,) float64  nominal mean time steps between arrivals
        ("pool_scalings", np.int64),  # (J,) POOL_SCALING
        # constants
        ("actions", np.int64),
        ("conditional_count", np.int64),
        ("with_state", np.int64),  # 1: append the state; needs KEEP_QUEUE_INDEX
        ("fastest", np.float64),  # largest rate of a pool
        ("wait_price", np.float64),
        ("message_price", np.float64),
        ("block_price", np.float64),
        # the episode
        ("left", np.int64),  # customers left; 0: it has ended, or not begun
    ],
    align=True,
)

POOL_SCALING = np.dtype(  # scales of a pool's entries
    [
        # values observed as 1/2
        ("held", np.float64),  # messages
        ("queue", np.float64),  # remembered
        ("age", np.float64),  # of that memory, and of messages; in time steps
        ("answer", np.float64),  # recent mean wait by answers, in time units
        # the rows of conditional actions of this pool
        ("first", np.int64),
        ("end", np.int64),
    ]
)

# An action that is not always available, and the bits of which one is enough.
CONDITIONAL_ACTION = np.dtype([("action", np.int64), ("needs", np.int64)])
HELD, KNOWN, ANNOUNCED = 1, 2, 4  # a message; a remembered server; an announcement ever

OUTCOME = np.dtype(
    [
        ("cost", np.float64),  # of the step: wait or blocking, and messages
        ("wait", np.float64),  # of the customer; 0 if it was blocked
        ("lost", np.bool_),  # it was blocked, or will be lost with a failing server
        ("messages", np.int64),  # sent from its arrival to the next one
        ("router", np.int64),  # the current one; -1: customers ran out
        ("time", np.float64),  # now, in time units
    ],
    align=True,
)

view_at, outcome_at = records(VIEW), records(OUTCOME)
pool_scaling_at, conditional_action_at = records(POOL_SCALING), records(CONDITIONAL_ACTION)
ENTRY_BYTES = np.dtype(np.float32).itemsize
entry_at, flag_at = records(np.dtype([("value", np.float32)])), records(np.dtype([("value", np.int8)]))


@entry
def observe(system: int, router: int, view: int) -> None:
    """Write what `router` observes to the arrays of `view`.

    `router` is the current one or, after a trace has ended, the last one. O(J), with the state O(J + R).
    """
    record, available, any_pool, end = view_at(view, 0), 0, 0, 0
    for pool in range(head_of(system).J):
        scaling = pool_scaling_at(record.pool_scalings, pool)
        available, end = observe_pool(system, router, pool, view), scaling.end
        mark_conditional_actions(view, scaling.first, end, available)
        any_pool |= available
    any_pool |= ANNOUNCED if router_of(system, router).last_announced >= 0 else 0
    mark_conditional_actions(view, end, record.conditional_count, any_pool)
    observe_router(system, router, view)
    if record.with_state:
        observe_state(system, router, view)
    write_router_and_time(system, view)


@kernel
def write_router_and_time(system: int, view: int) -> None:
    """Write the current router and time to the outcome."""
    head, outcome = head_of(system), outcome_at(view_at(view, 0).outcome, 0)
    outcome.router = head.router
    outcome.time = head.now * head.time_step


@kernel
def write(view: int, k: int, value: float) -> None:
    """Set entry `k` of the observation."""
    entry_at(view_at(view, 0).observation, k).value = value


@kernel
def saturate(value: float, half: float) -> float:
    """Map [0, inf] to [0, 1], and `half` to 1/2: value / (half + value)."""
    return 1.0 - half / (half + value)  # not the quotient: with COMPLETE an age may be infinite


@kernel
def observe_pool(system: int, router: int, pool: int, view: int) -> int:
    """Write what `router` knows of `pool`, except its size, rate and buffer.

    Returns:
        The bits HELD and KNOWN.
    """
    mine, half = refresh_best(system, router, pool), pool_scaling_at(view_at(view, 0).pool_scalings, pool)
    available = (HELD if mine.held > 0 else 0) | (KNOWN if mine.best_entry >= 0 else 0)
    held, answer, idle = float(mine.held), mine.probed_wait, mine.probed_idle
    queue = float(mine.best_queue) if mine.best_entry >= 0 else np.inf
    age = head_of(system).now - mine.best_time if mine.best_entry >= 0 else np.inf
    held, queue = saturate(held, half.held), saturate(queue, half.queue)
    age, answer = saturate(age, half.age), saturate(answer, half.answer)
    entries = view_at(view, 0).observation + (pool * POOL_ENTRIES + POOL_CONSTANTS) * ENTRY_BYTES
    entry_at(entries, 0).value = held
    entry_at(entries, 1).value = queue
    entry_at(entries, 2).value = age
    entry_at(entries, 3).value = answer
    entry_at(entries, 4).value = idle
    entry_at(entries, 5).value = (
        saturate(head_of(system).now - mine.mean_received, half.age) if mine.held > 0 else 1.0
    )
    return available


@kernel
def observe_router(system: int, router: int, view: int) -> None:
    """Write what `router` knows besides pools, except the message price and the load."""
    own, at = router_of(system, router), head_of(system).J * POOL_ENTRIES
    gap, recent, empty = (
        real_at(view_at(view, 0).nominal_gaps, router).value,
        own.recent_gap,
        own.recent_empty,
    )
    write(view, at, saturate(gap, recent) if gap < np.inf else 0.5)  # infinite: no arrivals
    write(view, at + 1, empty)


@kernel
def observe_state(system: int, router: int, view: int) -> None:
    """Write what only a simulator can see."""
    head = head_of(system)
    at = head.J * POOL_ENTRIES + ROUTER_ENTRIES
    for pool in range(head.J):
        size = pool_of(system, pool).size
        for queue in range(POOL_STATE_ENTRIES):
            servers = count_above(head.by_queue, pool, queue)
            if queue + 1 < POOL_STATE_ENTRIES:  # the last entry includes all longer queues
                servers -= count_above(head.by_queue, pool, queue + 1)
            write(view, at + pool * POOL_STATE_ENTRIES + queue, servers / size)
    at += head.J * POOL_STATE_ENTRIES
    total, without = 0, 0
    for other in range(head.R):
        held = router_of(system, other).held
        total += held
        without += held == 0
    write(view, at, without / head.R)
    write(view, at + 1, router_of(system, router).held / max(total, 1))
    write(view, at + 2, head.phase)
    write(view, at + 3, head.closed_servers / head.n)


@kernel
def mark_conditional_actions(view: int, first: int, end: int, available: int) -> None:
    """Mark whether the conditional actions `first` to `end` - 1 are available.

    An action is if one of the bits it needs is in `available`.
    """
    mask, actions = view_at(view, 0).mask, view_at(view, 0).conditional
    for k in range(first, end):
        action = conditional_action_at(actions, k)
        flag_at(mask, action.action).value = (action.needs & available) != 0
