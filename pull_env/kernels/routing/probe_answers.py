"""What a router learns from answers: running means, and a distribution of waits.

Running means are observed; the distribution, that of a pool's last HISTORY_LENGTH answers, each equally
likely, serves `Search`: it follows load and speed as they change, and assumes nothing about queues. The
reservation wait is derived from it.
"""

from __future__ import annotations

import math
from typing import Any

from pull_env.kernels.access import answer_of, has_flag, history_of, list_of, pool_of, server_of
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.routing.memory import remember
from pull_env.kernels.state import HISTORY_LENGTH, KEEP_HISTORY, KEEP_MEMORY, KEEP_OBSERVATION

RECENT = 1 / 16  # weight of the latest value in a router's running means


@kernel
def record_answer(system: int, router: int, server: int, queue: int, step: Any) -> None:
    """Record an answer; a probe with `recall` remembers its answers when it ends."""
    if has_flag(system, KEEP_MEMORY) and not step.recall:
        remember(system, router, server, queue)
    pool = server_of(system, server).pool
    if has_flag(system, KEEP_OBSERVATION):
        mine = list_of(system, router, pool)
        mine.probed_wait += RECENT * (queue / pool_of(system, pool).rate - mine.probed_wait)
        mine.probed_idle += RECENT * ((1.0 if queue == 0 else 0.0) - mine.probed_idle)
    if has_flag(system, KEEP_HISTORY):
        history = history_of(system, router, pool)
        answer_of(system, router, pool, history.count % HISTORY_LENGTH).value = queue
        history.count += 1
        rate = pool_of(system, pool).rate
        history.reservation = reservation(system, router, pool, step.price * rate) / rate


@kernel
def reservation(system: int, router: int, pool: int, price: float) -> float:
    """Return the s for which E[(s - Q)+] is `price`, Q being a pool's next answer.

    The pool must have answered before. A probe is worth its price if the best queue so far is longer than s.
    By Newton's method from above, where all answers are below s; as the expectation is convex and piecewise
    linear, it stops at the exact value, after at most as many steps as there are answers.
    """
    count = min(history_of(system, router, pool).count, HISTORY_LENGTH)
    s, before = math.inf, count + 1
    while True:
        total, shorter = 0, 0
        for k in range(count):
            queue = answer_of(system, router, pool, k).value
            below = queue < s
            total += queue if below else 0
            shorter += below
        if not 0 < shorter < before:  # as before; by rounding perhaps none, or more
            return s
        s, before = (price * count + total) / shorter, shorter
