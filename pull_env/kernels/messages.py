"""The pull-messages that routers hold: stored, chosen, deleted.

A router keeps one list per pool: an array of servers for random choices and, if a policy needs it, a chain by
age (a doubly linked list).
"""

from __future__ import annotations

import numpy as np

from pull_env.kernels.access import (
    age_of,
    first_slot,
    has_flag,
    head_of,
    held_server_cell,
    integer_at,
    list_of,
    message_id,
    pool_of,
    router_of,
    server_of,
    slot_cell,
)
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.random import LOW, below, bits
from pull_env.kernels.routing.level_index import lower_level, raise_level
from pull_env.kernels.state import (
    FASTEST,
    FAULTS,
    KEEP_AGE,
    KEEP_OBSERVATION,
    KEEP_ROUTER_INDEX,
    OLDEST,
    POLICY_STREAM,
    STALE,
)


@kernel
def contains(numbers: int, count: int, item: int) -> bool:
    """Return whether `item` is among the first `count` int32 from address `numbers`."""
    k = 0  # ends early: few items are contained, so the branch is predictable
    while k < count and integer_at(numbers, k).value != item:
        k += 1
    return k < count


@kernel
def store(system: int, router: int, server: int) -> None:
    """Add the message of `server` to the lists of `router`, unless it is there."""
    pool, holder = server_of(system, server).pool, router_of(system, router)
    holder.last_announced = server
    slot = slot_cell(system, router, server)
    if has_flag(system, STALE | FAULTS) and slot.value >= 0:
        return
    mine = list_of(system, router, pool)
    slot.value = mine.held
    held_server_cell(system, router, pool, mine.held).value = server
    mine.held += 1
    if has_flag(system, KEEP_ROUTER_INDEX):
        raise_level(head_of(system).by_held, 0, head_of(system).R, router, holder.held)
    holder.held += 1
    if has_flag(system, KEEP_OBSERVATION):
        now = head_of(system).now
        mean = mine.mean_received
        mine.mean_received = now if mine.held == 1 else mean + (now - mean) / mine.held
    if has_flag(system, KEEP_AGE):
        append_by_age(system, router, server)


@kernel
def delete(system: int, router: int, server: int) -> None:
    """Remove the message of `server` from the lists of `router`."""
    pool, slot = server_of(system, server).pool, slot_cell(system, router, server)
    mine, holder = list_of(system, router, pool), router_of(system, router)
    mine.held -= 1
    moved = held_server_cell(system, router, pool, mine.held).value  # the last message fills the gap
    held_server_cell(system, router, pool, slot.value).value = moved
    slot_cell(system, router, moved).value = slot.value
    slot.value = -1
    if has_flag(system, KEEP_ROUTER_INDEX):
        lower_level(head_of(system).by_held, 0, head_of(system).R, router, holder.held)
    holder.held -= 1
    if has_flag(system, KEEP_AGE):
        unlink_by_age(system, router, server)


@kernel
def append_by_age(system: int, router: int, server: int) -> None:
    """Append the message of `server` to the chain by age at `router`, as the newest."""
    head, mine = head_of(system), list_of(system, router, server_of(system, server).pool)
    message = message_id(system, router, server)
    age = age_of(system, message)
    age.sent = head.sent
    head.sent += 1
    age.older, age.newer = mine.newest, -1
    if mine.newest >= 0:
        age_of(system, mine.newest).newer = message
    else:
        mine.oldest = message
    mine.newest = message


@kernel
def unlink_by_age(system: int, router: int, server: int) -> None:
    """Unlink the message of `server` from the chain by age at `router`."""
    mine = list_of(system, router, server_of(system, server).pool)
    age = age_of(system, message_id(system, router, server))
    if age.older >= 0:
        age_of(system, age.older).newer = age.newer
    else:
        mine.oldest = age.newer
    if age.newer >= 0:
        age_of(system, age.newer).older = age.older
    else:
        mine.newest = age.older


@kernel
def choose_message(system: int, router: int, pool: int, order: int) -> int:
    """Return a server with a message of `pool` (-1: any), by `order`; -1: none."""
    if messages_held(system, router, pool) == 0:
        return -1
    if has_flag(system, KEEP_AGE) and order == OLDEST:
        return oldest_message(system, router, pool)
    slot = chosen_slot(system, router, pool, order, bits(system, POLICY_STREAM))
    return int(integer_at(head_of(system).slots, slot).value)


@kernel
def messages_held(system: int, router: int, pool: int) -> int:
    """Return how many messages of `pool` (-1: all pools) `router` holds."""
    return list_of(system, router, pool).held if pool >= 0 else router_of(system, router).held


@kernel
def chosen_slot(system: int, router: int, pool: int, order: int, drawn: np.uint64) -> int:
    """Return the index in `slots` of the message picked by random bits, not by age."""
    if order == FASTEST and pool < 0:
        return slot_in_fastest(system, router, drawn)
    return kth_slot(system, router, pool, below(drawn & LOW, messages_held(system, router, pool)))


@kernel
def kth_slot(system: int, router: int, pool: int, k: int) -> int:
    """Return the index in `slots` of the k-th message of `pool` (-1: of all pools)."""
    at, before = max(pool, 0), 0
    if pool < 0:
        total = list_of(system, router, 0).held  # one or two pools need no loop, as in `pool_of_service`
        at, before = int(k >= total), total if k >= total else 0
        for j in range(1, head_of(system).J - 1):  # no early end: it would be unpredictable
            total += list_of(system, router, j).held
            at += k >= total
            before = total if k >= total else before
    return first_slot(system, router, at) + k - before


@kernel
def slot_in_fastest(system: int, router: int, drawn: np.uint64) -> int:
    """Return the index in `slots` of a random message of the fastest pools held."""
    least, held = fastest_rate(system, router), 0
    for j in range(head_of(system).J):
        held += list_of(system, router, j).held if pool_of(system, j).rate >= least else 0
    k = below(drawn & LOW, held)
    for j in range(head_of(system).J):
        if pool_of(system, j).rate >= least:
            if k < list_of(system, router, j).held:
                return kth_slot(system, router, j, k)
            k -= list_of(system, router, j).held
    return -1


@kernel
def oldest_message(system: int, router: int, pool: int) -> int:
    """Return the server of the oldest message of `pool` (-1: any); there is one."""
    best = -1
    for j in range(head_of(system).J):
        first = list_of(system, router, j).oldest
        if first < 0 or (pool >= 0 and pool != j):
            continue
        if best < 0 or age_of(system, first).sent < age_of(system, best).sent:
            best = first
    return best % head_of(system).n


@kernel
def fastest_rate(system: int, router: int) -> float:
    """Return the highest rate of a pool from which `router` holds a message."""
    best = 0.0
    for j in range(head_of(system).J):
        if list_of(system, router, j).held > 0:
            best = max(best, pool_of(system, j).rate)
    return best
