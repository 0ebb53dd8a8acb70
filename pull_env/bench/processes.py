"""What is seen from outside a process: the time to a first result, and memory; and what the arrays take."""

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
from pull_env.bench.engine import system
from pull_env.bench.timing import Measurement
from pull_env.kernels.compiler.jit import CACHE_VARIABLE
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.simulator import Simulator

FIRST_CUSTOMERS = 100_000
CHILD = ("-m", "pull_env.bench.child")
LARGE = 1_000_000  # servers
EMPTY = system(2)  # what a process holds that simulates next to nothing


def run(words: tuple[str, ...], told: str = "", cache: str | None = None) -> tuple[float, str]:
    """Run Python with `words`, tell it `told`; return the seconds to its end and what it printed.

    Args:
        words: Python's arguments.
        told: What it reads from standard input.
        cache: Folder of compiled kernels; None: the usual one.

    Raises:
        OSError: It failed.
    """
    package = str(Path(pull_env.__file__).parents[1])  # the sources that are measured here, and no others
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths} | ({} if cache is None else {CACHE_VARIABLE: cache})
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], input=told, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise OSError(f"{' '.join(words)} has ended with status {done.returncode}: {last}")
    return seconds, done.stdout


def starts(policy: Policy, timings: int) -> Iterator[Measurement]:
    """Yield the seconds of Python alone, of `import pull_env`, of a first result with compiled kernels."""
    scenario = system(100)
    told = order(scenario, policy, FIRST_CUSTOMERS, 0)
    first = f"first result, {FIRST_CUSTOMERS:,} customers"
    for name, words, given in (
        ("Python alone", ("-c", "pass"), ""),
        ("import pull_env", ("-c", "import pull_env"), ""),
        (first, CHILD, told),
    ):
        values = tuple(run(words, given)[0] for _ in range(timings))
        what = (scenario, policy) if given else (None, None)
        yield Measurement("starts", name, "s", values, 1, None, 0, *what)


def cold_start(policy: Policy) -> Iterator[Measurement]:
    """Yield the seconds of the same result where no kernel is compiled yet: once, as it takes long."""
    scenario = system(100)
    with tempfile.TemporaryDirectory() as folder:
        seconds, _ = run(CHILD, order(scenario, policy, FIRST_CUSTOMERS, 0), cache=folder)
    name = f"first result, {FIRST_CUSTOMERS:,} customers, no kernel compiled"
    yield Measurement("starts", name, "s", (seconds,), 1, None, 0, scenario, policy)


def order(scenario: Scenario, policy: Policy, customers: int, warmup: int) -> str:
    """Return what `child` is told."""
    content = {"scenario": scenario.to_dict(), "policy": policy.to_dict()}
    return json.dumps({**content, "customers": customers, "warmup": warmup})


def memory(policy: Policy) -> Iterator[Measurement]:
    """Yield the peak of a process that simulates a million servers, and what of it every simulation takes."""
    for name, scenario in (("peak, next to no servers", EMPTY), (f"peak, n = {LARGE:,}", system(LARGE))):
        warmup = scenario.servers
        found = json.loads(run(CHILD, order(scenario, policy, max(scenario.servers, 1000), warmup))[1])
        if found is not None:
            yield Measurement("memory", name, "bytes", (float(found),), 1, None, warmup, scenario, policy)


def footprint(policy: Policy) -> Iterator[Measurement]:
    """Yield how many bytes of arrays a server adds, and a slot: a pair of a router and a server.

    The arrays take a + b n + c R n bytes: differences of sizes give b and c.
    """
    few, lots = 1000, 2000
    size = {(n, R): held(system(n, R), policy) for n in (few, lots) for R in (1, 2)}
    by_server = {R: (size[lots, R] - size[few, R]) / (lots - few) for R in (1, 2)}
    slot = by_server[2] - by_server[1]
    for name, value in (("a server", by_server[1] - slot), ("a slot: a router and a server", slot)):
        yield Measurement("memory", f"arrays, {name}", "bytes", (value,), policy=policy)


def held(scenario: Scenario, policy: Policy) -> int:
    """Return the bytes of the arrays of a simulator."""
    simulator = Simulator(scenario, policy.steps, policy.announce, memory=policy.memory)
    return sum({id(root): root.nbytes for root in map(owner, arrays_of(simulator.arrays))}.values())


def arrays_of(part: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in a dataclass, and in those within it."""
    for each in dataclasses.fields(part):
        value = getattr(part, each.name)
        if isinstance(value, np.ndarray):
            yield value
        elif dataclasses.is_dataclass(value):
            yield from arrays_of(value)


def owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array whose memory `array` shows: itself, but for views."""
    return owner(array.base) if isinstance(array.base, np.ndarray) else array
