"""Prefetching in a batch of envs: the memory of the next envs, while one advances."""

from __future__ import annotations

from pull_env.kernels import state
from pull_env.kernels.access import head_of, memory_of, pool_of, step_at
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

POOL_BYTES, ROUTER_BYTES, LIST_BYTES = state.POOL.itemsize, state.ROUTER.itemsize, state.LIST.itemsize
SERVER_BYTES, INTEGER_BYTES = state.SERVER.itemsize, state.INTEGER.itemsize


@kernel
def prefetch_range(address: int, size: int) -> None:
    """Fetch `size` bytes, which are needed soon, but not next."""
    for line in range(0, size, 64):
        prefetch_far(address + line)


@kernel
def prefetch_state(system: int) -> None:
    """Fetch what routing the current customer needs, except the head."""
    head = head_of(system)
    prefetch_range(head.pools, head.J * POOL_BYTES)
    prefetch_router(system)
    prefetch_range(memory_of(system, head.router, 0), head.G * head.M * state.PLACE_BYTES)
    prefetch_far(head.short_histogram)  # short queues, of all pools


@kernel
def prefetch_router(system: int) -> None:
    """Fetch what the current router knows."""
    head = head_of(system)
    router = head.router
    prefetch_range(head.routers + router * ROUTER_BYTES, ROUTER_BYTES)
    prefetch_range(head.lists + router * head.J * LIST_BYTES, head.J * LIST_BYTES)


@kernel
def prefetch_next_events(system: int, chain: int) -> None:
    """Fetch what the next random numbers refer to, where their use is known."""
    if head_of(system).router >= 0:  # else a trace has ended
        prefetch_choice(system, chain)
        prefetch_next_service(system)


@kernel
def prefetch_next_service(system: int) -> None:
    """Fetch the server of the next time step, and who gets its message, if any."""
    head, drawn = head_of(system), peek(system, state.ARRIVAL_STREAM)
    if drawn & LOW < head.arrival_threshold:
        return
    pool = pool_of_service(system, drawn & LOW)
    record = pool_of(system, pool)
    prefetch(head.servers + (record.start + below(drawn >> HALF, record.size)) * SERVER_BYTES)
    if head.threshold > 0:
        router = below(peek(system, state.MESSAGE_STREAM) & LOW, head.R)
        prefetch(head.routers + router * ROUTER_BYTES)
        prefetch(head.lists + (router * head.J + pool) * LIST_BYTES)


@kernel
def prefetch_choice(system: int, chain: int) -> None:
    """Fetch the server that the first step at `chain` picks, or the slot it takes."""
    head, step, drawn = head_of(system), step_at(chain, 0), peek(system, state.POLICY_STREAM)
    if step.kind == state.TAKE and messages_held(system, head.router, step.pool) > 0:
        k = below(drawn & LOW, messages_held(system, head.router, step.pool))
        prefetch(head.slots + kth_slot(system, head.router, step.pool, k) * INTEGER_BYTES)
    else:
        pool = step.pool if step.pool >= 0 else pool_by_capacity(system, drawn >> HALF)
        prefetch(head.servers + pick_server_in_pool(system, pool, drawn) * SERVER_BYTES)
