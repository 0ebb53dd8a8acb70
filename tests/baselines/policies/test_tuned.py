"""The committed winners: one for every preset, found as they say, and where they are used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from baselines import tuned
from baselines.leaderboard import run as leaderboard
from baselines.leaderboard.run import Args, plan_runs
from baselines.policies.tuned import TUNED, tuned_names
from pull_env import Prices, load_scenario, scenario_names, simulate
from pull_env.__main__ import main
from pull_env.scenario.files import read_toml

PRESETS = pytest.mark.parametrize("name", scenario_names())


def about(name: str) -> dict[str, Any]:
    """Return what the file of a winner says of it."""
    found: dict[str, Any] = read_toml(TUNED / f"{name}.toml", ValueError)["about"]
    return found


def test_there_is_one_for_every_preset() -> None:
    assert tuned_names() == scenario_names()


@PRESETS
def test_it_was_found_for_the_preset_as_it_is(name: str) -> None:
    policy, found = tuned(load_scenario(name)), about(name)
    assert policy is not None
    assert policy.name == "tuned"
    assert found["package"]["clean"]
    assert found["command"].startswith("python -m baselines.tune --scenario ")
    assert "/" not in found["command"]
    assert found["run"]["customers"] >= 4_000_000
    assert found["cost"]["low"] < found["cost"]["mean"] < found["cost"]["high"]


def test_it_costs_what_it_says() -> None:
    found, policy = about("small-mixed"), tuned(load_scenario("small-mixed"))
    assert policy is not None
    run, seed = found["run"], found["search"]["seeds"]["report"]
    result = simulate("small-mixed", policy, run["customers"], seed=seed, replications=run["replications"])
    assert result.cost.to_dict() == found["cost"]


def test_there_is_none_for_other_numbers() -> None:
    scenario = load_scenario("two-speeds")
    assert tuned(replace(scenario, prices=Prices(message=0.06))) is None
    assert tuned(replace(scenario, name="mine")) is None


def test_the_leaderboard_takes_that_of_each_scenario() -> None:
    runs = plan_runs(Args())
    chosen = {run.scenario.name: run.policy for run in runs if run.policy.name == "tuned"}
    assert chosen == {name: tuned(load_scenario(name)) for name in scenario_names()}
    asked = plan_runs(Args(scenario=("two-speeds", "hot-router"), policy=("pull", "tuned")))
    assert [run.policy for run in asked[1::2]] == [tuned(run.scenario) for run in asked[1::2]]


def test_the_leaderboard_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ("--customers", "8000", "--warmup", "500", "--replications", "4", "--out", str(tmp_path / "out"))
    names = ("--scenario", "small-mixed", "finite-buffers", "--policy", "tuned", "pull")
    assert leaderboard.main([*short, *names]) == 0
    assert capsys.readouterr().out.count("\n tuned ") == 2


def test_a_scenario_without_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("load = 0.5\n[[pools]]\nsize = 2\n")
    assert main(["simulate", str(path), "tuned"]) == 2
    err = capsys.readouterr().err
    assert "none was tuned for this mine, only for the presets batches, bursty" in err
    assert "python -m baselines.tune makes one" in err
    assert err.count("\n") == 1


def test_the_command_line_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "small-mixed", "tuned", "--customers", "20000"]) == 0
    assert "tuned on small-mixed" in capsys.readouterr().out
