"""The leaderboard's tables: policies by cost, every measure with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

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
    growth_line,
    plus_minus,
    run_line,
    system_line,
)
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import KINDS, Result
from pull_env.simulation.statistics import Estimate, estimate, paired
from pull_env.theory.prediction import Prediction, predict

THEORY_NOTE = (
    "Theory refers to the column before it: exact for this system, or the limit as n grows, pools in "
    "proportion; empty where none is known."
)
THEORY_OF = {"wait": "wait", "P(block)": "p_block"}  # measures of theory by column


@dataclass(frozen=True)
class Board:
    """The results of policies on one scenario, and how they were measured.

    Attributes:
        scenario: The scenario.
        results: Policies with their results over all seeds: stable ones by cost, then the unstable ones.
        run: One line: customers, warm-up, replications, seeds.
    """

    scenario: Scenario
    results: tuple[tuple[Policy, Result], ...]
    run: str

    def select(self, *, stable: bool) -> list[tuple[Policy, Result]]:
        """Return the stable or the unstable policies with their results."""
        return [(policy, result) for policy, result in self.results if result.stable == stable]


def board(scenario: Scenario, results: Sequence[tuple[Policy, Sequence[Result]]]) -> Board:
    """Return the board of a scenario.

    Args:
        scenario: The scenario.
        results: Policies, each with its results by seed; the seeds are the same for all.
    """
    pooled = [(policy, pool_seeds(runs)) for policy, runs in results]
    pooled.sort(key=lambda entry: (not entry[1].stable, entry[1].cost.mean if entry[1].stable else 0.0))
    return Board(scenario, tuple(pooled), run_line([run for _, runs in results for run in runs]))


def pool_seeds(runs: Sequence[Result]) -> Result:
    """Return one result from the replications of all seeds.

    It is unstable if one of them is, and without quantiles, which cannot be pooled.
    """

    def pool(*values: Estimate) -> Estimate:
        samples = np.concatenate([value.samples for value in values])
        return estimate(samples) if samples.size else values[0]

    first = runs[0]
    names = [f.name for f in fields(first) if isinstance(getattr(first, f.name), Estimate)]
    estimates: dict[str, Any] = {name: pool(*(getattr(run, name) for run in runs)) for name in names}
    return replace(
        first,
        **estimates,
        busy=tuple(map(pool, *(run.busy for run in runs))),
        messages={kind: pool(*(run.messages[kind] for run in runs)) for kind in first.messages},
        wait_quantiles={},
        stable=all(run.stable for run in runs),
        growth=tuple(np.mean([run.growth for run in runs], axis=0).tolist()),
        customers=sum(run.customers for run in runs),
        replications=sum(run.replications for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


def theory_cell(theory: Prediction, title: str, value: Estimate) -> str:
    """Return what theory predicts for a column, to the digits of `value`."""
    if THEORY_OF[title] not in theory:
        return ""
    prediction = theory[THEORY_OF[title]]
    return f"{prediction.value:.{decimals(value)}f} {prediction.kind}"


def table(board: Board) -> RenderableType:
    """Return a scenario's table with its notes; columns of zeros are left out."""
    prices = board.scenario.prices
    columns: dict[str, Callable[[Result], Estimate]] = {
        "wait": lambda r: r.wait,
        "P(wait)": lambda r: r.p_wait,
        "P(block)": lambda r: r.p_block,
        **{kind: lambda r, kind=kind: r.messages[kind] for kind in KINDS},  # type: ignore[misc]
        "messages": lambda r: r.messages["total"],
    }
    stable, unstable = board.select(stable=True), board.select(stable=False)
    used = {
        title: measure
        for title, measure in columns.items()
        if title in ("wait", "messages") or any(measure(result).mean for _, result in stable)
    }
    predictions = [predict(board.scenario, policy) or {} for policy, _ in stable]
    with_theory = {title for title in used if any(THEORY_OF.get(title) in theory for theory in predictions)}
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("policy", no_wrap=True)
    for title in ("cost", "above the best", *used):
        grid.add_column(title, justify="right")
        if title in with_theory:
            grid.add_column("theory", justify="right")
    for place, ((policy, result), theory) in enumerate(zip(stable, predictions, strict=True)):
        above = "best" if place == 0 else plus_minus(paired(result.cost, stable[0][1].cost))
        cells = [plus_minus(result.cost), above]
        for title, measure in used.items():
            cells.append(plus_minus(measure(result)))
            if title in with_theory:
                cells.append(theory_cell(theory, title, measure(result)))
        grid.add_row(policy.name, *cells)
    for policy, _ in unstable:
        dashes = 1 + len(used) + len(with_theory)
        grid.add_row(policy.name, Text("unstable", "red"), *("-" for _ in range(dashes)))
    notes = [
        f"{board.run}; {sum(result.seconds for _, result in board.results):.1f} s",
        f"Cost per arriving customer = {prices.wait:g} x wait + {prices.message:g} x messages"
        f"{'' if board.scenario.never_blocks else f' + {prices.block:g} x blocked'}. ± marks 95 % intervals; "
        "'above the best' is paired over common random numbers.",
        *([TRACE_NOTE] if board.scenario.replay else []),
        *([THEORY_NOTE] if with_theory else []),
        *bound_line(board.scenario),
        *(f"{policy.name} is unstable: {growth_line(board.scenario, r.growth)}." for policy, r in unstable),
    ]
    heading = Text.assemble((board.scenario.name, "bold"), f": {system_line(board.scenario)}")
    return Group(heading, grid, Text("\n".join(notes), "dim"), Text())
