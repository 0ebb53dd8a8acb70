"""What only troubled systems do, called by its address: so that others need not compile it.

It is more than a third of all that the loop of a policy can do, and would cost every first run two seconds.
"""

from __future__ import annotations

from pull_env.kernels.compiler.intrinsics import call
from pull_env.kernels.compiler.jit import kernel
from pull_env.kernels.state import head_of

PROCESS_EVENT, START_ANNOUNCEMENT, SEND_REMOVE, PLAN_SERVICE, PROBE_SERVER, BEST_OPEN_SERVER = range(6)


@kernel
def call_faults(system: int, what: int, first: int, second: int) -> float:
    """Do one of the things that `troubles.troubles` names, with what it takes and returns."""
    return float(call(head_of(system).fault_entry, system, what, first, second))
