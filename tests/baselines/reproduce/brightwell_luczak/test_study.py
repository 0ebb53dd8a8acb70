"""The reproduction of Brightwell and Luczak: the regime, the way to equilibrium, verdicts that follow the rows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from baselines.reproduce.brightwell_luczak import study as brightwell_luczak
from baselines.reproduce.brightwell_luczak.study import (
    FULL,
    FULL_LARGE,
    LARGEST,
    NEAR,
    ONE,
    QUICK,
    TWO,
    TWO_AT_MOST,
    Regime,
    excess,
    measurements,
    theory,
    time_to_mean,
)
from baselines.reproduce.common.study import Row, Section, Setup, value
from pull_env.reporting.rows import to_line

Rows = list[dict[str, Any]]

SMALL = ((ONE, (60, 120), 1.5), (TWO, (60, 200), 0.3))
LARGE = ((LARGEST, 3000, NEAR, 2.0, 2.0),)
ONE_LENGTH, NONE, LATER = (
    "Almost all queues have length k",
    "None is longer",
    "None is longer, where larger systems are needed to see it",
)
TIME = "The time to equilibrium"


@pytest.fixture(scope="module")
def rows() -> Rows:
    return [json.loads(to_line(task())) for task in measurements(Setup(workers=2), SMALL, LARGE)]


def told(mean: float) -> dict[str, Any]:
    half = 1e-3 * abs(mean)
    return {"mean": mean, "low": mean - half, "high": mean + half, "count": 8}


def perfect(row: Row) -> dict[str, Any]:
    """Return a row of an n so large that the claims hold; k = 1 can show that none is longer, k = 2 cannot."""
    row = copy.deepcopy(dict(row))
    extra, n = row["extra"], row["point"]["n"]
    one = extra["k"] == 1
    extra |= {"limit longer": 1e-9 if one else 0.1, "longest": extra["k"], "bound": 0.5}
    extra |= {"share": told(1.0 - 1.0 / n), "length": told(extra["mean"])}
    extra |= {"longer": told(0.0 if one else 100.0 / n**3), "some longer": told(0.0)}
    extra["time"] = told(extra["excess"] + 0.3 * extra["time scale"])
    return row


def by_heading(rows: Rows) -> dict[str, Section]:
    return {section.heading: section for section in brightwell_luczak.STUDY.sections(rows)}


def verdicts(rows: Rows) -> dict[str, bool | None]:
    return {heading: section.reproduced for heading, section in by_heading(rows).items()}


def test_tiny_sizes_give_a_page_and_a_figure(rows: Rows) -> None:
    found = by_heading(rows)
    assert {ONE_LENGTH, LATER, TIME} <= set(found)
    for section in found.values():
        assert section.table
        assert all(len(line) == len(section.header) for line in section.table)
        assert "Criterion" in section.verdict
    assert len(found[ONE_LENGTH].table) == 2 * 4 + 2
    panels = brightwell_luczak.STUDY.figure(rows).axes
    assert len(panels) == 4
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in panels)


def test_rows_that_follow_the_claims_reproduce_everything(rows: Rows) -> None:
    expected = dict.fromkeys((ONE_LENGTH, NONE, LATER, TIME), True)
    assert verdicts([*map(perfect, rows)]) == expected


def at(n: int, start: str) -> Callable[[Row], bool]:
    return lambda row: row["point"]["n"] == n and row["point"]["start"] == start


@pytest.mark.parametrize(
    ("n", "start", "name", "wrong", "heading"),
    [
        (120, "long queues", "share", 0.4, ONE_LENGTH),
        (3000, "below", "share", 0.4, ONE_LENGTH),
        (200, "empty", "share", 0.9, ONE_LENGTH),  # above the bound, but less than at n = 60
        (120, "long queues", "some longer", 0.2, NONE),
        (200, "empty", "longer", 0.3, LATER),
        (200, "empty", "time", 100.0, TIME),
        (200, "long queues", "time", 300.0, TIME),
        (200, "long queues", "length", 2.5, TIME),
    ],
)
def test_rows_that_contradict_a_claim_refute_it(
    rows: Rows, n: int, start: str, name: str, wrong: float, heading: str
) -> None:
    doctored = [*map(perfect, rows)]
    (touched,) = filter(at(n, start), doctored)
    touched["extra"][name] = told(wrong)
    found = verdicts(doctored)
    assert found.pop(heading) is False
    assert set(found.values()) == {True}


def test_a_mean_that_was_not_met_leaves_the_time_undecided(rows: Rows) -> None:
    doctored = [*map(perfect, rows)]
    del doctored[0]["extra"]["time"]
    assert by_heading(doctored)[TIME].reproduced is None


# The regime


def test_a_whole_power_is_not_rounded_down() -> None:
    assert LARGEST.choices(100_000) == 10
    assert Regime(0.5, 0.3).choices(10_000) == 15
    assert Regime(0.7, 0.5).choices(1_000_000) == 1000


def test_lengths_and_bounds() -> None:
    assert [Regime(a, b).length for a, b in ((0.25, 0.6), (0.5, 0.3), (0.45, 0.4), (0.75, 0.3))] == [
        1,
        2,
        2,
        3,
    ]
    assert TWO.bound(10_000) == pytest.approx(1 - 2 * 10_000**-0.2)
    assert ONE.bound(10_000) == pytest.approx(1 - 2 * 10_000**-0.25)
    assert TWO.time_scale(10_000) == pytest.approx(2 * 15 * np.log(10_000))


@pytest.mark.parametrize("sizes", [QUICK, FULL])
def test_the_floor_moves_no_length_at_the_sizes_used(sizes: brightwell_luczak.Sizes) -> None:
    large = [(regime, n) for regime, n, *_ in FULL_LARGE]
    for regime, n in [*large, *((regime, n) for regime, several, _ in sizes for n in several)]:
        assert theory(regime, n)["k"] == regime.length  # refuses another


def test_the_limit_is_the_supermarket_model() -> None:
    found, load = theory(TWO_AT_MOST, 1000), TWO_AT_MOST.load(1000)
    assert found["d"] == 15
    assert found["limit longer"] == pytest.approx(load ** (1 + 15 + 15**2))
    assert found["limit share"] == pytest.approx(load**16 - load**241)
    assert found["mean"] == pytest.approx(load + load**16 + load**241, abs=1e-9)


# The way to equilibrium


def test_starts_are_where_they_should_be(rows: Rows) -> None:
    for row in rows:
        share = brightwell_luczak.STARTS[row["point"]["start"]]
        first = row["extra"]["path"][0]
        assert first[0] == 0.0
        mean = row["extra"]["mean"]
        assert share * mean <= first[1] + 1e-12
        assert first[1] < share * mean + 0.1  # blind sending stops within n / 100 customers, or one


def test_snapshots_agree_with_the_counters_of_the_run(rows: Rows) -> None:
    for row in filter(lambda row: row["stable"], rows):
        n, snapshots = row["point"]["n"], value(row, "length")
        counters = value(row, "mean_number")
        error = 4 * (snapshots.error + counters.error / n)
        assert snapshots.mean == pytest.approx(counters.mean / n, abs=error)


@pytest.mark.parametrize(
    ("numbers", "met"),
    [([0.0, 1.0, 3.0, 2.0], 1.5), ([5.0, 6.0, 3.0, 1.0], 2.5), ([2.0, 1.0], 0.0), ([0.0, 1.0, 1.5], np.inf)],
)
def test_meeting_is_the_first_crossing_from_either_side(numbers: list[float], met: float) -> None:
    path = np.column_stack([np.arange(len(numbers)), numbers, numbers]).astype(np.float64)
    assert time_to_mean(path, 2.0) == pytest.approx(met)


def test_an_excess_takes_the_time_that_the_spare_capacity_needs() -> None:
    assert excess(TWO, 10_000, "empty") == 0.0
    mean = theory(TWO, 10_000)["mean"]
    assert excess(TWO, 10_000, "long queues") == pytest.approx(0.3 * mean * 100.0)
