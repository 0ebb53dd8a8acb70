"""The leaderboard: tables, rows and pictures of short contests; refusals before anything runs; interruption."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from baselines import make
from baselines.leaderboard import run as leaderboard
from baselines.leaderboard.run import Args, default_policies, llm_gateway, plan_runs
from pull_env import Policy, Send, Trace, load_scenario, scenario_names, simulate
from pull_env.reporting import describe
from pull_env.reporting.rows import read_rows
from pull_env.simulation.results import Result
from pull_env.theory import predict

SHORT = ("--customers", "8000", "--warmup", "500", "--replications", "4")
AZURE = Path(__file__).parents[4] / "shared" / "traces" / "azure_llm_2023_code.csv"


def contest(folder: Path, *arguments: str) -> int:
    return leaderboard.main([*SHORT, "--out", str(folder), *arguments])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a contest that has unstable policies, policies that send nothing, and blocking."""
    folder = tmp_path_factory.mktemp("contest") / "out"
    scenarios = ("--scenario", "two-speeds", "finite-buffers")
    assert (
        contest(folder, *scenarios, "--policy", "random", "pull-weighted", "balanced(2)", "--seeds", "0", "4")
        == 0
    )
    return folder


# What comes out


def test_there_is_a_row_for_every_run(played: Path) -> None:
    rows = read_rows(played / "rows.jsonl")
    runs = [(row["scenario"]["name"], row["policy"]["name"], row["run"]["seed"]) for row in rows]
    policies = ("random", "pull-weighted", "balanced(2)")
    assert runs == [(s, p, k) for s in ("two-speeds", "finite-buffers") for p in policies for k in (0, 4)]
    assert all(row["command"].startswith("python -m baselines.leaderboard --customers 8000") for row in rows)
    assert [row["stable"] for row in rows[:3]] == [False, False, True]
    assert "NaN" not in (played / "rows.jsonl").read_text()


def test_a_row_is_what_simulate_gives(played: Path) -> None:
    measured = read_rows(played / "rows.jsonl")[2]["measures"]
    result = simulate("two-speeds", make("pull-weighted"), 8000, warmup=500, replications=4)
    assert measured == {name: value for name, value in result.to_dict().items() if name in measured}


def test_pictures_are_valid(played: Path) -> None:
    png, svg = played / "wait-messages.png", played / "wait-messages.svg"
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert ElementTree.parse(svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_tables_mark_and_place_unstable_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        contest(
            tmp_path / "out", "--scenario", "two-speeds", "--policy", "random", "balanced(2)", "pull-weighted"
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    first = next(k for k, line in enumerate(lines) if line[:1] == ["policy"])
    names = [line[0] for line in lines[first + 2 : first + 5]]
    assert names == ["pull-weighted", "balanced(2)", "random"]
    assert lines[first + 4][1:3] == ["unstable", "-"]
    assert set(lines[first + 4][2:]) == {"-"}
    assert "random is unstable: pool 1 (50 servers at rate 0.5) grows by" in out
    assert "P(block)" not in out  # nothing can be blocked here
    assert "8,064 customers over 4 replications, each after a warm-up of 500; seed 0" in out


def test_theory_and_the_bound_stand_beside_what_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = ("weighted", "jsq", "pull")
    assert contest(tmp_path / "out", "--scenario", "small-mixed", "--policy", *policies) == 0
    lines = capsys.readouterr()[0].splitlines()
    head = next(line for line in lines if line.strip().startswith("policy"))
    rows = {line.split()[0]: line for line in lines if line.split()[:1] and line.split()[0] in policies}
    assert head.count("theory") == 2  # of the wait and of P(block)
    known = predict(load_scenario("small-mixed"), make("weighted"))
    assert known is not None
    wait, p_block = (float(part.split()[-1]) for part in rows["weighted"].split(" exact")[:2])
    assert wait == pytest.approx(known["wait"].value, abs=0.005)
    assert p_block == pytest.approx(known["p_block"].value, abs=0.005)
    assert [rows[name].count(" exact") for name in policies] == [2, 0, 0]
    assert [rows[name].count(" limit") for name in policies] == [0, 0, 2]
    assert any(line.startswith("No policy has a P(block) below 0.0078") for line in lines)


# What is run


def test_everything_is_compared_unless_told_otherwise() -> None:
    runs = plan_runs(Args())
    assert {run.scenario.name for run in runs} == set(scenario_names())
    assert [run.policy for run in runs[: len(default_policies())]] == default_policies()
    assert {run.customers for run in runs} == {leaderboard.FULL_CUSTOMERS}


def test_quick_takes_three_scenarios_and_can_be_overruled() -> None:
    runs = plan_runs(Args(quick=True))
    assert {run.scenario.name for run in runs} == set(leaderboard.QUICK_SCENARIOS)
    assert {run.customers for run in runs} == {leaderboard.QUICK_CUSTOMERS}
    overruled = plan_runs(Args(quick=True, scenario=("hot-router",), customers=10))
    assert {(run.scenario.name, run.customers) for run in overruled} == {("hot-router", 10)}


def test_pull_is_unstable_on_two_speeds_at_the_length_of_quick() -> None:
    assert not simulate("two-speeds", make("pull"), leaderboard.QUICK_CUSTOMERS).stable


def test_importing_runs_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys, baselines.leaderboard.run; print('matplotlib' in sys.modules)",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert not list(tmp_path.iterdir())


# Refusals


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenario", "two-sped"], "'two-sped' is not a known scenario"),
        (["--policy", "pull", "nonsense"], "policy is 'nonsense': it must be one of"),
        (["--policy", "pull", "pull"], "policy holds pull twice"),
        (["--scenario", "two-speeds", "two-speeds"], "scenario holds two-speeds twice"),
        (["--seeds", "1", "1"], "seed holds 1 twice"),
        (["--seeds", "-1"], "seed is -1: it must be a whole number from 0"),
        (["--customers", "0"], "customers is 0: it must be a whole number from 1"),
        (["--seeds"], "seed is (): it must be a list of at least one item"),
        (["--trace", "none.csv"], "none.csv cannot be read"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leaderboard.main([*arguments, "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_policy_must_suit_all_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "third.toml"
    path.write_text('[[steps]]\nkind = "send"\npool = 2\n')
    assert contest(tmp_path / "out", "--scenario", "finite-buffers", "two-speeds", "--policy", str(path)) == 2
    assert "steps[0].pool is 2: two-speeds has pools 0 to 1" in capsys.readouterr().err


def test_rows_are_never_overwritten(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (played / "rows.jsonl").read_bytes()
    assert contest(played, "--scenario", "small-mixed", "--policy", "pull") == 2
    assert "holds rows.jsonl already" in capsys.readouterr().err
    assert (played / "rows.jsonl").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert contest(tmp_path / "file", "--scenario", "small-mixed", "--policy", "pull") == 2
    assert "File exists" in capsys.readouterr().err


def test_a_process_refuses_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "baselines.leaderboard", "--replications", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: replications is 0: it must be a whole number from 1\n"


# Interruption


def test_an_interrupted_contest_keeps_and_shows_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[object] = []

    def interrupted(*arguments: object, **options: object) -> Result:
        calls.append(arguments)
        if len(calls) == 5:  # the first compiles; two runs of pull, and one of random, are done
            raise KeyboardInterrupt
        return simulate(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(leaderboard, "simulate", interrupted)
    folder = tmp_path / "out"
    assert (
        contest(folder, "--scenario", "small-mixed", "--policy", "pull", "random", "--seeds", "0", "1") == 130
    )
    out = capsys.readouterr().out
    assert len(read_rows(folder / "rows.jsonl")) == 3
    assert (folder / "wait-messages.png").exists()
    assert "Interrupted: 3 of 4 runs were done" in out
    assert "\n pull " in out
    assert "\n random " not in out  # one of its seeds is missing


def test_a_contest_interrupted_at_once_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object, **options: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(leaderboard, "simulate", interrupted)
    assert contest(tmp_path / "out", "--scenario", "small-mixed") == 130
    out = capsys.readouterr().out
    assert "Interrupted: 0 of" in out
    assert "Written" not in out
    assert not any((tmp_path / "out").iterdir())


# Traces


def test_the_gateway_has_fast_and_slow_replicas() -> None:
    scenario = llm_gateway(Trace("requests.csv", "time", "size"))
    assert (scenario.name, scenario.servers, scenario.routers) == ("llm-gateway", 24, 4)
    assert scenario.nominal_load == 0.7
    assert {pool.rate for pool in scenario.pools} == {1.0, 2.0}


def test_a_trace_is_scored_by_all_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    arrivals = np.cumsum(generator.exponential(size=400))
    lines = [f"{time},{size}" for time, size in zip(arrivals, generator.exponential(size=400), strict=True)]
    (tmp_path / "requests.csv").write_text("\n".join(["when,work", *lines]))
    columns = ("--trace", str(tmp_path / "requests.csv"), "--time", "when", "--size", "work")
    assert leaderboard.main([*columns, "--replications", "3", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "llm-gateway: n = 24 servers" in out
    assert describe.TRACE_NOTE in " ".join(out.split())
    assert "unstable" not in out
    rows = read_rows(tmp_path / "out" / "rows.jsonl")
    assert [row["policy"]["name"] for row in rows] == [policy.name for policy in default_policies()]
    assert {row["run"]["customers"] for row in rows} == {3 * 384}  # whole batches of 12
    assert json.dumps(rows[0]["scenario"]["content"]["arrivals"]["time"]) == '"when"'


@pytest.mark.skipif(not AZURE.is_file(), reason="the Azure traces are not there")
def test_the_azure_trace_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--replications", "2", "--policy", "pull-weighted", "weighted", "--out", str(tmp_path / "out"))
    assert leaderboard.main(["--trace", str(AZURE), *options]) == 0
    out = capsys.readouterr().out
    assert out.index("\n pull-weighted") < out.index("\n weighted")


def test_policies_may_be_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[steps]]\nkind = "send"\nweights = "rate"\n')
    (run,) = plan_runs(
        Args(scenario=("small-mixed",), policy=(str(path),), customers=32, replications=1, warmup=0)
    )
    assert run.policy == Policy("mine", (Send(weights="rate"),))
    assert run.length == 32
