"""Training and scoring from the command line: what is saved, what is repeated, what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pull_env.reporting.rows import read_rows

ROOT = Path(__file__).parents[3]
SHORT = [
    "--steps",
    "400",
    "--envs",
    "2",
    "--n-steps",
    "64",
    "--episode-customers",
    "300",
    "--evaluations",
    "2",
    "--evaluation-customers",
    "4000",
    "--score-customers",
    "2000",
]


def run(*words):
    command = [sys.executable, "-m", "agents", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ppo"
    words = ["--scenario", "small-mixed", "--algo", "ppo", "--seed", "3", "--out", folder, *SHORT]
    done = run("train", *words)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_a_run_saves_model_configuration_and_scores(trained):
    folder, printed = trained
    configuration = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert configuration["scenario"] == "small-mixed"
    assert configuration["seed"] == 3
    assert configuration["scenario_content"]["routers"] == 2
    assert configuration["versions"]["stable-baselines3"]
    assert configuration["command"].startswith("python -m agents train --scenario small-mixed")
    rows = read_rows(folder / "scores.jsonl")
    names = [row["policy"]["name"] for row in rows]
    assert names[:2] == [f"{folder.name} (best action)", f"{folder.name} (sampled)"]
    assert {"pull-weighted", "balanced(2)"} <= set(names)
    assert rows[0]["policy"]["network"]["training_seed"] == 3
    assert len({row["run"]["seed"] for row in rows}) == 1  # all on the same streams
    assert {row["command"].split(" --")[0] for row in rows} == {"python -m agents train"}
    assert "above the best" in printed


@pytest.mark.slow
def test_a_score_is_repeated(trained):
    folder, _ = trained
    before = read_rows(folder / "scores.jsonl")
    done = run("score", folder, "--scenario", "small-mixed", "--customers", "2000")
    assert done.returncode == 0, done.stderr
    again = read_rows(folder / "scores.jsonl")[len(before) :]
    assert [row["measures"] for row in again] == [row["measures"] for row in before]
    assert [row["policy"] for row in again] == [row["policy"] for row in before]


@pytest.mark.slow
def test_a_router_is_refused_on_a_scenario_with_other_pools(trained):
    folder, _ = trained
    done = run("score", folder, "--scenario", "many-pools", "--customers", "1000")
    assert done.returncode == 2
    assert "fits scenarios with as many pools" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--scenario", "two-speds"], "did you mean 'two-speeds'?"),
        (["--steps", "0"], "steps is 0: it must be a whole number from 1"),
        (["--gamma", "1.5"], "gamma is 1.5: it must be a number from 0 to 1"),
        (["--learning-rate", "-1"], "learning_rate is -1.0: it must be a positive finite number"),
        (["--out", "."], "it exists already"),
    ],
)
def test_bad_arguments_of_training_are_one_sentence(call, words, sentence):
    status, _, refused = call("train", *words)
    assert status == 2
    assert sentence in refused
    assert len(refused.strip().splitlines()) == 1


def test_a_model_that_is_not_there(call):
    status, _, refused = call("score", "nowhere")
    assert status == 2
    assert refused == "error: model is 'nowhere': it must be a folder with best.zip and config.json\n"
