"""Tuning: what is written and reported, interruption and refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from baselines.tune import race as racing
from baselines.tune import run as tune
from baselines.tune.race import PURPOSES, Log, Plan
from pull_env import Policy, Scenario, load_policy, load_scenario, simulate
from pull_env.reporting.rows import read_rows
from pull_env.scenario.files import read_toml
from pull_env.simulation.progress import Report
from pull_env.simulation.results import Result

TINY = Plan(
    trials=24, shortest=1024, rungs=(1, 4), finalists=2, chosen_by=4096, reported=4096, replications=4
)


def ignore(done: int) -> None:
    """Report no progress."""


REPORT: Report = ignore


def tuned(folder: Path, *arguments: str, scenarios: tuple[str, ...] = ("small-mixed",)) -> int:
    words = ["--quick", "--workers", "1", "--scenario", *scenarios, "--out", str(folder), *arguments]
    return tune.main(words, TINY)


def calls_of(monkeypatch: pytest.MonkeyPatch, stop_at: int | None = None) -> list[Policy]:
    """Return the policies that are simulated in a race from now on, of which one may be interrupted."""
    calls: list[Policy] = []

    def counted(scenario: Scenario, policy: Policy, *arguments: Any, **options: Any) -> Result:
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(policy)
        return simulate(scenario, policy, *arguments, **options)

    monkeypatch.setattr(racing, "simulate", counted)
    return calls


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a search that was not disturbed."""
    folder = tmp_path_factory.mktemp("tune") / "out"
    assert tuned(folder) == 0
    return folder


# What comes out


def test_the_winner_is_a_policy_file_that_says_how_it_was_found(found: Path) -> None:
    policy = load_policy(found / "small-mixed.toml")
    assert policy.name == "tuned"
    about = read_toml(found / "small-mixed.toml", ValueError)["about"]
    assert about["command"].startswith("python -m baselines.tune --quick")
    assert about["scenario"]["sha256"] == load_scenario("small-mixed").digest
    assert {"numpy", "numba", "optuna"} <= set(about["versions"])
    assert len(set(about["search"]["seeds"].values())) == len(PURPOSES)
    assert about["search"]["candidates"] == 24


def test_the_cost_that_is_reported_is_that_of_customers_not_met_before(found: Path) -> None:
    about = read_toml(found / "small-mixed.toml", ValueError)["about"]
    policy, seed = load_policy(found / "small-mixed.toml"), about["search"]["seeds"]["report"]
    result = simulate("small-mixed", policy, TINY.reported, seed=seed, replications=4)
    assert about["cost"] == result.cost.to_dict()
    assert about["messages"] == result.messages["total"].to_dict()
    rows = read_rows(found / "small-mixed.jsonl")[1:]
    assert {row["run"]["purpose"] for row in rows} == {"search", "choose"}
    assert seed not in {row["run"]["seed"] for row in rows}


def test_many_run_short_and_few_run_long(found: Path) -> None:
    head, *rows = read_rows(found / "small-mixed.jsonl")
    assert head["plan"]["rungs"] == [1, 4]
    assert head["scenario"]["name"] == "small-mixed"
    runs = [(row["run"]["purpose"], row["run"]["customers"]) for row in rows]
    assert runs.count(("search", 1024)) > 2 * runs.count(("search", 4096)) > 0
    assert runs.count(("choose", 4096)) == 2
    assert len({(row["policy"]["sha256"], *run) for row, run in zip(rows, runs, strict=True)}) == len(rows)


def test_the_winner_is_the_finalist_of_least_cost(found: Path) -> None:
    rows = read_rows(found / "small-mixed.jsonl")[1:]
    finalists = [row for row in rows if row["run"]["purpose"] == "choose"]
    best = min(finalists, key=lambda row: sum(row["cost"]))
    assert load_policy(found / "small-mixed.toml").digest == best["policy"]["sha256"]


def test_all_candidates_meet_the_same_customers(found: Path, tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl", load_scenario("small-mixed"), TINY, 0, 1)
    row = read_rows(found / "small-mixed.jsonl")[1]
    policy = Policy.from_dict(row["policy"]["content"])
    direct = simulate("small-mixed", policy, 1024, seed=log.seeds["search"], replications=4, warmup=128)
    assert row["cost"] == list(direct.cost.samples)


# Interruption


def test_an_interrupted_search_goes_on_to_where_it_would_have_come(
    found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = read_rows(found / "small-mixed.jsonl")
    calls = calls_of(monkeypatch, stop_at=9)
    assert tuned(tmp_path) == 130
    assert "keeps the measurements" in capsys.readouterr().out
    assert len(calls) == 9
    assert not (tmp_path / "small-mixed.toml").exists()
    later = calls_of(monkeypatch)
    assert tuned(tmp_path) == 0
    rows = read_rows(tmp_path / "small-mixed.jsonl")
    assert len(later) == len(whole) - 1 - 9
    assert [(row["policy"], row["run"], row["cost"]) for row in rows[1:]] == [
        (row["policy"], row["run"], row["cost"]) for row in whole[1:]
    ]
    assert load_policy(tmp_path / "small-mixed.toml") == load_policy(found / "small-mixed.toml")


def test_a_process_killed_within_a_line_loses_that_line_only(found: Path, tmp_path: Path) -> None:
    whole = (found / "small-mixed.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "small-mixed.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:40])
    assert tuned(tmp_path) == 0
    rows = read_rows(tmp_path / "small-mixed.jsonl")
    assert len(rows) == len(lines)
    assert load_policy(tmp_path / "small-mixed.toml") == load_policy(found / "small-mixed.toml")


def test_of_several_scenarios_those_that_are_done_stay(found: Path, tmp_path: Path) -> None:
    for name in ("small-mixed.jsonl", "small-mixed.toml"):
        (tmp_path / name).write_bytes((found / name).read_bytes())
    before = (tmp_path / "small-mixed.toml").read_bytes()
    path = tmp_path / "scenarios" / "mine.toml"
    path.parent.mkdir()
    path.write_text("load = 0.5\nrouters = 2\n[[pools]]\nsize = 3\n")
    assert tuned(tmp_path, scenarios=("small-mixed", str(path))) == 0
    assert (tmp_path / "small-mixed.toml").read_bytes() == before
    assert load_policy(tmp_path / "mine.toml").name == "tuned"


# Refusals


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--scenario", "two-sped"), "'two-sped' is not a known scenario"),
        (("--scenario", "small-mixed", "small-mixed"), "scenario holds small-mixed twice"),
        (("--trials", "0"), "trials is 0: it must be a whole number from 1"),
        (("--seed", "-1"), "seed is -1: it must be a whole number from 0"),
        (("--workers", "0"), "workers is 0: it must be a whole number from 1"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([*arguments, "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("with_log", [True, False])
def test_a_winner_is_never_overwritten(
    with_log: bool, found: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("small-mixed.toml", "small-mixed.jsonl")[: 1 + with_log]:
        (tmp_path / name).write_bytes((found / name).read_bytes())
    before = (tmp_path / "small-mixed.toml").read_bytes()
    assert tuned(tmp_path) == 2
    assert "small-mixed.toml is there already" in capsys.readouterr().err
    assert (tmp_path / "small-mixed.toml").read_bytes() == before


def test_measurements_of_something_else_are_not_mixed(
    found: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small-mixed.jsonl").write_bytes((found / "small-mixed.jsonl").read_bytes())
    assert tuned(tmp_path, "--seed", "1") == 2
    assert "is of another scenario, plan or seed" in capsys.readouterr().err
    lines = (found / "small-mixed.jsonl").read_text().splitlines()
    other = lines[0].replace('"commit": "', '"commit": "0')
    (tmp_path / "small-mixed.jsonl").write_text("\n".join([other, *lines[1:]]))
    if other != lines[0]:  # in a checkout
        assert tuned(tmp_path) == 2
        assert "was measured by another version" in capsys.readouterr().err


def test_a_trace_that_ends_cannot_be_tuned_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "requests.csv").write_text("time,size\n0,1\n1,1\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        'load = 0.5\n[[pools]]\nsize = 2\n[arrivals]\ntrace = "requests.csv"\ntime = "time"\nsize = "size"\n'
    )
    assert tune.main(["--scenario", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "mine replays a trace once: to tune, set arrivals.block" in capsys.readouterr().err


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert tuned(tmp_path) == 2
    assert capsys.readouterr().err == "error: optuna is missing: pip install 'pull-env[tune]'\n"
