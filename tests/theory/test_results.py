"""The committed results against theory: no policy beats a bound, and exact values lie in their intervals."""

from pathlib import Path

import pytest

from baselines.rows import read_rows
from pull_env import Policy, Scenario
from pull_env.estimates import student
from pull_env.theory.prediction import lower_bounds, predict

ROWS = read_rows(Path(__file__).parents[2] / "baselines/results/rows.jsonl")
STABLE = [row for row in ROWS if row["stable"]]
MEASURES = ("wait", "response", "p_block", "p_wait", "mean_number")


def name(row):
    return f"{row['scenario']['name']} {row['policy']['name']}"


def half_width(measure, level):
    """The half-width of another level than the 95 % of a row."""
    return (
        (measure["high"] - measure["mean"])
        * student(level, measure["count"])
        / student(0.95, measure["count"])
    )


def test_all_presets_and_policies_are_there():
    assert len({row["scenario"]["name"] for row in ROWS}) == 8
    assert len({row["policy"]["name"] for row in ROWS}) == 18
    assert len(STABLE) > 100


@pytest.mark.parametrize("row", STABLE, ids=name)
def test_no_policy_beats_a_bound(row):
    for measure, known in lower_bounds(Scenario.from_dict(row["scenario"]["content"])).items():
        found = row["measures"][measure]
        assert found["mean"] + half_width(found, 0.999) >= known.value * (1 - 1e-12), measure


@pytest.mark.parametrize("row", STABLE, ids=name)
def test_exact_values_lie_in_their_intervals(row):
    """At 1 - 1e-4, as there are some fifty of them."""
    scenario = Scenario.from_dict(row["scenario"]["content"])
    known = predict(scenario, Policy.from_dict(row["policy"]["content"])) or {}
    for measure in MEASURES:
        if measure in known and known[measure].kind == "exact":
            found = row["measures"][measure]
            assert abs(found["mean"] - known[measure].value) <= half_width(found, 0.9999) + 1e-12, measure
