"""One-line descriptions of systems, runs and estimates, for tables and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pull_env.scenario.arrivals import HotRouter, Renewal, Trace
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import Result
from pull_env.simulation.statistics import Estimate
from pull_env.theory.prediction import lower_bounds

TRACE_NOTE = (
    "The trace is replayed once in each replication, from an empty system: the intervals cover the "
    "randomness of routing only, not that of arrivals and sizes."
)


def growth_line(scenario: Scenario, growth: Sequence[float]) -> str:
    """Return which pools grow and how fast; those with a buffer limit cannot.

    Args:
        scenario: The system.
        growth: (J,) customers per time unit by which each pool grows.
    """
    unlimited = {j: growth[j] for j, pool in enumerate(scenario.pools) if pool.buffer is None}
    fastest = max(unlimited.values())
    if fastest <= 0.0:  # the run was too short to see it
        return f"the load is {scenario.nominal_load:g}, not below 1"
    return " and ".join(
        f"pool {j} ({scenario.pools[j].size} servers at rate {scenario.pools[j].rate:g}) "
        f"grows by {rate:.3g} customers per time unit"
        for j, rate in unlimited.items()
        if rate > fastest / 10
    )


def plus_minus(value: Estimate) -> str:
    """Return an estimate as `mean ± half width`, the latter with two digits."""
    if not math.isfinite(value.mean):
        return "-"
    half = value.half_width() if value.error > 0 else 0.0
    places = decimals(value)
    return f"{value.mean:.{places}f} ± {half:.{places}f}" if half else f"{value.mean:.6g}"


def decimals(value: Estimate) -> int:
    """Return the decimal places at which the half width of an interval has two digits."""
    half = value.half_width() if value.error > 0 else 0.0
    if not 0.0 < half < math.inf:
        return 4
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def system_line(scenario: Scenario) -> str:
    """Return a system in one line: servers, pools, routers, load, workload."""
    routers = f"R = {scenario.routers} router{'s' if scenario.routers > 1 else ''}"
    shares = " with unequal shares" if isinstance(scenario.shares, tuple) else ""
    workload = workload_line(scenario)
    return (
        f"n = {scenario.servers} servers ({pools_line(scenario)}), {routers}{shares}, "
        f"load {scenario.nominal_load:g}{workload and '; '}{workload}"
    )


def workload_line(scenario: Scenario) -> str:
    """Return what differs from Poisson arrivals and exponential service."""
    service, arrivals = scenario.service, scenario.arrivals
    parts = []
    if isinstance(arrivals, Renewal):
        parts.append(f"independent gaps: {arrivals.gaps.law}{_parameters(arrivals.gaps)}")
    elif isinstance(arrivals, Trace):
        times = "replayed once" if arrivals.block is None else f"in blocks of {arrivals.block:,}"
        parts.append(f"trace {Path(arrivals.trace).name}, {times}")
    elif arrivals is not None:
        parts.append(f"{arrivals.kind}{_parameters(arrivals)}")
    if service is not None:
        parts.append(f"service {service.law}{_parameters(service)}")
    if isinstance(scenario.shares, HotRouter):
        parts.append(f"hot router{_parameters(scenario.shares)}")
    if scenario.news is not None:
        parts.append(f"news{_changed(scenario.news)}")
    if scenario.faults is not None:
        parts.append(f"faults{_changed(scenario.faults)}")
    return ", ".join(parts)


def _parameters(part: object) -> str:
    """Return the fields of a part of a scenario in parentheses."""
    return _in_parentheses({f.name: getattr(part, f.name) for f in fields(part) if f.init})  # type: ignore[arg-type]


def _changed(part: object) -> str:
    """Return the fields of a part of a scenario that differ from their defaults."""
    values = {f.name: (getattr(part, f.name), f.default) for f in fields(part)}  # type: ignore[arg-type]
    return _in_parentheses({name: value for name, (value, default) in values.items() if value != default})


def _in_parentheses(values: dict[str, Any]) -> str:
    texts = [f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in values.items() if v is not None]
    return f" ({', '.join(texts)})" if texts else ""


def pools_line(scenario: Scenario) -> str:
    """Return the pools in one line."""
    limits = ("" if pool.buffer is None else f" with buffer {pool.buffer}" for pool in scenario.pools)
    pools = zip(scenario.pools, limits, strict=True)
    return ", ".join(f"{pool.size} at rate {pool.rate:g}{limit}" for pool, limit in pools)


def run_line(runs: Sequence[Result]) -> str:
    """Return customers, replications, warm-up and seeds of runs on a scenario."""
    warmups = sorted({run.warmup for run in runs})
    warmup = " or ".join(f"{w:,}" for w in warmups[:1] + warmups[1:][-1:])
    seeds = sorted({run.seed for run in runs})
    per_seed, plural = (" per seed", "s") if len(seeds) > 1 else ("", "")
    return (
        f"{runs[0].customers:,} customers{per_seed} over {runs[0].replications} replications, "
        f"each after a warm-up of {warmup}; seed{plural} {', '.join(map(str, seeds))}"
    )


def bound_line(scenario: Scenario) -> list[str]:
    """Return what no policy can beat: all servers pooled into one; [] if unknown."""
    bounds = lower_bounds(scenario)
    if math.isinf(bounds["wait"].value):
        return []
    values = {"mean wait": bounds["wait"].value, "P(block)": bounds["p_block"].value}
    least = [f"a {name} below {value:.3g}" for name, value in values.items() if value > 0]
    return [f"No policy has {' or '.join(least)} (all servers pooled into one)."] if least else []
