"""Search for a short queue: which server to probe next, and when to stop.

Source: M. L. Weitzman, "Optimal search for the best alternative", Econometrica 47 (1979), with distributions
estimated from recent answers (`probe_answers`).
"""

from __future__ import annotations

import math
from typing import Any

from pull_env.kernels.access import has_flag, head_of, history_of, pool_of, probed_of, server_of
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.faults.entry import PROBE_SERVER, call_faults
from pull_env.kernels.messages import contains
from pull_env.kernels.random import bits, pick_server
from pull_env.kernels.routing.probe_answers import record_answer
from pull_env.kernels.state import FAULTS, POLICY_STREAM, RATE


@kernel
def search(system: int, router: int, step: Any) -> int:
    """Probe servers while the best wait so far exceeds a pool's reservation wait.

    The first server is drawn by rate from all, so that no pool is forgotten that was slow once; each next one
    is from the pool of least reservation wait.
    """
    at_most = min(step.at_most, head_of(system).n)
    best, least, probed = -1, math.inf, 0
    while probed < at_most:
        pool = most_promising(system, router, probed) if probed > 0 else -1
        if best >= 0 and pool >= 0 and least <= history_of(system, router, pool).reservation:
            break
        server = pick_server(system, pool, RATE, bits(system, POLICY_STREAM))
        while contains(head_of(system).probed, probed, server):
            server = pick_server(system, pool, RATE, bits(system, POLICY_STREAM))
        probed_of(system, probed).value = server
        probed += 1
        head_of(system).probed_count = probed
        if not has_flag(system, FAULTS):
            head_of(system).probes += 2
        elif call_faults(system, PROBE_SERVER, server, 1) == 0.0:
            continue
        queue, pool = server_of(system, server).queue, server_of(system, server).pool
        record_answer(system, router, server, queue, step)
        wait = queue / pool_of(system, pool).rate
        best = server if wait < least else best
        least = min(wait, least)
    return best if best >= 0 else int(probed_of(system, 0).value)  # no answer


@kernel
def most_promising(system: int, router: int, probed: int) -> int:
    """Return the pool of least reservation wait among those with servers not probed."""
    pool, least = -1, math.inf
    for j in range(head_of(system).J):
        wait = history_of(system, router, j).reservation
        if (pool < 0 or wait < least) and probed_in_pool(system, j, probed) < pool_of(system, j).size:
            pool, least = j, wait
    return pool


@kernel
def probed_in_pool(system: int, pool: int, count: int) -> int:
    """Return how many of the first `count` servers probed are of `pool`."""
    total = 0
    for k in range(count):
        total += server_of(system, probed_of(system, k).value).pool == pool
    return total
