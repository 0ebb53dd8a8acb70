"""The one transition of a system, `route` then `advance`, and the loops over it."""

from __future__ import annotations

from pull_env.kernels.access import has_flag, head_of, list_of, pool_of, router_of, server_of, step_at
from pull_env.kernels.announce import end_message, receive
from pull_env.kernels.clock import admit, advance
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.envs.observe import observe, outcome_at, view_at
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.prefetch.large_systems import start_prefetch, stop_prefetch
from pull_env.kernels.random import LOW, below, bits
from pull_env.kernels.routing.memory import add_assignment, refresh_best
from pull_env.kernels.routing.steps import try_step
from pull_env.kernels.state import (
    ADDRESS,
    ADDRESS_BITS,
    FAULTS,
    KEEP_MEMORY,
    MESSAGE_STREAM,
    POLICY_STREAM,
    PREFETCH,
)
from pull_env.kernels.statistics import count_accepted


@entry
def start(system: int) -> None:
    """Start a cleared system: servers announce themselves; there is no customer yet."""
    head, n = head_of(system), head_of(system).n
    if head.threshold > 0:
        for server in range(n):
            receive(system, below(bits(system, MESSAGE_STREAM) & LOW, head_of(system).R), server)
    for router in range(head_of(system).R):
        router_of(system, router).cycle = below(bits(system, POLICY_STREAM) & LOW, n)
        for pool in range(head_of(system).J):
            mine = list_of(system, router, pool)
            mine.cycle = below(bits(system, POLICY_STREAM) & LOW, pool_of(system, pool).size)
    head.router = -1


@kernel
def route(system: int, chain: int, steps: int) -> None:
    """Assign the current customer by the first step of the chain that can act."""
    head = head_of(system)
    router = head.router
    head.probed_count = 0
    if has_flag(system, FAULTS):
        head.probe_time = 0.0
    server, k = -1, 0
    while server < 0 and k < steps:  # `range` would cost ten more instructions
        server = try_step(system, router, step_at(chain, k))
        k += 1
    assign(system, router, server)


@kernel
def assign(system: int, router: int, server: int) -> None:
    """Send the current customer to `server`, which accepts or blocks it."""
    head, record = head_of(system), server_of(system, server)
    pool = pool_of(system, record.pool)
    head.last_router, head.last_server = router, server
    head.blocked = record.queue >= pool.buffer
    if has_flag(system, FAULTS):
        head.doomed = 0
        head.blocked |= not is_open(system, server)
    head.wait = 0.0
    if head.blocked:
        pool.blocked += 1
    else:
        queue = record.queue
        head.wait = admit(system, server)
        if has_flag(system, FAULTS):  # it waited at the router for answers
            head.wait += head.probe_time
            pool.area += head.probe_time
        count_accepted(system, record.pool, queue, head.wait)
    if record.holder >= 0 or has_flag(system, FAULTS):
        end_message(system, router, server)
    if has_flag(system, KEEP_MEMORY):
        add_assignment(system, router, server)


@entry
def rollout(system: int, chain: int, steps: int, customers: int) -> int:
    """Route `customers` customers by a chain of steps; the next one is then current.

    Returns:
        How many were routed: fewer if customers ran out. Without a current customer it first advances to one.
    """
    return run_loop(system, chain, steps, customers)


@entry
def rollout_plain(system: int, chain: int, steps: int, customers: int) -> int:
    """Do what `rollout` does for PLAIN flags, compiled without the code they rule out."""
    return run_loop(system & ADDRESS, chain, steps, customers)


@entry
def rollout_prefetch(system: int, chain: int, steps: int, customers: int) -> int:
    """Do what `rollout_plain` does for systems too large for the processor's cache."""
    return run_loop(system & ADDRESS | PREFETCH << ADDRESS_BITS, chain, steps, customers)


@kernel
def run_loop(system: int, chain: int, steps: int, customers: int) -> int:
    """Do what `rollout` does."""
    head = head_of(system)
    routed = 0
    if has_flag(system, PREFETCH):
        start_prefetch(system)
    while True:
        if head.router >= 0:
            if routed == customers:
                break
            route(system, chain, steps)
            routed += 1
        advance(system)
        if head.router < 0:
            break
    if has_flag(system, PREFETCH):
        stop_prefetch(system)
    return routed


@kernel
def transition(system: int, chain: int, steps: int, view: int) -> None:
    """Route the current customer by a chain and complete the step, unobserved."""
    before, router = messages_sent(system), head_of(system).router
    route(system, chain, steps)
    complete_step(system, before, view)
    for pool in range(head_of(system).J):
        refresh_best(system, router, pool)  # now, as its memory is in the cache


@kernel
def observe_current(system: int, view: int) -> None:
    """Write to `view` what the current router observes; after a trace, the last one."""
    head = head_of(system)
    observe(system, head.router if head.router >= 0 else head.last_router, view)


@kernel
def complete_step(system: int, before: int, view: int) -> None:
    """Advance to the next customer, and write to `view` what the last one has cost.

    The cost is that of the customer and of all messages from its arrival, when `before` had been sent, to the
    next one: the costs of all steps add up to the cost of the run.
    """
    head, record = head_of(system), view_at(view, 0)
    outcome = outcome_at(record.outcome, 0)
    outcome.wait, outcome.lost = head.wait, head.blocked
    if has_flag(system, FAULTS):
        outcome.lost = head.blocked | head.doomed
    advance(system)
    outcome.messages = messages_sent(system) - before
    outcome.cost = record.wait_price * outcome.wait + (record.block_price if outcome.lost else 0.0)
    outcome.cost += record.message_price * outcome.messages


@kernel
def messages_sent(system: int) -> int:
    """Return the number of messages of all kinds since the start."""
    head = head_of(system)
    return head.pulls + head.removes + head.probes + head.updates
