"""The study of thresholds in heavy traffic: theory by its digits, verdicts that rows can overturn."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from baselines.reproduce.common.heavy_traffic import extrapolate
from baselines.reproduce.common.study import Setup
from baselines.reproduce.zhou import study as zhou
from baselines.reproduce.zhou.sections import layer_limit, sections
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.statistics import from_error

LOADS = (0.8, 0.9, 0.94, 0.96)


@pytest.fixture(scope="module")
def measured() -> list[dict[str, Any]]:
    tiny = zhou.Sizes((2,), dict.fromkeys(LOADS, 2.0), 0.8)
    return [dict(task()) for task in zhou.measurements(Setup(command="test"), tiny)]


def ideal(rows: list[dict[str, Any]], curve: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows with (1 - rho) E[N] as `curve` says, by rule, within 0.0001."""
    made = copy.deepcopy(rows)
    for row in made:
        at = row["point"]
        mean = curve[at["rule"]](1 - at["load"], at["threshold"])
        row["extra"]["scaled"] = from_error(mean, 0.0001, 8).to_dict()
        if row["extra"]["exact"] is not None:
            row["extra"]["exact"] = mean
    return made


CURVE: dict[str, Any] = {
    "JSQ": lambda x, r: 1 - x,
    "JIQ": lambda x, r: 4 / 3 - x,
    **{f"r = {r}": lambda x, r: layer_limit(2, r) + 2 * x for r in (2, 4, 8)},
    "r = 1.5 log x": lambda x, r: 1 + x * r,
    "r = x^0.5": lambda x, r: 1 + x * r,
    "r = x": lambda x, r: 1.37 - x,
    "r = x^1.5": lambda x, r: 2 - 2 * x,
    "random": lambda x, r: 2 - 2 * x,
}
NAMES = ("exact", "JIQ", "constant", "logarithmic", "polynomial")


def verdicts(rows: list[dict[str, Any]]) -> dict[str, bool | None]:
    return dict(zip(NAMES, (section.reproduced for section in sections(rows)), strict=True))


def test_rows_as_the_paper_claims_are_reproduced(measured: list[dict[str, Any]]) -> None:
    assert verdicts(ideal(measured, CURVE)) == dict.fromkeys(NAMES, True)


@pytest.mark.parametrize(
    ("name", "rule", "curve", "verdict"),
    [
        ("JIQ", "JIQ", lambda x, r: 1 - x, False),
        ("JIQ", "JIQ", lambda x, r: 2 - x, False),
        ("constant", "r = 2", lambda x, r: 1 + x, False),
        ("logarithmic", "r = 1.5 log x", lambda x, r: 1.05 + x * r, False),
        ("logarithmic", "JSQ", lambda x, r: 1.05 + x, False),
        ("logarithmic", "r = 1.5 log x", lambda x, r: 0.9 + x * r, None),
        ("logarithmic", "r = 1.5 log x", lambda x, r: 1.05 + x**0.3, None),  # the curve does not fit
        ("polynomial", "r = x", lambda x, r: 1 + x, False),
        ("polynomial", "r = x^1.5", lambda x, r: 1 + x, False),
    ],
)
def test_rows_against_a_claim(
    measured: list[dict[str, Any]], name: str, rule: str, curve: Any, verdict: bool | None
) -> None:
    found = verdicts(ideal(measured, CURVE | {rule: curve}))
    assert found.pop(name) is verdict
    assert set(found.values()) == {True}


def test_a_value_that_misses_the_exact_one(measured: list[dict[str, Any]]) -> None:
    rows = ideal(measured, CURVE)
    next(row for row in rows if row["extra"]["exact"] is not None)["extra"]["exact"] += 0.001
    assert verdicts(rows)["exact"] is False


def test_what_is_not_claimed_decides_nothing(measured: list[dict[str, Any]]) -> None:
    rows = ideal(measured, CURVE)
    for row in rows:
        row["extra"]["scaled"] = {"mean": None, "low": None, "high": None, "count": 8}
    assert set(verdicts(rows).values()) == {None}
    assert zhou.STUDY.figure(rows).axes


def test_short_runs_make_a_page_and_a_figure(measured: list[dict[str, Any]]) -> None:
    told = zhou.STUDY.sections(measured)
    assert all(len(row) == len(section.header) for section in told for row in section.table)
    assert [axes.get_title() for axes in zhou.STUDY.figure(measured).axes] == ["n = 2"]
    assert sum(row["extra"]["exact"] is not None for row in measured) == 2 * len(LOADS) + len(zhou.SOLVED)


@pytest.mark.parametrize(
    ("rule", "load", "mean_number"),
    [
        ("JSQ", 0.8, 4.72918),
        ("r = 2", 0.8, 5.15921),
        ("r = 4", 0.8, 5.47094),
        ("r = 8", 0.8, 6.41192),
        ("JIQ", 0.8, 5.53846),
        ("JIQ", 0.95, 25.55172),
        ("random", 0.95, 38.0),
    ],
)
def test_exact_values(rule: str, load: float, mean_number: float) -> None:
    found = zhou.exact(Scenario((Pool(2),), load=load), rule, 0.8)
    assert found == pytest.approx((1 - load) * mean_number, abs=3e-6)


def test_exact_values_where_none_are_known() -> None:
    assert zhou.exact(Scenario((Pool(2),), load=0.9), "JSQ", 0.8) is None
    assert zhou.exact(Scenario((Pool(4),), load=0.8), "JIQ", 0.8) is None


@pytest.mark.parametrize("n", [2, 4, 10])
def test_limit_of_constant_thresholds(n: int) -> None:
    assert layer_limit(n, 1) == pytest.approx(2 * n / (n + 1))
    assert 1 < layer_limit(n, 8) < layer_limit(n, 4) < layer_limit(n, 2) < layer_limit(n, 1) < n


def test_thresholds() -> None:
    assert [zhou.threshold(rule, 0.99) for rule in zhou.RULES] == [None, 1, 2, 4, 8, 7, 10, 100, 1000, None]


def test_a_curve_is_carried_to_the_limit_with_its_error() -> None:
    points = [(load, None, from_error(1 + 2 * (1 - load), 0.01, 8)) for load in LOADS]
    found = extrapolate(points)
    assert found.mean == pytest.approx(1.0, abs=1e-9)
    assert 0.01 < found.error < 0.1
    bent = [(load, y, from_error(v.mean + 0.02 * (load == 0.8), 0.01, 8)) for load, y, v in points]
    assert extrapolate(bent).error > found.error  # not refused, but the limit moves without the lowest load


def test_nothing_is_claimed_where_the_curve_does_not_fit_or_cannot_be_told() -> None:
    step = [(load, None, from_error(1.0 + (load > 0.9), 0.0001, 8)) for load in LOADS]
    same = [(load, 3.0, from_error(1 + 2 * (1 - load), 0.01, 8)) for load in LOADS]  # x and x y
    few = [(load, None, from_error(1.0, 0.01, 8)) for load in LOADS[:3]]
    assert all(math.isnan(extrapolate(points).mean) for points in (step, same, few))
