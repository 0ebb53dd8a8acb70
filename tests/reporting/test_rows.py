"""Rows: complete, comparable as text, never NaN, and never lost."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import pull_env
from baselines import make
from pull_env import load_scenario, simulate
from pull_env.reporting import rows
from pull_env.reporting.rows import Network, read_rows, row, to_line, write_rows

SCENARIO, POLICY = load_scenario("small-mixed"), make("balanced(2)")
ESTIMATE = {"mean", "low", "high", "count"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    result = simulate(SCENARIO, POLICY, 4000, seed=5, replications=4, warmup=100)
    return row(SCENARIO, POLICY, result, command="python test.py", workers=1)


def test_a_row_says_what_was_run(made: dict[str, Any]) -> None:
    assert made["command"] == "python test.py"
    assert made["scenario"] == {
        "name": "small-mixed",
        "version": 1,
        "content": SCENARIO.to_dict(),
        "sha256": SCENARIO.digest,
    }
    assert made["policy"] == {
        "name": "balanced(2)",
        "content": POLICY.to_dict(),
        "sha256": POLICY.digest,
        "network": None,
    }
    assert made["run"] == {"seed": 5, "warmup": 100, "customers": 4096, "replications": 4}
    assert abs(datetime.now(timezone.utc) - datetime.fromisoformat(made["time"])) < timedelta(minutes=5)


def test_a_row_holds_every_measure_as_an_interval(made: dict[str, Any]) -> None:
    measures = made["measures"]
    assert set(measures) == set(rows.MEASURES)
    single = [measures[name] for name in ("wait", "response", "p_wait", "p_block", "mean_number", "cost")]
    several = [*measures["busy"], *measures["messages"].values(), *measures["wait_quantiles"].values()]
    assert all(set(value) == ESTIMATE for value in single + several)
    assert measures["cost"]["low"] < measures["cost"]["mean"] < measures["cost"]["high"]
    assert made["stable"] is True
    assert len(made["growth"]) == 2


def test_a_row_says_where_and_with_what(made: dict[str, Any]) -> None:
    assert made["machine"].keys() == {"python", "system", "processor", "cores", "threads"}
    assert made["machine"]["threads"] == 1
    assert all(made["machine"].values())
    assert {"numpy", "numba", "gymnasium"} <= made["versions"].keys()
    assert made["package"]["version"] == pull_env.__version__
    rate = (4096 + 4 * 100) / made["speed"]["seconds"]
    assert made["speed"]["customers_per_second"] == pytest.approx(rate)


def test_heavy_packages_are_listed_only_where_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in rows.PACKAGES_IF_LOADED:
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert set(rows.versions()) == {"numpy", "numba", "gymnasium"}
    monkeypatch.setitem(sys.modules, "torch", math)
    monkeypatch.setattr(rows, "version", lambda package: f"version of {package}")
    assert rows.versions()["torch"] == "version of torch"


def test_a_network_is_named_by_its_weights_and_training_seed() -> None:
    result = simulate(SCENARIO, POLICY, 400, replications=2)
    made = row(SCENARIO, POLICY, result, command="", network=Network("ab" * 32, training_seed=7))
    assert made["policy"]["network"] == {"sha256": "ab" * 32, "training_seed": 7}


def test_an_unstable_run_claims_no_mean() -> None:
    scenario = load_scenario("two-speeds")
    result = simulate(scenario, make("random"), 20_000, warmup=0, replications=4)
    made = json.loads(to_line(row(scenario, make("random"), result, command="")))
    assert made["stable"] is False
    assert made["measures"]["wait"] == {"mean": None, "low": None, "high": None, "count": 4}
    assert made["growth"][1] > 1


def test_a_line_is_sorted_and_never_nan() -> None:
    line = to_line({"b": math.nan, "a": [math.inf, 1.5, {"d": (-math.inf, True), "c": None}]})
    assert line == '{"a": [null, 1.5, {"c": null, "d": [null, true]}], "b": null}'


# Files


def test_rows_come_back_as_they_were_written(tmp_path: Path, made: dict[str, Any]) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    write_rows(path, [made])
    write_rows(path, [made, made])
    assert read_rows(path) == [made] * 3
    assert path.read_text() == (to_line(made) + "\n") * 3


def test_a_row_that_cannot_be_written_leaves_the_file_alone(tmp_path: Path, made: dict[str, Any]) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [made])
    with pytest.raises(TypeError):
        write_rows(path, [made, {"bad": object()}])
    assert read_rows(path) == [made]


def test_half_a_line_does_not_spoil_the_next(tmp_path: Path, made: dict[str, Any]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"schema": 1, "ti')  # a run that was killed
    write_rows(path, [made])
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 1: not valid JSON"):
        read_rows(path)
    assert json.loads(path.read_text().splitlines()[1]) == made


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 3: not valid JSON"),
        ("[1]", "line 3: a row is a JSON object"),
        ('{"schema": 99}', "line 3: schema is 99: this version reads 1"),
        ("{}", "line 3: schema is None"),
    ],
)
def test_a_bad_line_is_named(line: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"schema": 1}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=f"rows.jsonl, {sentence}"):
        read_rows(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.jsonl cannot be read: No such file"):
        read_rows(tmp_path / "none.jsonl")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"rows\.jsonl is not a file of rows"):
        read_rows(tmp_path / "rows.jsonl")


# The checkout


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, "-C", str(folder), *arguments], check=True, capture_output=True)


def test_commit_and_cleanliness_of_a_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    assert rows.checkout.__wrapped__(folder) == {"commit": None, "clean": None}
    git(folder, "init")
    (folder / "file").write_text("1")
    git(folder, "add", "file")
    git(folder, "commit", "-m", "first")
    clean = rows.checkout.__wrapped__(folder)
    assert clean["clean"] is True
    assert len(str(clean["commit"])) == 40
    (folder / "file").write_text("2")
    assert rows.checkout.__wrapped__(folder) == {**clean, "clean": False}
    (folder / "inside").mkdir()
    assert rows.checkout.__wrapped__(folder / "inside") == {"commit": None, "clean": None}


def test_without_git_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert rows.checkout.__wrapped__(tmp_path) == {"commit": None, "clean": None}
