"""A process that simulates what it is told on standard input, and tells when it is done and what it took.

In: a JSON object of scenario, policy, customers and warmup. Out: the peak of memory in bytes, or null.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pull_env import Policy, Scenario, simulate

STATUS = Path("/proc/self/status")


def peak() -> int | None:
    """Return the most memory that this process held at once, in bytes; None where nobody knows.

    On Linux `ru_maxrss` counts the process that started this one as well, so that its own record comes first.
    """
    if STATUS.is_file():
        for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def main() -> None:
    """Simulate, and print the peak."""
    told = json.load(sys.stdin)
    scenario, policy = Scenario.from_dict(told["scenario"]), Policy.from_dict(told["policy"])
    simulate(scenario, policy, told["customers"], warmup=told["warmup"], replications=1, workers=1)
    print(json.dumps(peak()), flush=True)


if __name__ == "__main__":
    main()
