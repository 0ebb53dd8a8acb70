"""The benchmark: what it writes and prints, refusals, and that files are replaced whole or not at all."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pull_env import __main__ as cli
from pull_env.bench import run, subjects, timing

TINY = ("--policies", "pull", "jsq", "--sizes", "20", "40", "--cores", "1", "--seconds", "0.002")
FILES = ("bench.json", "bench.png")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the rows of a benchmark in which everything is measured, but shortly."""
    folder = tmp_path_factory.mktemp("bench") / "new"
    assert cli.main(["bench", "--quick", *TINY, "--out", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == list(FILES)
    found: list[dict[str, Any]] = json.loads((folder / "bench.json").read_text(), parse_constant=pytest.fail)
    return found


def few(self: run.Plan) -> Iterator[run.Task]:
    """Yield only what the picture needs."""
    for task in tasks(self):
        if task.func in (subjects.customers, subjects.by_cores):  # type: ignore[attr-defined]
            yield task


tasks = run.Plan.tasks


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.Plan, "tasks", few)


# What comes out


@pytest.mark.slow
def test_everything_is_measured_and_nothing_twice(rows: list[dict[str, Any]]) -> None:
    kinds = {row["run"]["kind"] for row in rows}
    assert kinds == {"policies", "cores", "routers", "envs", "starts", "memory", "peers"}
    keys = [(*map(str, row["run"].values()), str(row["scenario"]), row["machine"]["threads"]) for row in rows]
    assert len(keys) == len(set(keys))
    measured = [
        (row["policy"]["name"], row["scenario"]["content"]["pools"][0]["size"])
        for row in rows
        if row["run"]["kind"] == "policies"
    ]
    assert measured == [(name, size) for size in (10, 20) for name in ("pull", "jsq")]
    routers = [row["scenario"]["content"]["routers"] for row in rows if row["run"]["kind"] == "routers"]
    assert routers == [1, 10, 100, 1000]


@pytest.mark.slow
def test_a_row_says_with_what_and_where_it_was_measured(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["schema"] == 1
        assert row["package"].keys() == {"version", "commit", "clean"}
        assert row["command"].startswith("python ")
        assert {"python", "system", "processor", "cores", "threads"} == row["machine"].keys()
        assert {"numpy", "numba", "gymnasium"} <= row["versions"].keys()
        assert 0 < row["low"] <= row["median"] <= row["high"] < math.inf
        assert row["median"] == statistics.median(row["timings"])
        if row["run"]["kind"] in ("policies", "cores", "routers", "peers"):
            assert row["unit"] == "customers per second"
            assert len(row["policy"]["sha256"]) == len(row["scenario"]["sha256"]) == 64
    names = [row["run"]["name"] for row in rows if row["run"]["kind"] == "peers"]
    assert names[0] == "pull_env"
    assert f"SimPy {version('simpy')}" in names[1:]
    timed = [len(row["timings"]) for row in rows if row["run"]["kind"] in ("policies", "envs")]
    assert set(timed) == {timing.TIMINGS}


@pytest.mark.slow
def test_memory_is_that_of_the_servers(rows: list[dict[str, Any]]) -> None:
    of = {row["run"]["name"]: row["median"] for row in rows if row["run"]["kind"] == "memory"}
    grown = of["peak, n = 1,000,000"] - of["peak, next to no servers"]
    everything = 1e6 * (of["arrays, a server"] + 10 * of["arrays, a slot: a router and a server"])
    assert 1e6 * of["arrays, a server"] < grown < 1.5 * everything  # pages of slots never used are not taken


@pytest.mark.slow
def test_starts_take_longer_the_more_they_do(rows: list[dict[str, Any]]) -> None:
    python, imported, first = (row["low"] for row in rows if row["run"]["kind"] == "starts")
    assert python < imported < first


def test_tables_and_files(short: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", *TINY, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "ns per customer, one thread" in out
    assert "million customers per second, n = 20" in out
    assert "threads: 1" in out
    assert (tmp_path / "bench.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    row = json.loads((tmp_path / "bench.json").read_text())[0]
    in_table = next(line.split()[1] for line in out.splitlines() if line.startswith(" pull "))
    assert float(in_table.replace(",", "")) == pytest.approx(1e9 / row["median"], rel=0.01)


def test_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, numbers in ((1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8)), (None, (1,))):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert run.all_cores() == numbers


# Refusals


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policies", "pul"], "policy is 'pul': did you mean 'pull'?"),
        (["--policies", "jbt"], "policy is 'jbt': its argument r is missing"),
        (["--policies", "pull", "pull"], "policies holds pull twice"),
        (["--policies"], "policies is []: it must be a list of at least one item"),
        (["--sizes", "1"], "sizes[0] is 1: it must be a whole number from 2"),
        (["--sizes", "20", "20"], "sizes holds 20 twice"),
        (["--sizes"], "sizes is ()"),
        (["--cores", "0"], "cores[0] is 0: it must be a whole number from 1 to"),
        (["--cores", "100000"], "cores[0] is 100000: it must be a whole number from 1 to"),
        (["--seconds", "0"], "seconds is 0.0: it must be a positive finite number"),
        (["--seconds", "nan"], "seconds is nan: it must be a positive finite number"),
        (["--seconds", "inf"], "seconds is inf: it must be a positive finite number"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_policy_must_suit_the_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "third.toml"
    path.write_text('[[steps]]\nkind = "send"\npool = 2\n')
    assert cli.main(["bench", "--policies", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "steps[0].pool is 2" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["bench", *TINY, "--out", str(tmp_path / "file")]) == 2
    assert "File exists" in capsys.readouterr().err


# Interruption


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return a folder of earlier results."""
    for name in FILES:
        (tmp_path / name).write_text(f"earlier {name}")
    return tmp_path


def untouched(folder: Path) -> bool:
    return {path.name: path.read_text() for path in folder.iterdir()} == {
        name: f"earlier {name}" for name in FILES
    }


def stopped(error: BaseException) -> Callable[..., Any]:
    def stop(*arguments: object) -> None:
        raise error

    return stop


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (OSError("full"), 2)])
@pytest.mark.parametrize("place", [(subjects, "by_cores"), (run, "draw")], ids=["measure", "write"])
def test_earlier_files_stay_as_they_are(
    place: tuple[Any, str],
    error: BaseException,
    status: int,
    short: None,
    earlier: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if place[0] is subjects:
        monkeypatch.setattr(run.Plan, "tasks", lambda plan: iter([*few(plan), stopped(error)]))
    else:
        monkeypatch.setattr(*place, stopped(error))
    assert cli.main(["bench", *TINY, "--out", str(earlier)]) == status
    assert untouched(earlier)


def test_earlier_files_are_replaced_after_success(short: None, earlier: Path) -> None:
    assert cli.main(["bench", *TINY, "--out", str(earlier)]) == 0
    assert sorted(path.name for path in earlier.iterdir()) == list(FILES)
    assert not any(b"earlier" in (earlier / name).read_bytes() for name in FILES)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_an_interrupted_process_leaves_earlier_files(earlier: Path) -> None:
    command = [sys.executable, "-m", "pull_env", "bench", "--seconds", "60", "--out", str(earlier)]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # background jobs of a shell ignore it
    process = subprocess.Popen(
        command, text=True, preexec_fn=heed, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        time.sleep(4)  # past the imports, into the first timing
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert untouched(earlier)


def test_other_commands_do_not_load_the_benchmark(tmp_path: Path) -> None:
    code = "import sys, pull_env.__main__ as m; m.main(['scenarios']); print([n for n in sys.modules if '.bench.' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    loaded = set(json.loads(done.stdout.splitlines()[-1].replace("'", '"')))
    assert loaded <= {"pull_env.bench.timing"}  # which rows know
