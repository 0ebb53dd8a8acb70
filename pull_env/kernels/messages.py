"""Pull-messages: a server announces itself to a router, which takes the message or sees it withdrawn.

A router keeps one list for each pool: an array of servers for random picks and, where a policy asks for it, a
chain by age.
"""

from __future__ import annotations

from pull_env.kernels.index import count_lowest, lower_level, pick_lowest, raise_level
from pull_env.kernels.jit import kernel
from pull_env.kernels.state import (
    FASTEST,
    KEEP_AGE,
    KEEP_ROUTER_INDEX,
    OLDEST,
    RECIPIENT_UNIFORM,
    age_of,
    head_of,
    integer_at,
    list_of,
    message_of,
    pool_of,
    router_of,
    server_of,
    slot_of,
)
from pull_env.kernels.stream import LOW, MESSAGES, POLICY, below, bits


@kernel
def identity(system: int, router: int, server: int) -> int:
    """Return where the message of `server` at `router` lies: only stale messages can be out twice."""
    return router * head_of(system).n + server if head_of(system).stale else server


@kernel
def recipient(system: int) -> int:
    """Return the router that an announcement goes to."""
    head, R = head_of(system), head_of(system).R
    if head.recipient == RECIPIENT_UNIFORM:
        return below(bits(system, MESSAGES) & LOW, R)
    if head.recipient < 0:
        k = below(bits(system, MESSAGES) & LOW, count_lowest(head_of(system).by_held, 0))
        return pick_lowest(head_of(system).by_held, 0, R, k)
    best = -1
    for drawn in range(head.recipient):
        router = below(bits(system, MESSAGES) & LOW, R)
        while contains(head.sampled, drawn, router):
            router = below(bits(system, MESSAGES) & LOW, R)
        integer_at(head.sampled, drawn).value = router
        if best < 0 or router_of(system, router).held < router_of(system, best).held:
            best = router
    head.probes += 2 * head.recipient
    return best


@kernel
def contains(numbers: int, count: int, item: int) -> bool:
    """Return whether `item` is among the first `count` of the int32 array at address `numbers`."""
    found = False
    for k in range(count):
        found |= integer_at(numbers, k).value == item
    return found


@kernel
def announce(system: int, server: int) -> None:
    """Send a pull-message of `server`."""
    head_of(system).pulls += 1
    hold(system, recipient(system), server)


@kernel
def hold(system: int, router: int, server: int) -> None:
    """Put the message of `server` into the lists of `router`; one that it holds already stays as it is."""
    head, place = head_of(system), server_of(system, server)
    place.announced = 1
    router_of(system, router).last = server
    message = message_of(system, identity(system, router, server))
    if message.slot >= 0:
        return
    mine, holder = list_of(system, router, place.pool), router_of(system, router)
    message.slot, message.router = mine.held, router
    slot_of(system, router, place.pool, mine.held).value = server
    mine.held += 1
    if head.keeps & KEEP_ROUTER_INDEX:
        raise_level(head_of(system).by_held, 0, head_of(system).R, router, holder.held)
    head.starved -= holder.held == 0
    holder.held += 1
    if head.keeps & KEEP_AGE:
        age = age_of(system, identity(system, router, server))
        age.sent = head.sent
        head.sent += 1
        age.older, age.newer = mine.newest, -1
        if mine.newest >= 0:
            age_of(system, mine.newest).newer = identity(system, router, server)
        else:
            mine.oldest = identity(system, router, server)
        mine.newest = identity(system, router, server)


@kernel
def drop(system: int, router: int, server: int) -> None:
    """Take the message of `server` out of the lists of `router`."""
    head = head_of(system)
    pool = server_of(system, server).pool
    mine, holder = list_of(system, router, pool), router_of(system, router)
    message = message_of(system, identity(system, router, server))
    mine.held -= 1
    moved = slot_of(system, router, pool, mine.held).value  # the last one fills the gap
    slot_of(system, router, pool, message.slot).value = moved
    message_of(system, identity(system, router, moved)).slot = message.slot
    message.slot = -1
    if head.keeps & KEEP_ROUTER_INDEX:
        lower_level(head_of(system).by_held, 0, head_of(system).R, router, holder.held)
    holder.held -= 1
    head.starved += holder.held == 0
    if head.keeps & KEEP_AGE:
        age = age_of(system, identity(system, router, server))
        if age.older >= 0:
            age_of(system, age.older).newer = age.newer
        else:
            mine.oldest = age.newer
        if age.newer >= 0:
            age_of(system, age.newer).older = age.older
        else:
            mine.newest = age.older


@kernel
def withdraw(system: int, router: int, server: int) -> None:
    """Withdraw the message of a server that `router` brought to its threshold; tell another holder."""
    holder = message_of(system, server).router
    drop(system, holder, server)
    server_of(system, server).announced = 0
    head_of(system).removes += holder != router


@kernel
def choose(system: int, router: int, pool: int, order: int) -> int:
    """Return a server whose message `router` holds, from `pool` (-1: any), by `order`; -1: none."""
    held = router_of(system, router).held if pool < 0 else list_of(system, router, pool).held
    if held == 0:
        return -1
    if order == OLDEST:
        return oldest(system, router, pool)
    least = (
        fastest_held(system, router) if order == FASTEST and pool < 0 else 0.0
    )  # pools of lower rate are passed over
    first, last = (0, head_of(system).J) if pool < 0 else (pool, pool + 1)
    if least > 0.0:
        held = 0
        for j in range(first, last):
            held += list_of(system, router, j).held if pool_of(system, j).rate >= least else 0
    k = below(bits(system, POLICY) & LOW, held)
    for j in range(first, last):
        if pool_of(system, j).rate >= least:
            if k < list_of(system, router, j).held:
                return int(slot_of(system, router, j, k).value)
            k -= list_of(system, router, j).held
    return -1


@kernel
def oldest(system: int, router: int, pool: int) -> int:
    """Return the server whose message came first to `router`, which holds one from `pool` (-1: from any)."""
    best = -1
    for j in range(head_of(system).J):
        first = list_of(system, router, j).oldest
        if first < 0 or (pool >= 0 and pool != j):
            continue
        if best < 0 or age_of(system, first).sent < age_of(system, best).sent:
            best = first
    return best % head_of(system).n


@kernel
def fastest_held(system: int, router: int) -> float:
    """Return the highest rate of a pool from which `router` holds a message."""
    best = 0.0
    for j in range(head_of(system).J):
        if list_of(system, router, j).held > 0:
            best = max(best, pool_of(system, j).rate)
    return best
