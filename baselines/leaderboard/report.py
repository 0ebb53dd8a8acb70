"""The leaderboard's tables: scores with intervals, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pull_env.policy.policy import Policy
from pull_env.reporting.describe import (
    TRACE_NOTE,
    bound_line,
    decimals,
    growing,
    run_line,
    shown,
    system_line,
)
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import KINDS, Result
from pull_env.simulation.statistics import Estimate, estimate, paired
from pull_env.theory.prediction import Prediction, predict

THEORY_NOTE = (
    "Theory of the column before it: exact for this system, or the limit as n grows, pools in proportion; "
    "nothing where none is known."
)
BY_THEORY = {"wait": "wait", "P(block)": "p_block"}  # columns that theory stands beside, and its measures


@dataclass(frozen=True)
class Score:
    """What a policy reached on a scenario over all seeds.

    No mean is claimed where it is unstable.

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


def predicted(theory: Prediction, title: str, value: Estimate) -> str:
    """Return theory for a column, to the digits of its value; or nothing."""
    if BY_THEORY[title] not in theory:
        return ""
    found = theory[BY_THEORY[title]]
    return f"{found.value:.{decimals(value)}f} {found.kind}"


def table(board: Board) -> RenderableType:
    """Return a scenario's table with notes; columns of zeros are left out."""
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
