"""The reproduction of Stolyar 2017: theory's digits, and verdicts that follow the rows wherever they point."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from baselines.reproduce.common.study import Row, Section, Setup, value
from baselines.reproduce.stolyar import study as stolyar
from baselines.reproduce.stolyar.study import Sizes, equal_servers, late, measurements, system, theory
from pull_env import simulate
from pull_env.reporting.rows import to_line
from pull_env.simulation.warmup import split_relaxation
from pull_env.theory import exact

TINY = Sizes(
    customers=2000,
    stationary=(20, 40),
    transient=((400, 1), (400, 10)),
    transient_customers=20_000,
    fallback=(20,),
    law=((0.5, 40, 2, 20), (0.9, 80, 10, 20)),
    growing=(20, 40),
    growing_customers=6000,
)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    measured = [task() for task in measurements(Setup(workers=2), TINY)]
    return [json.loads(to_line(row)) for row in measured]


def told(mean: float) -> dict[str, Any]:
    half = 1e-4 * mean
    return {"mean": mean, "low": mean - half, "high": mean + half, "count": 8}


def perfect(row: Row) -> dict[str, Any]:
    """Return a stable row that follows the theory; what vanishes does so as 1 / n^4, as the sizes are tiny."""
    row = copy.deepcopy(dict(row))
    extra, measures, n = row["extra"], row["measures"], row["point"]["n"]
    vanished = 100.0 / n**4
    row["stable"] = True
    extra.setdefault("field late", 0.5)
    extra["late"] = told(vanished)
    measures["messages"]["total"] = told(1.0 - vanished)
    measures["messages"]["total"].update(low=1.0 - 1.01 * vanished, high=1.0 - 0.99 * vanished)
    if row["point"]["R"] > 1:
        extra["empty"] = told(
            extra["c"] * (row["point"]["R"] - 1) / (n * (1 - row["scenario"]["content"]["load"]))
        )
    if row["point"]["experiment"] == "growing R":
        for name in ("p_wait", "p_block", "response"):
            measures[name] = told(extra[f"field {name}"])
    else:
        measures["busy"] = [told(extra[f"fluid busy {j}"]) for j in range(len(measures["busy"]))]
        measures["response"] = told(extra["fluid response"])
    return row


def by_heading(rows: list[dict[str, Any]]) -> dict[str, Section]:
    return {section.heading: section for section in stolyar.STUDY.sections(rows)}


WAITING = "Waiting and blocking vanish: finite buffers"
UNLIMITED = "Waiting and blocking vanish: unlimited buffers"
MESSAGE, FLUID, LAW = "One message per customer", "The fluid point", "How fast: like 1/n"
SMALL, MANY = (
    "Where it is too small: unlimited queues may grow",
    "If routers grow with the servers, waiting stays",
)


def test_tiny_sizes_give_a_page_and_a_figure(rows: list[dict[str, Any]]) -> None:
    found = by_heading(rows)
    assert list(found) == [WAITING, UNLIMITED, MESSAGE, FLUID, LAW, SMALL, MANY]
    for section in found.values():
        assert section.table
        assert all(len(line) == len(section.header) for line in section.table)
        assert "Criterion" in section.verdict
    assert len(found[WAITING].table) == 2 * 4 + 2
    panels = stolyar.STUDY.figure(rows).axes
    assert len(panels) == 6
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in panels)


def test_unstable_points_are_shown_as_such(rows: list[dict[str, Any]]) -> None:
    unstable = [row for row in rows if row["scenario"]["name"] == "unlimited" and not row["stable"]]
    assert unstable
    lines = [line for line in by_heading(rows)[UNLIMITED].table if line[-1] == "unstable"]
    assert len(lines) == len(unstable)
    assert {line[4] for line in lines} == {"-"}


def test_rows_that_follow_the_theory_reproduce_everything(rows: list[dict[str, Any]]) -> None:
    assert {
        heading: s.reproduced for heading, s in by_heading([*map(perfect, rows)]).items()
    } == dict.fromkeys((WAITING, UNLIMITED, MESSAGE, FLUID, LAW, SMALL, MANY), True)


def largest(experiment: str, name: str) -> Callable[[Row], bool]:
    """Tell the rows of the largest n of an experiment and a system."""
    most = {"size": 40, "watched": 400, "law": 80, "growing R": 40}[experiment]
    return lambda row: (
        row["point"]["experiment"] == experiment
        and row["point"]["n"] == most
        and row["scenario"]["name"].startswith(name)
    )


@pytest.mark.parametrize(
    ("experiment", "name", "path", "wrong", "heading"),
    [
        ("size", "finite", ("extra", "late"), 0.02, WAITING),
        ("size", "unlimited", ("extra", "late"), 0.02, UNLIMITED),
        ("size", "finite", ("measures", "messages", "total"), 0.9, MESSAGE),
        ("watched", "finite", ("measures", "response"), 0.7, FLUID),
        ("watched", "unlimited", ("measures", "busy", 1), 0.9, FLUID),
        ("law", "equal", ("extra", "empty"), 0.5, LAW),
        ("growing R", "finite", ("measures", "p_block"), 0.1, MANY),
        ("growing R", "unlimited", ("measures", "p_wait"), 0.0001, MANY),
    ],
)
def test_rows_that_contradict_a_claim_refute_it(
    rows: list[dict[str, Any]], experiment: str, name: str, path: tuple[Any, ...], wrong: float, heading: str
) -> None:
    doctored, chosen = [*map(perfect, rows)], largest(experiment, name)
    touched = [row for row in doctored if chosen(row)]
    assert touched
    for row in touched:
        part: Any = row
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = told(wrong)
    verdicts = {section.heading: section.reproduced for section in stolyar.STUDY.sections(doctored)}
    assert verdicts.pop(heading) is False
    assert set(verdicts.values()) == {True}


@pytest.mark.parametrize("experiment", ["size", "fallback"])
def test_growth_where_the_mean_field_or_the_fallback_forbids_it_refutes_that(
    rows: list[dict[str, Any]], experiment: str
) -> None:
    doctored = [*map(perfect, rows)]
    found = [row for row in doctored if row["scenario"]["name"] == "unlimited" and row["point"]["R"] == 10]
    next(row for row in found if row["point"]["experiment"] == experiment)["stable"] = False
    assert by_heading(doctored)[SMALL].reproduced is False


def test_wide_intervals_decide_nothing(rows: list[dict[str, Any]]) -> None:
    doctored = [*map(perfect, rows)]
    for row in doctored:
        if row["point"]["experiment"] == "law":
            row["extra"]["empty"]["low"], row["extra"]["empty"]["high"] = (
                0.0,
                2 * row["extra"]["empty"]["mean"],
            )
    assert by_heading(doctored)[LAW].reproduced is None


# Theory and measures


@pytest.mark.parametrize(
    ("load", "busy", "response"),
    [(0.8, (0.867619, 0.766190), 0.680754), (0.9, (0.937014, 0.881493), 0.673521)],
)
def test_the_fluid_point(load: float, busy: tuple[float, float], response: float) -> None:
    found = theory(system("finite" if load == 0.9 else "finite, load 0.8", 100, 2))
    assert (found["fluid busy 0"], found["fluid busy 1"]) == pytest.approx(busy, abs=1e-6)
    assert found["fluid response"] == pytest.approx(response, abs=1e-6)


@pytest.mark.parametrize(("load", "c"), [(0.5, 0.749), (0.7, 0.818), (0.9, 0.920), (0.95, 0.956)])
def test_the_constant_of_the_law(load: float, c: float) -> None:
    found = theory(equal_servers(load, 1000, 5))
    assert found["c"] == pytest.approx(c, abs=5e-4)
    assert found["law late"] == pytest.approx(load * found["c"] * 4 / (1000 * (1 - load)), rel=1e-3)


def test_the_mean_field() -> None:
    finite = theory(system("finite, load 0.8", 100, 10))
    assert finite["field q0"] == pytest.approx(0.259352, abs=1e-6)
    assert finite["field response"] == pytest.approx(0.834554, abs=1e-6)
    assert finite["field p_wait"] == pytest.approx(0.112926, abs=1e-6)
    assert finite["field p_block"] == pytest.approx(0.093644, abs=1e-6)
    unlimited = theory(system("unlimited, load 0.8", 100, 10))
    assert (unlimited["field p_wait"], unlimited["field response"]) == pytest.approx(
        (0.274470, 1.012191), abs=1e-6
    )
    assert theory(equal_servers(0.9, 100, 10))["field response"] == pytest.approx(1.765375, abs=1e-6)


def test_the_mean_field_has_no_stationary_state_where_slow_servers_saturate() -> None:
    assert "field late" not in theory(system("unlimited", 100, 10 * 10))
    assert "field late" in theory(system("unlimited", 1000, 10))


def test_late_and_empty_are_counted_from_what_is_measured() -> None:
    scenario, policy = system("finite", 4, 2), stolyar.make("pull")
    result = simulate(scenario, policy, 400_000, warmup=1000)
    solved = exact.solve(scenario, policy)
    truth = 1.0 - solved.messages["pull"]  # a customer that neither waits nor is blocked uses up a message
    low, high = late(result).interval(0.999)
    assert low < truth < high
    low, high = stolyar.empty(result).interval(0.999)
    assert low < truth + solved.messages["remove"] < high


def test_settled_points_forget_the_split_and_watched_ones_say_how_far_they_came(
    rows: list[dict[str, Any]],
) -> None:
    for row in rows:
        content, at = row["scenario"]["content"], row["point"]
        scenario = stolyar.Scenario.from_dict(content)
        split = split_relaxation(scenario) * scenario.total_arrival_rate
        if at["R"] == 1:
            assert at["spans"] is None
        elif at["experiment"] in ("size", "law", "fallback"):
            assert row["run"]["warmup"] >= 5 * split
            assert at["spans"] == pytest.approx(
                max(2000 / split, 30 if at["experiment"] != "law" else 20), rel=0.1
            )
        elif at["experiment"] == "watched":
            assert at["spans"] * split == pytest.approx(row["run"]["warmup"] + 10_000)
    assert value(rows[0], "total").mean < 1.0
