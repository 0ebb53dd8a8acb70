"""A step of an env whose agent sees every server and names the one to use.

Layout of the observation: four blocks of n entries: queue lengths, rates, buffers, messages held.
"""

from __future__ import annotations

from pull_env.kernels.access import has_flag, head_of, pool_of, server_of, slot_cell
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.envs.batch import count_down, refusal_of
from pull_env.kernels.envs.observe import flag_at, saturate, view_at, write, write_router_and_time
from pull_env.kernels.faults.server_health import is_open
from pull_env.kernels.run import assign, complete_step, messages_sent
from pull_env.kernels.state import FAULTS, STALE

SERVER_ENTRIES = 4


@entry
def dispatch(view: int, server: int, messages: int) -> int:
    """Assign the current customer to `server`, at `messages` messages; then observe.

    Returns:
        The same as `batch.step_env`.
    """
    refusal, system = refusal_of(view), view_at(view, 0).system
    if refusal < 0:
        return refusal
    head = head_of(system)
    router, before = head.router, messages_sent(system)
    head.probes += messages
    if has_flag(system, FAULTS):
        head.probe_time = 2.0 * head.delay if messages > 0 else 0.0
    assign(system, router, server)
    complete_step(system, before, view)
    observe_servers(system, head.router if head.router >= 0 else router, view)
    return count_down(view)


@entry
def observe_servers(system: int, router: int, view: int) -> None:
    """Write all servers, and the messages that `router` holds, to `view`: O(n)."""
    n, open_servers = head_of(system).n, 0
    for server in range(n):
        record = server_of(system, server)
        pool = pool_of(system, record.pool)
        write(view, server, saturate(float(record.queue), 1.0))
        write(view, n + server, pool.rate / view_at(view, 0).fastest)
        accepts = is_open(system, server) if has_flag(system, FAULTS) else True
        write(view, 2 * n + server, saturate(float(pool.buffer), 1.0) if accepts else 0.0)  # 1 if unlimited
        write(view, 3 * n + server, 1.0 if holds(system, router, server) else 0.0)
        accepts &= record.queue < pool.buffer
        flag_at(view_at(view, 0).mask, server).value = accepts
        open_servers += accepts
    if open_servers == 0:
        for server in range(n):
            flag_at(view_at(view, 0).mask, server).value = 1
    write_router_and_time(system, view)


@kernel
def holds(system: int, router: int, server: int) -> bool:
    """Return whether `router` holds a pull-message of `server`."""
    if head_of(system).threshold == 0:
        return False
    stored = slot_cell(system, router, server).value >= 0
    return bool(stored and (has_flag(system, STALE | FAULTS) or server_of(system, server).holder == router))
