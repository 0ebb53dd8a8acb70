"""The entry to everything that only runs with FAULTS do.

It is called by its address, so that other runs need not compile it: it is more than a third of all code that
the loop of a policy can reach, and would cost every first run two seconds.
"""

from __future__ import annotations

from pull_env.kernels.access import head_of
from pull_env.kernels.compiler.jit import call_entry, kernel

PROCESS_EVENT, START_ANNOUNCEMENT, SEND_REMOVE, PLAN_SERVICE, PROBE_SERVER, BEST_OPEN_SERVER = range(6)


@kernel
def call_faults(system: int, what: int, first: int, second: int) -> float:
    """Call `dispatch.dispatch_operation` with operation `what` and its arguments."""
    return float(call_entry(head_of(system).fault_entry, system, what, first, second))
