"""Memory that a system will need is fetched while others take their turns: random numbers tell what it is."""

from __future__ import annotations

from pull_env.kernels.compiler.intrinsics import prefetch, prefetch_far
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.messages import kth_slot, messages_held
from pull_env.kernels.random import (
    HALF,
    LOW,
    below,
    peek,
    pick_server_in_pool,
    pool_by_capacity,
    pool_of_service,
)
from pull_env.kernels.state import (
    ARRIVAL_STREAM,
    INTEGER,
    LIST,
    MESSAGE_STREAM,
    POLICY_STREAM,
    ROUTER,
    SERVER,
    TAKE,
    head_of,
    pool_of,
    step_at,
)

ROUTER_BYTES, LIST_BYTES = ROUTER.itemsize, LIST.itemsize
SERVER_BYTES, INTEGER_BYTES = SERVER.itemsize, INTEGER.itemsize


@kernel
def prefetch_range(address: int, size: int) -> None:
    """Fetch `size` bytes, which are needed soon, but not next."""
    for line in range(0, size, 64):
        prefetch_far(address + line)


@kernel
def prefetch_next_events(system: int, chain: int) -> None:
    """Fetch what the next random numbers point at, where it is known what they will be used for."""
    if head_of(system).router >= 0:  # a trace may have ended
        prefetch_choice(system, chain)
        prefetch_next_service(system)


@kernel
def prefetch_next_service(system: int) -> None:
    """Fetch the server whose clock ticks next, and who gets its message, if that is what happens next."""
    head, drawn = head_of(system), peek(system, ARRIVAL_STREAM)
    if drawn & LOW < head.arrival_threshold:
        return
    pool = pool_of_service(system, drawn & LOW)
    place = pool_of(system, pool)
    prefetch(head.servers + (place.start + below(drawn >> HALF, place.size)) * SERVER_BYTES)
    if head.threshold > 0:
        router = below(peek(system, MESSAGE_STREAM) & LOW, head.R)
        prefetch(head.routers + router * ROUTER_BYTES)
        prefetch(head.lists + (router * head.J + pool) * LIST_BYTES)


@kernel
def prefetch_choice(system: int, chain: int) -> None:
    """Fetch the server that the first step at `chain` draws, or the slot of the message that it takes."""
    head, step, drawn = head_of(system), step_at(chain, 0), peek(system, POLICY_STREAM)
    if step.kind == TAKE and held(system, step.pool) > 0:
        k = below(drawn & LOW, held(system, step.pool))
        prefetch(head.slots + kth_slot(system, head.router, step.pool, k) * INTEGER_BYTES)
    else:
        pool = step.pool if step.pool >= 0 else pool_by_capacity(system, drawn >> HALF)
        prefetch(head.servers + pick_server_in_pool(system, pool, drawn) * SERVER_BYTES)


@kernel
def held(system: int, pool: int) -> int:
    """Return how many messages of `pool` (-1: of all) the router at hand holds."""
    return messages_held(system, head_of(system).router, pool)
