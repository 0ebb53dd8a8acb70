"""The leaderboard's tables: scores of policies on a scenario, each with its interval, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pull_env.policy.policy import Policy
from pull_env.scenario.arrivals import HotRouter, Renewal, Trace
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import KINDS, Result
from pull_env.simulation.statistics import Estimate, estimate, paired
from pull_env.theory.prediction import Prediction, lower_bounds, predict

TRACE_NOTE = (
    "The trace is replayed once in each replication, from an empty system: the intervals cover the "
    "randomness of routing only, not that of arrivals and sizes."
)

THEORY_NOTE = (
    "Theory of the column before it: exact for this system, or the limit as n grows, pools in proportion; "
    "nothing where none is known."
)
BY_THEORY = {"wait": "wait", "P(block)": "p_block"}  # columns that theory stands beside, and its measures


@dataclass(frozen=True)
class Score:
    """What a policy reached on a scenario, over all seeds; no mean is claimed where it is unstable.

    Attributes:
        policy: The policy.
        unstable: Which pools grow, and how fast; empty where every run was stable.
        cost: Cost an arriving customer.
        wait: Time in queue of an accepted customer.
        p_wait: Share of accepted customers that wait.
        p_block: Share of arrivals that are blocked.
        messages: Messages an arriving customer, by kind and in total.
    """

    policy: Policy
    unstable: str
    cost: Estimate
    wait: Estimate
    p_wait: Estimate
    p_block: Estimate
    messages: dict[str, Estimate]


@dataclass(frozen=True)
class Board:
    """The scores of policies on one scenario, and how they were measured.

    Attributes:
        scenario: The scenario.
        scores: Stable ones by cost, then the unstable ones.
        run: One line: customers, warm-up, replications, seeds.
        seconds: Wall time of all runs.
    """

    scenario: Scenario
    scores: tuple[Score, ...]
    run: str
    seconds: float


def board(scenario: Scenario, results: Sequence[tuple[Policy, Sequence[Result]]]) -> Board:
    """Return the board of a scenario.

    Args:
        scenario: The scenario.
        results: Policies, each with its results by seed; the seeds are the same for all.
    """
    scores = [score(scenario, policy, runs) for policy, runs in results]
    runs = [run for _, runs in results for run in runs]
    return Board(
        scenario,
        tuple(sorted(scores, key=lambda s: (bool(s.unstable), s.cost.mean if not s.unstable else 0.0))),
        run_line(runs),
        sum(run.seconds for run in runs),
    )


def score(scenario: Scenario, policy: Policy, runs: Sequence[Result]) -> Score:
    """Return the score of a policy: the replications of all seeds are taken together."""

    def pooled(measure: Callable[[Result], Estimate]) -> Estimate:
        samples = np.concatenate([measure(run).samples for run in runs])
        return estimate(samples) if samples.size else measure(runs[0])

    growth = np.mean([run.growth for run in runs], axis=0).tolist()
    return Score(
        policy,
        "" if all(run.stable for run in runs) else growing(scenario, growth),
        pooled(lambda run: run.cost),
        pooled(lambda run: run.wait),
        pooled(lambda run: run.p_wait),
        pooled(lambda run: run.p_block),
        {kind: pooled(lambda run, kind=kind: run.messages[kind]) for kind in (*KINDS, "total")},  # type: ignore[misc]
    )


def growing(scenario: Scenario, growth: Sequence[float]) -> str:
    """Say which pools grow and how fast, from the growth of each; those with a limit cannot grow for ever."""
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
    """Return the decimal places that the interval of an estimate is worth: two digits of its half width."""
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
    """Return in a line what is not as usual, Poisson streams of fixed shares and exponential service."""
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
    """Return the fields of a part of a scenario that are not as by default, in brackets."""
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
    """Return how runs on a scenario were made, in a line: customers, replications, warm-up, seeds."""
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


def predicted(theory: Prediction, title: str, value: Estimate) -> str:
    """Return what theory says of a column of the table, to the digits of the value; nothing if unknown."""
    if BY_THEORY[title] not in theory:
        return ""
    found = theory[BY_THEORY[title]]
    return f"{found.value:.{decimals(value)}f} {found.kind}"


def table(board: Board) -> RenderableType:
    """Return a scenario's table, and what one must know to read it; columns of zeros are left out."""
    prices = board.scenario.prices
    columns: dict[str, Callable[[Score], Estimate]] = {
        "wait": lambda s: s.wait,
        "P(wait)": lambda s: s.p_wait,
        "P(block)": lambda s: s.p_block,
        **{kind: lambda s, kind=kind: s.messages[kind] for kind in KINDS},  # type: ignore[misc]
        "messages": lambda s: s.messages["total"],
    }
    stable = [score for score in board.scores if not score.unstable]
    unstable = [score for score in board.scores if score.unstable]
    used = {
        title: of
        for title, of in columns.items()
        if title in ("wait", "messages") or any(of(score).mean for score in stable)
    }
    known = [predict(board.scenario, score.policy) or {} for score in stable]
    told = {title for title in used if any(BY_THEORY.get(title) in theory for theory in known)}
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("policy", no_wrap=True)
    for title in ("cost", "above the best", *used):
        grid.add_column(title, justify="right")
        if title in told:
            grid.add_column("theory", justify="right")
    for place, (score, theory) in enumerate(zip(stable, known, strict=True)):
        cells = [shown(score.cost), "best" if place == 0 else shown(paired(score.cost, stable[0].cost))]
        for title, of in used.items():
            cells += [shown(of(score)), *([predicted(theory, title, of(score))] if title in told else [])]
        grid.add_row(score.policy.name, *cells)
    for score in unstable:
        dashes = 1 + len(used) + len(told)
        grid.add_row(score.policy.name, Text("unstable", "red"), *("-" for _ in range(dashes)))
    notes = [
        f"{board.run}; {board.seconds:.1f} s",
        f"Cost an arriving customer = {prices.wait:g} x wait + {prices.message:g} x messages"
        f"{'' if board.scenario.unlimited else f' + {prices.block:g} x blocked'}. ± are intervals of 95 %; "
        "'above the best' is paired over common random numbers.",
        *([TRACE_NOTE] if board.scenario.replay else []),
        *([THEORY_NOTE] if told else []),
        *bound_line(board.scenario),
        *(f"{score.policy.name} is unstable: {score.unstable}." for score in unstable),
    ]
    heading = Text.assemble((board.scenario.name, "bold"), f": {system_line(board.scenario)}")
    return Group(heading, grid, Text("\n".join(notes), "dim"), Text())
