"""Brightwell and Luczak 2012: many choices, load near 1, one queue length."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from threading import Event
from typing import Any

import numpy as np

from baselines.policies.registry import make
from baselines.reproduce.brightwell_luczak.figure import figure
from baselines.reproduce.brightwell_luczak.regime import Regime, theory
from baselines.reproduce.brightwell_luczak.sections import sections
from baselines.reproduce.common.study import Row, Setup, Study, make_row
from pull_env.policy.policy import Send
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.kernel_data.linked_record import Array
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.results import Counts, Recorder, summarise
from pull_env.simulation.simulate import BATCHES
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.statistics import Estimate, Floats, estimate

SOURCE = (
    "G. Brightwell, M. Luczak, The supermarket model with arrival rate tending to one (2012), "
    "arXiv:1201.5523; continued with M. Fairthorne, The supermarket model with bounded queue lengths in "
    "equilibrium (2018)."
)
ABOUT = (
    "Each customer joins the shortest of d queues drawn at random. At fixed d and load queue lengths have a "
    "limit distribution whose tail falls very fast. If d grows and the load tends to 1 with n, that "
    "distribution degenerates: almost all queues have the same length, and none is longer. The papers prove "
    "this, and that equilibrium is reached fast. How large n must be is measured here."
)
STEPS = 100  # snapshots on the way to the stationary state


@dataclass(frozen=True)
class Length:
    """The length of a run.

    Attributes:
        path: Time units from the start of the policy until the stationary state is assumed to be reached.
        counted: Time units after that.
        replications: Independent runs.
    """

    path: float
    counted: float
    replications: int


# Customers per server, as a share of the limit's, at which random sending ends and the policy starts.
STARTS = {"empty": 0.0, "long queues": 1.3, "below": 0.92, "above": 1.0}
FAR, NEAR = ("empty", "long queues"), ("below", "above")

ONE = Regime(0.25, 0.6)  # k = 1
TWO = Regime(0.5, 0.3)
TWO_AT_MOST = Regime(0.45, 0.4)  # so many choices that none is longer
THREE = Regime(0.75, 0.3)
LARGEST = Regime(0.3, 0.2)  # so few choices that a million servers can be simulated
ONE_LARGEST = Regime(0.1, 0.34)  # at a load so low that a million servers reach equilibrium

Sizes = Sequence[tuple[Regime, Sequence[int], float]]  # sizes, and the path as a share of k d^(k-1) log n
Large = Sequence[tuple[Regime, int, Sequence[str], float, float]]  # n, starts, time of the path and counted
QUICK: Sizes = (
    (ONE, (300, 3000), 1.5),
    (TWO, (1000, 3000), 0.6),
    (TWO_AT_MOST, (3000,), 0.6),
    (THREE, (500, 1000), 0.3),
)
FULL: Sizes = (
    (ONE, (300, 1000, 3000, 7000), 1.5),
    (TWO, (1000, 3000, 10_000, 20_000), 0.6),
    (TWO_AT_MOST, (1000, 3000, 5000), 0.6),
    (THREE, (1000, 2000, 5000), 0.3),
    (LARGEST, (3000, 10_000, 30_000), 0.6),
    (ONE_LARGEST, (10_000, 100_000), 2.0),
)
QUICK_LARGE: Large = ((LARGEST, 100_000, NEAR, 10.0, 8.0),)
FULL_LARGE: Large = (
    (TWO, 100_000, NEAR, 60.0, 30.0),
    (LARGEST, 100_000, NEAR, 30.0, 30.0),
    (LARGEST, 1_000_000, NEAR, 12.0, 8.0),
    (ONE_LARGEST, 1_000_000, ("empty",), 8.0, 4.0),
)


def tasks(setup: Setup) -> Iterator[Callable[[], Row]]:
    """Yield the measurements."""
    return measurements(setup, QUICK if setup.quick else FULL, QUICK_LARGE if setup.quick else FULL_LARGE)


def measurements(setup: Setup, sizes: Sizes, large: Large) -> Iterator[Callable[[], Row]]:
    """Yield measurements from an empty system, long queues, or near the limit."""
    for regime, several, part in sizes:
        for n, start in product(several, FAR):
            path = part * regime.time_scale(n)
            counted = 2 * path if n <= 3000 else path  # small systems fluctuate more
            length = Length(path + 2 * excess(regime, n, start), counted, 8)
            yield partial(run, setup, regime, n, start, length)
    for regime, n, starts, path, counted in large:
        for start in starts:
            yield partial(run, setup, regime, n, start, Length(path, counted, 2))


def excess(regime: Regime, n: int, start: str) -> float:
    """Return the time in which all servers can serve the customers above the limit."""
    above = max(STARTS[start] - 1.0, 0.0) * theory(regime, n)["mean"]
    return above / (1.0 - regime.load(n))


@dataclass(frozen=True)
class Replication:
    """The measurements of one replication.

    Attributes:
        path: (STEPS + BATCHES + 1, 3) time since the policy started, customers per server, share of queues
            of length k; the counted time included.
        snapshots: (BATCHES, levels) shares of queues by length, in the counted time.
        counts: Counters at the ends of batches.
    """

    path: Floats
    snapshots: Floats
    counts: Counts


def run(setup: Setup, regime: Regime, n: int, start: str, length: Length) -> Row:
    """Measure one system from one start."""
    started = time.perf_counter()
    scenario = Scenario((Pool(n),), load=regime.load(n), name=f"alpha {regime.alpha:g}, beta {regime.beta:g}")
    threads = min(setup.workers or os.cpu_count() or 1, length.replications)
    stop = Event()
    with ThreadPoolExecutor(threads) as pool:
        replicate_one = partial(replicate, scenario, regime, start, length, stop, setup.seed)
        try:
            replications = list(pool.map(replicate_one, range(length.replications)))
        except BaseException:
            stop.set()  # or an interruption would wait for the threads to finish
            raise
    result = summarise(
        scenario,
        [w.counts for w in replications],
        seed=setup.seed,
        warmup=path_customers(scenario, length),
        seconds=time.perf_counter() - started,
    )
    policy = make("power-of-d", d=regime.choices(n))
    extra = {
        **summarise_lengths(regime, replications),
        **theory(regime, n),
        "excess": excess(regime, n, start),
    }
    where = {"n": n, "alpha": regime.alpha, "beta": regime.beta, "start": start}
    return make_row(setup, scenario, policy, result, where, extra)


def path_customers(scenario: Scenario, length: Length) -> int:
    """Return the customers on the path: they count as warm-up."""
    return STEPS * math.ceil(length.path * scenario.total_arrival_rate / STEPS)


def replicate(
    scenario: Scenario, regime: Regime, start: str, length: Length, stop: Event, seed: int, replication: int
) -> Replication:
    """Run one replication: random sending, the path, the counted time.

    Raises:
        KeyboardInterrupt: `stop` was set.
    """
    n, steps = scenario.servers, make("power-of-d", d=regime.choices(scenario.servers)).steps
    simulator = Simulator(scenario, steps, None)
    simulator.reset(seed, 100 * list(STARTS).index(start) + replication)  # starts are independent
    head, chain = simulator.arrays.head, encode(steps, scenario)
    target = STARTS[start] * theory(regime, n)["mean"] * n
    while simulator.arrays.pools["customers"].sum() < target:
        simulator.run(encode((Send(),), scenario), max(n // 100, 1))
    began = float(head["now"][0])
    path = [_snapshot(simulator, regime, began)]
    for _ in range(STEPS):
        _advance(simulator, chain, path_customers(scenario, length) // STEPS, stop)
        path.append(_snapshot(simulator, regime, began))
    recorder, snapshots = Recorder(simulator), []
    for _ in range(BATCHES):
        _advance(simulator, chain, math.ceil(length.counted * scenario.total_arrival_rate / BATCHES), stop)
        recorder.end_batch()
        path.append(_snapshot(simulator, regime, began))
        snapshots.append(_length_shares(simulator))
    levels = max(map(len, snapshots))
    padded = np.array([np.pad(shares, (0, levels - len(shares))) for shares in snapshots])
    return Replication(np.array(path), padded, recorder.counts())


def _advance(simulator: Simulator, chain: Array, customers: int, stop: Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
    simulator.run(chain, customers)


def _length_shares(simulator: Simulator) -> Floats:
    """Return the share of queues by length, now."""
    return np.bincount(simulator.arrays.servers["queue"]) / simulator.scenario.servers


def _snapshot(simulator: Simulator, regime: Regime, began: float) -> tuple[float, float, float]:
    head, shares = simulator.arrays.head, _length_shares(simulator)
    elapsed = (float(head["now"][0]) - began) * float(head["time_step"][0])
    share = float(shares[regime.length]) if shares.size > regime.length else 0.0
    return elapsed, float(simulator.arrays.pools["customers"].sum()) / simulator.scenario.servers, share


def summarise_lengths(regime: Regime, replications: list[Replication]) -> dict[str, Any]:
    """Return shares of queues by length, mean length and time to reach the mean."""
    k = regime.length
    some = [float(w.snapshots[:, k + 1 :].any(axis=1).mean()) for w in replications]
    share = [float(w.snapshots[:, k : k + 1].sum(axis=1).mean()) for w in replications]
    longer = [float(w.snapshots[:, k + 1 :].sum(axis=1).mean()) for w in replications]
    means = [float((w.snapshots @ np.arange(w.snapshots.shape[1])).mean()) for w in replications]
    times = [time_to_mean(w.path, float(np.mean(means))) for w in replications]
    measures: dict[str, Estimate | float | list[list[float]]] = {
        "share": estimate(share),
        "longer": estimate(longer),
        "some longer": estimate(some),
        "length": estimate(means),
        "longest": max(w.snapshots.shape[1] for w in replications) - 1,
        "path": replications[0].path.tolist(),
    }
    if all(math.isfinite(t) for t in times):
        measures["time"] = estimate(times)
    return measures


def time_to_mean(path: Floats, mean: float) -> float:
    """Return when customers per server first meet `mean`; infinite if never.

    Long queues come with idle servers, which the policy fills first; their path starts above `mean` too.
    """
    times, numbers = path[:, 0], path[:, 1]
    side = numbers - mean if numbers[0] > mean else mean - numbers
    passed = np.flatnonzero(side <= 0.0)
    if not passed.size:
        return math.inf
    at = int(passed[0])
    if at == 0:
        return 0.0
    part = side[at - 1] / (side[at - 1] - side[at])
    return float(times[at - 1] + part * (times[at] - times[at - 1]))


STUDY = Study(
    "brightwell-luczak",
    "Almost all queues have one length (Brightwell and Luczak 2012)",
    SOURCE,
    ABOUT,
    tasks,
    sections,
    figure,
)
