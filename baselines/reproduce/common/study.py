"""The parts of a reproduction: points to measure, sections, figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from pull_env.policy.policy import Policy
from pull_env.reporting.rows import row
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import Result
from pull_env.simulation.statistics import Estimate, from_error, nan_estimate, t_quantile

Row = Mapping[str, Any]  # what `make_row` returns, or what JSON makes of it


@dataclass(frozen=True)
class Setup:
    """How to measure.

    Attributes:
        quick: Small sizes and short runs.
        seed: From 0.
        workers: Threads; None: one per core.
        command: The command line.
    """

    quick: bool = False
    seed: int = 0
    workers: int | None = None
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A claim of the paper, with measurements and a verdict.

    Attributes:
        heading: In a few words.
        claim: What the paper proves, with its number there.
        setting: The systems, policies, run lengths and warm-ups, in words.
        header: Names of the columns, with units.
        table: Cells as text, one row per measured point: estimates with intervals, and theory.
        reproduced: Whether the claim holds in these rows; None: undecided.
        verdict: The criterion, with the numbers that decide it.
    """

    heading: str
    claim: str
    setting: str
    header: Sequence[str]
    table: Sequence[Sequence[str]]
    reproduced: bool | None
    verdict: str


@dataclass(frozen=True)
class Study:
    """A paper, and how its headline is reproduced.

    Attributes:
        name: Its name on the command line, and the stem of its files.
        title: The title of its page.
        source: The paper.
        about: What the paper claims and why it matters, in a few sentences.
        tasks: Returns the measurements for a setup, each a function that returns a row.
        sections: Returns the page for rows.
        figure: Returns the figure for rows.
    """

    name: str
    title: str
    source: str
    about: str
    tasks: Callable[[Setup], Iterator[Callable[[], Row]]]
    sections: Callable[[Sequence[Row]], Sequence[Section]]
    figure: Callable[[Sequence[Row]], Figure]


def make_row(
    setup: Setup,
    scenario: Scenario,
    policy: Policy,
    result: Result,
    point: Mapping[str, Any],
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a row of `pull_env.reporting.rows` with two more keys.

    Args:
        setup: How it was measured.
        scenario: The system simulated.
        policy: The policy of its routers.
        result: The measurements.
        point: The experiment and its coordinates, plain values.
        extra: Further measures and values of theory, by name: estimates, numbers and lists of them.
    """
    content = row(scenario, policy, result, command=setup.command, workers=setup.workers)
    further = {name: x.to_dict() if isinstance(x, Estimate) else x for name, x in extra.items()}
    return {**content, "point": dict(point), "extra": further}


def read_estimate(content: Mapping[str, Any]) -> Estimate:
    """Return the estimate that a row holds as mean, low, high and count."""
    mean, high, count = content["mean"], content["high"], content["count"]
    if mean is None:
        return nan_estimate(count)
    if high is None:
        return from_error(mean, float("inf"), count)
    return from_error(mean, (high - mean) / t_quantile(0.95, count) if count > 1 else 0.0, count)


def value(row: Row, name: str) -> Estimate:
    """Return an entry of `extra` or `measures`, or a kind of messages, by name."""
    if name in row["extra"]:
        return read_estimate(row["extra"][name])
    measures = row["measures"]
    return read_estimate(measures[name] if name in measures else measures["messages"][name])
