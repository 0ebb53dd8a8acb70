"""(1 - rho) E[N], measured against a pooled server and extrapolated to rho = 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from baselines.policies.registry import make
from baselines.reproduce.common.criteria import all_hold
from baselines.reproduce.common.study import Row, Section, value
from pull_env.reporting.describe import plus_minus
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.results import Result
from pull_env.simulation.simulate import BATCHES, simulate
from pull_env.simulation.statistics import LEVEL, Estimate, estimate, from_error, nan_estimate, paired

REPLICATIONS = 8
SNAPSHOTS = 4  # per batch, where any are taken
TOLERANCE = (
    0.03  # how far from 1 an interval may reach that counts as a limit of 1: fits are no better than that
)
SIGNIFICANCE = 0.001  # of the chi squared test that rejects a curve

METHOD = (
    "Arrivals and service ticks do not depend on the policy, so that on the same seed a pooled server "
    "(M/M/1, E[N] = rho / (1 - rho)) meets the same ones. Values are its exact mean plus the measured "
    "difference from it: the same mean, less noise."
)
FIT = (
    "The limit is that of the curve a + b (1 - rho) + c (1 - rho)^2, fitted by weighted least squares to "
    "as many of the highest loads as chi squared does not reject. Its error is the statistical one and, in "
    "quadrature, the change of the limit when the lowest of these loads is left out."
)

Point = tuple[float, float | None, Estimate]  # Load, y, value. y: a threshold that grows; None: 1 - rho


@dataclass(frozen=True)
class Run:
    """How long to run at a load, and on which seed.

    Attributes:
        load: rho.
        customers: Counted, over all replications.
        warmup: Customers of each replication before the counted ones.
        seed: One for each load, so that points of a curve are independent; the same for all policies.
        workers: Threads.
    """

    load: float
    customers: int
    warmup: int
    seed: int
    workers: int | None


def run_at(load: float, seed: int, relaxations: float, warmup: float, workers: int | None) -> Run:
    """Return the run at a load.

    Args:
        load: rho.
        seed: Of this load.
        relaxations: Relaxation times of the pooled server to count, over all replications.
        warmup: Relaxation times of the pooled server in the warm-up.
        workers: Threads.
    """
    unit = REPLICATIONS * BATCHES * SNAPSHOTS  # customers are a multiple of it
    customers = unit * math.ceil(relaxation(load) * relaxations / unit)
    return Run(load, customers, math.ceil(warmup * relaxation(load)), seed, workers)


def relaxation(load: float) -> float:
    """Return the arrivals in a relaxation time of M/M/1, 1 / (mu (1 - sqrt rho)^2)."""
    return load / (1.0 - math.sqrt(load)) ** 2


def measure(scenario: Scenario, policy: str, run: Run) -> Result:
    """Simulate a policy."""
    return simulate(
        scenario,
        make(policy),
        run.customers,
        seed=run.seed,
        replications=REPLICATIONS,
        warmup=run.warmup,
        workers=run.workers,
    )


@cache
def pooled_server(run: Run) -> Estimate:
    """Return the measured E[N] of the pooled server; it is the same for all n."""
    return measure(Scenario((Pool(1),), load=run.load), "random", run).mean_number


def scaled_number(result: Result, run: Run) -> Estimate:
    """Return (1 - rho) E[N] from the result of `run`; see METHOD."""
    control = pooled_server(run)
    if not (result.mean_number.samples and control.samples):
        return nan_estimate(REPLICATIONS)  # unstable
    difference = np.array(paired(result.mean_number, control).samples)
    return estimate(run.load + (1.0 - run.load) * difference)


def select(rows: Sequence[Row], **point: Any) -> list[Row]:
    """Return the rows whose point has these coordinates, in order of load."""
    selected = [row for row in rows if point.items() <= row["point"].items()]
    return sorted(selected, key=lambda row: float(row["point"]["load"]))


def joint_level(count: int) -> float:
    """Return the level of each of `count` joint 95 % intervals (Bonferroni)."""
    return 1.0 - (1.0 - LEVEL) / max(count, 1)


def contains(value: Estimate, target: float, level: float) -> bool | None:
    """Tell whether the interval of `level` holds `target`; None: nothing is claimed."""
    low, high = value.interval(level)
    return low <= target <= high if math.isfinite(value.mean) else None


def exact_section(rows: Sequence[Row], columns: Mapping[str, str], claim: str, setting: str) -> Section:
    """Return the section that compares (1 - rho) E[N] with exact values.

    Args:
        rows: Those without an exact value are left out.
        columns: Coordinates of the points, by heading.
        claim: What is known exactly.
        setting: How the rows were made.
    """
    known = [(row["point"], value(row, "scaled"), row["extra"]["exact"]) for row in rows]
    known = [(point, measured, exact) for point, measured, exact in known if exact is not None]
    level = joint_level(len(known))
    agree = [contains(measured, exact, level) for _, measured, exact in known]
    table = [
        (*(str(point[name]) for name in columns.values()), plus_minus(measured), f"{exact:.6f}")
        for point, measured, exact in known
    ]
    return Section(
        "Where E[N] is known exactly",
        claim,
        setting,
        (*columns, "(1 - rho) E[N]", "exact"),
        table,
        all_hold(agree),
        f"Criterion: the intervals, of {level:.3%} each so that they hold jointly at 95 %, hold the exact "
        f"values: {agree.count(True)} of {len(agree)} do, {agree.count(False)} do not, {agree.count(None)} "
        "are not claimed.",
    )


def is_one(value: Estimate, level: float) -> bool | None:
    """Return whether a limit of (1 - rho) E[N] is 1, up to TOLERANCE.

    None: the interval is wider, or below 1, which no policy reaches, so that the curve does not fit.
    """
    low, high = value.interval(level)
    if low > 1.0 + TOLERANCE:
        return False
    return True if low >= 1.0 - TOLERANCE and high <= 1.0 + TOLERANCE else None


def extrapolate(points: Sequence[Point]) -> Estimate:
    """Return (1 - rho) E[N], or another measure, extrapolated to rho = 1; see FIT.

    NaN if the curve does not fit even the four highest loads, or a value is NaN.
    """
    if not all(math.isfinite(value.error) and value.error > 0.0 for _, _, value in points):
        return nan_estimate(REPLICATIONS)
    highest = sorted(points, key=lambda point: -point[0])
    for used in range(len(highest), 3, -1):
        curve, shorter = _curve(highest[:used]), _curve(highest[: used - 1])
        if curve and shorter and stats.chi2.sf(curve[2], used - 3) > SIGNIFICANCE:
            return from_error(curve[0], math.hypot(curve[1], shorter[0] - curve[0]), REPLICATIONS)
    return nan_estimate(REPLICATIONS)


def _curve(points: Sequence[Point]) -> tuple[float, float, float] | None:
    """Return a, its standard error, and chi squared of a + b x + c x y.

    With x = 1 - rho.

    None: the points do not determine all three.
    """
    x = np.array([1.0 - load for load, _, _ in points])
    y = np.array([1.0 - load if y is None else y for load, y, _ in points])
    weight = np.array([1.0 / value.error for _, _, value in points])
    design = np.column_stack([np.ones(x.size), x, x * y]) * weight[:, None]
    target = np.array([value.mean for _, _, value in points]) * weight
    fitted, _, rank, _ = np.linalg.lstsq(design, target, rcond=None)
    if rank < 3:
        return None
    error = math.sqrt(float(np.linalg.inv(design.T @ design)[0, 0]))
    return float(fitted[0]), error, float(((design @ fitted - target) ** 2).sum())
