"""Start-up time and peak memory of a process, and the bytes of the arrays."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pull_env
from pull_env.bench.subjects import system
from pull_env.bench.timing import Measurement
from pull_env.kernels.compiler.jit import CACHE_VARIABLE
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.simulator import Simulator

FIRST_CUSTOMERS = 100_000
LARGE = 1_000_000  # servers
# Simulates the run on standard input and prints its peak of memory in bytes, or null. On Linux `ru_maxrss`
# counts the process that started this one as well, so VmHWM comes first; Windows has no `resource`.
CHILD = """
import json, pathlib, re, sys
from pull_env import Policy, Scenario, simulate
run = json.load(sys.stdin)
scenario, policy = Scenario.from_dict(run["scenario"]), Policy.from_dict(run["policy"])
simulate(scenario, policy, run["customers"], warmup=run["warmup"], replications=1, workers=1)
status = pathlib.Path("/proc/self/status")
high = re.search(r"VmHWM:\\s*([0-9]+)", status.read_text() if status.is_file() else "")
peak = 1024 * int(high[1]) if high else None
if peak is None and sys.platform != "win32":
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps(peak))
"""


def run_python(words: tuple[str, ...], text: str = "", cache: str | None = None) -> tuple[float, str]:
    """Run Python with `words`; return the seconds to its end and what it printed.

    Args:
        words: Python's arguments.
        text: What it reads from standard input.
        cache: Folder of compiled kernels; None: the usual one.

    Raises:
        OSError: It failed.
    """
    package = str(Path(pull_env.__file__).parents[1])  # the sources that are measured here, and no others
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths} | ({} if cache is None else {CACHE_VARIABLE: cache})
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], input=text, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise OSError(f"a measured process has ended with status {done.returncode}: {last}")
    return seconds, done.stdout


def simulate_in_child(
    scenario: Scenario, policy: Policy, customers: int, warmup: int, cache: str | None = None
) -> tuple[float, int | None]:
    """Simulate in a new process; return its seconds and its peak memory in bytes."""
    content = {"scenario": scenario.to_dict(), "policy": policy.to_dict()}
    run = json.dumps({**content, "customers": customers, "warmup": warmup})
    seconds, printed = run_python(("-c", CHILD), run, cache)
    return seconds, json.loads(printed)


def starts(policy: Policy, timings: int) -> Iterator[Measurement]:
    """Yield the seconds of Python alone, of the import, of a first result."""
    for name, code in (("Python alone", "pass"), ("import pull_env", "import pull_env")):
        yield Measurement("starts", name, "s", tuple(run_python(("-c", code))[0] for _ in range(timings)))
    scenario, name = system(100), f"first result, {FIRST_CUSTOMERS:,} customers"
    values = tuple(simulate_in_child(scenario, policy, FIRST_CUSTOMERS, 0)[0] for _ in range(timings))
    yield Measurement("starts", name, "s", values, scenario=scenario, policy=policy)


def cold_start(policy: Policy) -> Iterator[Measurement]:
    """Yield the seconds of the same result, once, before any kernel is compiled."""
    scenario, name = system(100), f"first result, {FIRST_CUSTOMERS:,} customers, no kernel compiled"
    with tempfile.TemporaryDirectory() as folder:
        seconds, _ = simulate_in_child(scenario, policy, FIRST_CUSTOMERS, 0, cache=folder)
    yield Measurement("starts", name, "s", (seconds,), scenario=scenario, policy=policy)


def memory(policy: Policy) -> Iterator[Measurement]:
    """Yield the peak of a process that simulates next to no servers, and a million."""
    for name, n in (("peak, next to no servers", 2), (f"peak, n = {LARGE:,}", LARGE)):
        scenario = system(n)
        simulate_in_child(scenario, policy, 1, 0)  # else the peak may be that of the compiler
        _, peak = simulate_in_child(scenario, policy, max(n, 1000), n)
        if peak is not None:
            values = (float(peak),)
            yield Measurement("memory", name, "bytes", values, warmup=n, scenario=scenario, policy=policy)


def footprint(policy: Policy) -> Iterator[Measurement]:
    """Yield the bytes of arrays per server, and per pair of a router and a server.

    The arrays take a + b n + c R n bytes: differences of sizes give b and c.
    """
    few, lots = 1000, 2000
    size = {(n, R): array_bytes(system(n, R), policy) for n in (few, lots) for R in (1, 2)}
    by_server = {R: (size[lots, R] - size[few, R]) / (lots - few) for R in (1, 2)}
    slot = by_server[2] - by_server[1]
    for name, value in (("a server", by_server[1] - slot), ("a slot: a router and a server", slot)):
        yield Measurement("memory", f"arrays, {name}", "bytes", (value,), policy=policy)


def array_bytes(scenario: Scenario, policy: Policy) -> int:
    """Return the bytes of the arrays of a simulator, each buffer counted once."""
    simulator = Simulator(scenario, policy.steps, policy.announce, memory=policy.memory)
    return sum({id(owner): owner.nbytes for owner in map(_owner, _arrays(simulator.arrays))}.values())


def _arrays(part: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in a dataclass, and in those within it."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            yield value
        elif dataclasses.is_dataclass(value):
            yield from _arrays(value)


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array that owns the memory of `array`."""
    return _owner(array.base) if isinstance(array.base, np.ndarray) else array
