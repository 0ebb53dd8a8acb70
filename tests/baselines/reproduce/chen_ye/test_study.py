"""The study of balanced routing: theory by its digits, verdicts that rows can overturn."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from baselines.reproduce.chen_ye import study as chen_ye
from baselines.reproduce.chen_ye.sections import exponent, sections
from baselines.reproduce.common.study import Setup
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.statistics import from_error

LOADS = (0.8, 0.9, 0.94, 0.96)
NAMES = ("exact", "limit", "pools", "queues", "work", "response", "tail")


@pytest.fixture(scope="module")
def measured() -> list[dict[str, Any]]:
    tiny = chen_ye.Sizes((2,), dict.fromkeys(LOADS, 1.0), 0.8, {10: 1000, 20: 1000})
    return [dict(task()) for task in chen_ye.measurements(Setup(command="test"), tiny)]


def ideal(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as the paper has it, within 0.0001."""
    made = copy.deepcopy(rows)
    for row in made:
        extra, x, c = row["extra"], 1 - row["point"]["load"], row["point"]["c"]
        if row["point"]["experiment"] == "heavy":
            put(row, "scaled", 2 - 2 * x if c == 1 else 1 + x)
            put(row, "spread", 1.0 if c == 1 else 2 * x)
            put(row, "work spread", 1.0 if c == 1 else 2 * x**0.5)
            put(row, "pool 0", 1 + x / c)
            if extra["exact"] is not None:
                extra["exact"] = extra["scaled"]["mean"]
            continue
        row["measures"]["response"] = from_error(extra["limit response"], 0.0001, 8).to_dict()
        for k in range(1, row["point"]["levels"] + 1):
            for name in ("pool 0", "pool 1"):
                put(row, f"{name} u_{k}", extra[f"limit u_{k}"])
            put(row, f"difference u_{k}", 0.0)
    return made


def put(row: dict[str, Any], name: str, mean: float) -> None:
    row["extra"][name] = from_error(mean, 0.0001, 8).to_dict()


def verdicts(rows: list[dict[str, Any]]) -> dict[str, bool | None]:
    return dict(zip(NAMES, (section.reproduced for section in sections(rows)), strict=True))


def test_rows_as_the_paper_claims_are_reproduced(measured: list[dict[str, Any]]) -> None:
    assert verdicts(ideal(measured)) == dict.fromkeys(NAMES, True)


@pytest.mark.parametrize(
    ("name", "measure", "curve", "verdict"),
    [
        ("limit", "scaled", lambda x: 1.05 + x, False),
        ("limit", "scaled", lambda x: 0.9 + x, None),
        ("limit", "scaled", lambda x: 1 + x**0.3, None),  # the curve does not fit
        ("pools", "pool 0", lambda x: 1.05 + x, False),
        ("pools", "pool 0", lambda x: 0.95 + x, False),
        ("queues", "spread", lambda x: 0.5 + 0 * x, False),
        ("queues", "spread", lambda x: 1 - x, False),
        ("queues", "spread", lambda x: x**0.3, False),
        ("work", "work spread", lambda x: 0.5 + 0 * x, False),
        ("work", "work spread", lambda x: x**0.2, False),
    ],
)
def test_rows_near_load_one_against_a_claim(
    measured: list[dict[str, Any]], name: str, measure: str, curve: Any, verdict: bool | None
) -> None:
    rows = ideal(measured)
    for row in rows:
        if row["point"]["experiment"] == "heavy" and row["point"]["c"] == 3:
            put(row, measure, curve(1 - row["point"]["load"]))
            if row["extra"]["exact"] is not None:
                row["extra"]["exact"] = row["extra"]["scaled"]["mean"]
    found = verdicts(rows)
    assert found.pop(name) is verdict
    assert set(found.values()) == {True}


@pytest.mark.parametrize(
    ("name", "measure"),
    [("tail", "pool 0 u_2"), ("tail", "pool 1 u_1"), ("tail", "difference u_1"), ("response", "response")],
)
def test_rows_of_large_systems_against_a_claim(
    measured: list[dict[str, Any]], name: str, measure: str
) -> None:
    rows = ideal(measured)
    largest = next(row for row in rows if row["point"].get("n") == 20 and row["point"]["c"] == 2)
    cell = (largest["measures"] if measure == "response" else largest["extra"])[measure]
    for end in ("mean", "low", "high"):
        cell[end] += 0.01
    assert [key for key, verdict in verdicts(rows).items() if verdict is False] == [name]


def test_a_value_that_misses_the_exact_one(measured: list[dict[str, Any]]) -> None:
    rows = ideal(measured)
    next(row for row in rows if row["extra"]["exact"] is not None)["extra"]["exact"] += 0.001
    assert verdicts(rows)["exact"] is False


def test_what_is_not_claimed_decides_nothing(measured: list[dict[str, Any]]) -> None:
    rows = ideal(measured)
    nothing = {"mean": None, "low": None, "high": None, "count": 8}
    for row in rows:
        row["stable"] = False
        row["measures"]["response"] = nothing
        for name, cell in row["extra"].items():
            if isinstance(cell, dict):
                row["extra"][name] = nothing
    assert set(verdicts(rows).values()) == {None}
    assert chen_ye.STUDY.figure(rows).axes


def test_short_runs_make_a_page_and_a_figure(measured: list[dict[str, Any]]) -> None:
    told = chen_ye.STUDY.sections(measured)
    assert all(len(row) == len(section.header) for section in told for row in section.table)
    assert len(chen_ye.STUDY.figure(measured).axes) == 3


def test_the_spread_is_that_of_the_queues(measured: list[dict[str, Any]]) -> None:
    """Two queues M/M/1 differ by as much as their mean, E|Q1 - Q2| = 2 rho / (1 - rho^2), in the long run."""
    scenario = Scenario(chen_ye.HEAVY[2], load=0.8)
    sizes = chen_ye.Sizes((2,), {0.8: 1000.0}, 0.0, {})
    row = chen_ye.heavy(Setup(command="test"), sizes, scenario, 1, 0)
    spread, work, rho = row["extra"]["spread"], row["extra"]["work spread"], 0.8
    assert spread["low"] < 2 * rho / (1 - rho**2) / (rho / (1 - rho)) < spread["high"]
    # The work of M/M/1 is 0, or with probability rho exponential of mean 1 / (1 - rho).
    apart = rho**2 + 2 * rho * (1 - rho)
    assert work["low"] < apart / (1 - rho) / (rho / (1 - rho)) < work["high"]
    assert row["extra"]["pool 0"]["low"] < 1 < row["extra"]["pool 0"]["high"]
    assert row["extra"]["scaled"]["low"] < row["extra"]["exact"] < row["extra"]["scaled"]["high"]


def test_the_power_of_the_last_step(measured: list[dict[str, Any]]) -> None:
    rows = ideal(measured)
    assert exponent(rows, "spread", 2, 3).mean == pytest.approx(1.0)
    assert exponent(rows, "work spread", 2, 3).mean == pytest.approx(0.5)
    assert exponent(rows, "spread", 2, 1).mean == pytest.approx(0.0)


def test_the_work_of_equal_queues_differs_by_chance() -> None:
    """Two sums of q exponential laws differ by E|X - Y| = 2 q C(2q, q) / 4^q, of an empty queue there is none."""
    generator = np.random.default_rng(3)
    drawn = [chen_ye.spreads(np.array([4, 4]), generator) for _ in range(20_000)]
    queues, work = np.mean(drawn, axis=0)
    assert queues == 0.0
    assert work == pytest.approx(8 * math.comb(8, 4) / 4**4, rel=0.03)
    assert chen_ye.spreads(np.array([0, 0]), generator) == [0.0, 0.0]


@pytest.mark.parametrize(("c", "response"), [(1, 3.333333), (2, 1.298242), (3, 1.053924), (5, 0.885945)])
def test_limits_of_the_response(measured: list[dict[str, Any]], c: int, response: float) -> None:
    row = next(row for row in measured if row["point"].get("n") == 10 and row["point"]["c"] == c)
    assert row["extra"]["limit response"] == pytest.approx(response, abs=5e-7)
    assert row["extra"]["limit u_2"] == pytest.approx(0.8 ** (1 + c))


def test_exact_values(measured: list[dict[str, Any]]) -> None:
    found = {(row["point"]["c"], row["point"]["load"]): row["extra"].get("exact") for row in measured}
    assert found[1, 0.96] == pytest.approx(2 * 0.96)
    assert found[2, 0.96] is None
    scenario = Scenario(chen_ye.HEAVY[2], arrival_rate=2.4)
    assert chen_ye.exact(scenario, 2, 0.8) == pytest.approx(0.2 * 5.314523, abs=1e-7)
