"""The command line: what it prints, that JSON stays JSON, and one sentence with status 2 for every bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import pull_env
from baselines import POLICIES, make
from pull_env import __main__ as cli
from pull_env.policy.lookup import as_policy

SHORT = ("--customers", "4000", "--replications", "4")
POLICY = """
announce = { threshold = 1 }
[[steps]]
kind = "take"
[[steps]]
kind = "send"
weights = "rate"
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, as users do."""
    command = [sys.executable, "-m", "pull_env", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_simulate_prints_every_measure_with_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "finite-buffers", "balanced(2)", "--seed", "3", *SHORT]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = {line.strip().split("  ")[0] for line in out.splitlines()}
    measures = {
        "cost",
        "wait",
        "response",
        "P(wait)",
        "P(block)",
        "E[N]",
        "messages",
        "pull",
        "probe",
        "remove",
    }
    assert measures | {"50 % quantile", "99.9 % quantile", "busy, pool 0", "busy, pool 2"} <= rows
    assert re.search(
        r"4,096 customers over 4 replications, each after a warm-up of 701; seed 3; [\d.]+ s", out
    )
    assert "balanced(2) on finite-buffers" in out
    result = pull_env.simulate("finite-buffers", make("balanced(2)"), 4000, seed=3, replications=4)
    assert f"{result.cost.low:.2f} to {result.cost.high:.2f}" in out


def test_an_unstable_run_names_the_pool_and_claims_no_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "two-speeds", "random", "--warmup", "1000", "--customers", "20000"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^Unstable: pool 1 \(50 servers at rate 0.5\) grows by \d+(\.\d+)? customers per time unit; no mean",
        out,
        re.M,
    )
    assert "wait " not in out


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "small-mixed", "pull", "--json", *SHORT]) == 0
    out = capsys.readouterr().out
    content = json.loads(out, parse_constant=refuse)
    assert out == json.dumps(content, sort_keys=True) + "\n"
    assert content.keys() == {"scenario", "policy", "result"}
    assert content["scenario"] == pull_env.load_scenario("small-mixed").to_dict()
    assert content["policy"] == make("pull").to_dict()
    result = pull_env.simulate("small-mixed", make("pull"), 4000, replications=4).to_dict()
    assert {**content["result"], "seconds": 0.0} == {**result, "seconds": 0.0}


def test_json_of_an_unstable_run_has_null_for_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "two-speeds", "random", "--json", "--warmup", "0", *SHORT]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert content["result"]["stable"] is False
    assert content["result"]["cost"]["mean"] is None


def test_scenarios_and_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["scenarios"]) == cli.main(["policies"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in (*pull_env.scenario_names(), "llm-gateway"))
    assert all(f" {entry.usage} " in out for entry in POLICIES.values())


def test_a_policy_may_be_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine [x].toml"  # brackets are markup to rich, and must not be taken for it
    path.write_text(POLICY)
    assert as_policy(str(path)).steps == make("pull-weighted").steps
    assert cli.main(["simulate", "small-mixed", str(path), *SHORT]) == 0
    assert "mine [x] on small-mixed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["two-sped", "pull"], "'two-sped' is not a known scenario: did you mean 'two-speeds'?"),
        (["two-speeds", "pul"], "policy is 'pul': did you mean 'pull'?"),
        (["two-speeds", "jbt"], "policy is 'jbt': its argument r is missing"),
        (["llm-gateway", "pull"], "llm-gateway replays a trace that you provide: "),
        (
            ["llm-gateway", "pull", "--trace", "no.csv"],
            f"{os.path.abspath('no.csv')} cannot be read: No such",
        ),
        (["two-speeds", "missing.toml"], "policy file 'missing.toml' cannot be read"),
        (["two-speeds", "pull", "--customers", "0"], "customers is 0: it must be a whole number from 1"),
        (["two-speeds", "pull", "--seed", "-1"], "seed is -1: it must be a whole number from 0"),
        (["two-speeds", "pull", "--workers", "0"], "workers is 0: it must be a whole number from 1"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["simulate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["simulat"], ["simulate", "two-speeds"], ["simulate", "a", "b", "--c"]]
)
def test_usage_errors_have_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [[], ["simulate"], ["scenarios"], ["policies"]])
def test_help_suffices(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([*command, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "usage: python -m pull_env" in out
    if not command:
        assert 'python -m pull_env simulate two-speeds "balanced(2)"' in out


def test_a_process_refuses_without_a_traceback() -> None:
    done = run("simulate", "two-speeds", "pull", "--replications", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: replications is 0: it must be a whole number from 1\n"


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_an_interrupted_process_returns_130() -> None:
    command = [
        sys.executable,
        "-m",
        "pull_env",
        "simulate",
        "small-mixed",
        "jsq",
        "--customers",
        "10000000000",
    ]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # background jobs of a shell ignore it
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, preexec_fn=heed, **pipes)
    try:
        time.sleep(4)  # past the imports, into the run
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="pipes are POSIX")
def test_a_closed_pipe_is_no_error() -> None:
    script = f"{sys.executable} -m pull_env policies | true"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")
