"""The committed results against theory: no policy beats a bound, and exact values lie in their intervals."""

import math
from pathlib import Path

import pytest

from baselines.leaderboard.run import default_policies
from baselines.reproduce.run import STUDIES
from pull_env import Policy, Scenario, load_scenario
from pull_env.reporting.rows import read_rows
from pull_env.scenario.scenario import scenario_names
from pull_env.simulation.statistics import t_quantile
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
        * t_quantile(level, measure["count"])
        / t_quantile(0.95, measure["count"])
    )


def test_all_presets_and_policies_are_there():
    assert {row["scenario"]["name"] for row in ROWS} == set(scenario_names())
    names = {policy.name for policy in default_policies()} | {"tuned"}
    assert {row["policy"]["name"] for row in ROWS} == names
    assert len(STABLE) > 150


def test_rows_come_from_one_clean_commit_and_name_no_place_on_a_machine():
    assert len({row["package"]["commit"] for row in ROWS}) == 1
    assert all(row["package"]["clean"] for row in ROWS)
    commands = {row["command"] for row in ROWS + reproduced()}
    studies = {f"python -m baselines.reproduce {study}" for study in ("all", *STUDIES)}
    assert {command.split(" --")[0] for command in commands} <= {"python -m baselines.leaderboard", *studies}


def reproduced():
    """The rows of the four papers."""
    folder = Path(__file__).parents[2] / "baselines/reproduce/results"
    return [row for path in sorted(folder.glob("*.jsonl")) for row in read_rows(path)]


def test_bounds_are_known_on_all_presets():
    for preset in scenario_names():
        scenario = load_scenario(preset)
        known = {name: bound.value for name, bound in lower_bounds(scenario).items()}
        assert known["response"] >= 1 / max(pool.rate for pool in scenario.pools), preset
        assert all(math.isfinite(value) for value in known.values()), preset
    assert lower_bounds(load_scenario("slow-news"))["wait"].value > 0.0


@pytest.mark.parametrize("row", STABLE, ids=name)
def test_no_policy_beats_a_bound(row):
    holds_its_bounds(row)


def test_no_reproduction_beats_a_bound():
    rows = [row for row in reproduced() if row["stable"]]
    assert len(rows) > 300
    for row in rows:
        holds_its_bounds(row)


def holds_its_bounds(row):
    """At 1 - 1e-4, as there are hundreds of them, many at their bound; what was never seen may be rare."""
    unseen = -math.log(1e-4) / row["run"]["customers"]
    for measure, known in lower_bounds(Scenario.from_dict(row["scenario"]["content"])).items():
        found = row["measures"][measure]
        most = found["mean"] + half_width(found, 0.9999) if found["mean"] else unseen
        assert most >= known.value * (1 - 1e-12), (name(row), measure)


@pytest.mark.parametrize("row", STABLE, ids=name)
def test_exact_values_lie_in_their_intervals(row):
    """At 1 - 1e-4, as there are some fifty of them."""
    scenario = Scenario.from_dict(row["scenario"]["content"])
    known = predict(scenario, Policy.from_dict(row["policy"]["content"])) or {}
    for measure in MEASURES:
        if measure in known and known[measure].kind == "exact":
            found = row["measures"][measure]
            assert abs(found["mean"] - known[measure].value) <= half_width(found, 0.9999) + 1e-12, measure
