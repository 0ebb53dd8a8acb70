"""One-line descriptions of systems, runs and estimates."""

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


def growing(scenario: Scenario, growth: Sequence[float]) -> str:
    """Say which pools grow and how fast; pools with buffers cannot."""
    unlimited = {j: growth[j] for j, pool in enumerate(scenario.pools) if pool.buffer is None}
    fastest = max(unlimited.values())
    if fastest <= 0.0:  # too short a run to see it, but it must come
        return f"the load is {scenario.nominal_load:g}, so the queues grow for ever"
    return " and ".join(
        f"pool {j} ({scenario.pools[j].size} servers at rate {scenario.pools[j].rate:g}) "
        f"grows by {grown:.3g} customers per time unit"
        for j, grown in unlimited.items()
        if grown > fastest / 10
    )


def shown(value: Estimate) -> str:
    """Return an estimate as `mean ± half width`, to two digits of the latter."""
    if not math.isfinite(value.mean):
        return "-"
    half = value.half_width() if value.error > 0 else 0.0
    places = decimals(value)
    return f"{value.mean:.{places}f} ± {half:.{places}f}" if half else f"{value.mean:.6g}"


def decimals(value: Estimate) -> int:
    """Return the decimals to show: two digits of the half width."""
    half = value.half_width() if value.error > 0 else 0.0
    if not 0.0 < half < math.inf:
        return 4
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def system_line(scenario: Scenario) -> str:
    """Return what is simulated, in a line."""
    routers = f"R = {scenario.routers} router{'s' if scenario.routers > 1 else ''}"
    skewed = " with unequal shares" if isinstance(scenario.shares, tuple) else ""
    special = workload_line(scenario)
    return (
        f"n = {scenario.servers} servers ({pools_line(scenario)}), {routers}{skewed}, "
        f"load {scenario.nominal_load:g}{special and '; '}{special}"
    )


def workload_line(scenario: Scenario) -> str:
    """Return in a line what is not Poisson, exponential or fixed shares."""
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
    """Return the fields of a part of a scenario, in brackets."""
    given = {each.name: getattr(part, each.name) for each in fields(part) if each.init}  # type: ignore[arg-type]
    return _in_brackets(given)


def _changed(part: object) -> str:
    """Return the fields that differ from their defaults, in brackets."""
    given = {each.name: getattr(part, each.name) for each in fields(part)}  # type: ignore[arg-type]
    usual = {each.name: each.default for each in fields(part)}  # type: ignore[arg-type]
    return _in_brackets({name: value for name, value in given.items() if value != usual[name]})


def _in_brackets(given: dict[str, Any]) -> str:
    texts = [f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in given.items() if v is not None]
    return f" ({', '.join(texts)})" if texts else ""


def pools_line(scenario: Scenario) -> str:
    """Return the pools in a line."""
    limits = ("" if pool.buffer is None else f" with buffer {pool.buffer}" for pool in scenario.pools)
    pools = zip(scenario.pools, limits, strict=True)
    return ", ".join(f"{pool.size} at rate {pool.rate:g}{limit}" for pool, limit in pools)


def run_line(runs: Sequence[Result]) -> str:
    """Return in a line: customers, replications, warm-up, seeds."""
    warmups = sorted({run.warmup for run in runs})
    warmup = " or ".join(f"{w:,}" for w in warmups[:1] + warmups[1:][-1:])
    seeds = sorted({run.seed for run in runs})
    each, several = (" a seed", "s") if len(seeds) > 1 else ("", "")
    return (
        f"{runs[0].customers:,} customers{each} over {runs[0].replications} replications, "
        f"each after a warm-up of {warmup}; seed{several} {', '.join(map(str, seeds))}"
    )


def bound_line(scenario: Scenario) -> list[str]:
    """Return what no policy can beat, in a line, by pooling all servers into one."""
    known = lower_bounds(scenario)
    if math.isinf(known["wait"].value):
        return []
    what = {"mean wait": known["wait"].value, "P(block)": known["p_block"].value}
    least = [f"a {name} below {value:.3g}" for name, value in what.items() if value > 0]
    return [f"No policy has {' or '.join(least)} (all servers pooled into one)."] if least else []
