"""Traces in Parquet and in Standard Workload Format, bad rows that are skipped, and whole runs of real ones."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import baselines
from pull_env import Empirical, Pool, Scenario, load_scenario, simulate
from pull_env.__main__ import main
from pull_env.scenario.scenario import ScenarioError, Trace
from pull_env.scenario.trace import read_trace, skipped_rows
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for

AZURE = Path(__file__).parents[3] / "shared/traces"

SWF = """; Version: 2.2
;Computer: a small one
  1  0   3  10  4 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1

  2  5   0   7  1 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1
  3  5   0  -1  1 -1 -1 4 60 -1 0 3 1 -1 1 -1 -1 -1
  4  25  0  20  1 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1
"""


def test_the_standard_workload_format(tmp_path):
    path = tmp_path / "cluster.swf"
    path.write_text(SWF)
    with pytest.raises(
        ScenarioError, match=r"cluster\.swf, line 6: run is '-1': it must be a positive finite"
    ):
        read_trace(Trace(str(path), "submit", "run"))
    trace = Trace(str(path), "submit", "run", bad_rows="skip")
    gaps, sizes = read_trace(trace)
    assert (gaps.tolist(), sizes.tolist(), skipped_rows(trace)) == ([0.0, 5.0, 20.0], [10.0, 7.0, 20.0], 1)
    assert read_trace(Trace(str(path), "submit", "processors")).sizes.tolist() == [4.0, 1.0, 1.0, 1.0]
    with pytest.raises(
        ScenarioError, match=r"cluster\.swf, line 1: 'runs' is not a column: did you mean 'run'\?"
    ):
        read_trace(Trace(str(path), "submit", "runs"))
    path.write_text(SWF + "5 26\n")
    with pytest.raises(ScenarioError, match=r"line 8: the row has 2 values: it must have 18, as the header"):
        read_trace(replace(trace, bad_rows=None))
    assert skipped_rows(trace) == 2
    path.write_text("; nothing\n")
    with pytest.raises(ScenarioError, match="has too few rows below its header, 0: it must have at least 2"):
        read_trace(trace)
    assert Empirical(str(path), "run")
    path.write_bytes(b"; \xff\n")
    with pytest.raises(ScenarioError, match="is not an SWF file in UTF-8"):
        read_trace(trace)


@pytest.mark.parametrize("numbers", [True, False], ids=["seconds", "timestamps"])
def test_parquet(numbers, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    seconds = np.array([0.0, 0.25, 4.0, 4.0])
    start = np.datetime64("2023-11-16 18:15:46.68", "ns")
    times = seconds if numbers else start + (seconds * 1e9).astype("timedelta64[ns]")
    path = tmp_path / "requests.parquet"
    parquet.write_table(pyarrow.table({"at": times, "name": list("abcd"), "work": [3, 1, 2, 5]}), path)
    gaps, sizes = read_trace(Trace(str(path), "at", "work"))
    assert (gaps.tolist(), sizes.tolist()) == ([0.0, 0.25, 3.75, 0.0], [3.0, 1.0, 2.0, 5.0])
    with pytest.raises(
        ScenarioError, match=r"\.parquet: 'size' is not a column: it must be one of at, name, work"
    ):
        read_trace(Trace(str(path), "at", "size"))
    with pytest.raises(
        ScenarioError, match=r"\.parquet, row 1: name is 'a': it must be a positive finite number"
    ):
        read_trace(Trace(str(path), "at", "name"))


def test_parquet_with_holes(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "requests.parquet"
    parquet.write_table(pyarrow.table({"at": [0.0, 1.0, None, 3.0], "work": [3, None, 2, 5]}), path)
    with pytest.raises(ScenarioError, match=r"\.parquet, row 3: at is 'nan': it must be a number"):
        read_trace(Trace(str(path), "at", "work"))
    trace = Trace(str(path), "at", "work", bad_rows="skip")
    assert (read_trace(trace).sizes.tolist(), skipped_rows(trace)) == ([3.0, 5.0], 2)


def test_what_is_no_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "requests.parquet"
    with pytest.raises(ScenarioError, match=r"requests\.parquet cannot be read: No such file"):
        read_trace(Trace(str(path), "at", "work"))
    path.write_text("at,work\n0,1\n")
    with pytest.raises(ScenarioError, match=r"requests\.parquet is not a Parquet file: "):
        read_trace(Trace(str(path), "at", "work"))


def test_parquet_without_its_library(tmp_path, monkeypatch):
    path = tmp_path / "requests.parquet"
    path.write_text("")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ScenarioError, match=r"requests\.parquet is a Parquet file, which needs: pip install pyarrow"
    ):
        read_trace(Trace(str(path), "at", "work"))


@pytest.mark.parametrize(
    ("rows", "sizes", "count"),
    [
        (["0,1", "1,2", "2,3"], [1, 2, 3], 0),
        (["noon,1", "1,2", "2,3"], [2, 3], 1),
        (["0,1", "1,0", "2,3"], [1, 3], 1),
        (["0,1", "1,2,3", "2", "2,3", "3,x"], [1, 3], 3),
        (["0,1", "5,2", "4,3", "nan,1", "6,4"], [1, 2, 4], 2),
        (["x,1", "2023-11-16 18:00:00,2", "2023-11-16,9", "2023-11-16 18:00:02,3"], [2, 3], 2),
        (["0,1", "99,-2", "1,2"], [1, 2], 1),  # a row that is left out holds nobody up
    ],
)
def test_bad_rows_are_counted_and_skipped(rows, sizes, count, tmp_path):
    path = tmp_path / "customers.csv"
    path.write_text("\n".join(["t,s", *rows]))
    trace = Trace(str(path), "t", "s", bad_rows="skip")
    assert (read_trace(trace).sizes.tolist(), skipped_rows(trace)) == (sizes, count)


def test_too_few_good_rows(tmp_path):
    path = tmp_path / "customers.csv"
    path.write_text("t,s\n0,1\nx,2\n")
    with pytest.raises(ScenarioError, match="has too few rows below its header, 1: it must have at least 2"):
        read_trace(Trace(str(path), "t", "s", bad_rows="skip"))


def test_the_command_line_tells_what_was_skipped(tmp_path, capsys):
    rows = "\n".join(f"{k},{1 + k % 3}" for k in range(100))
    (tmp_path / "customers.csv").write_text(f"t,s\n{rows}\nx,1\n")
    (tmp_path / "some.toml").write_text(
        "load = 0.5\npools = [{size = 3}]\n"
        "arrivals = {trace = 'customers.csv', time = 't', size = 's', bad_rows = 'skip'}"
    )
    assert main(["simulate", str(tmp_path / "some.toml"), "pull"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "customers.csv: 1." in out
    assert "Skipped rows of" in out
    assert "trace customers.csv, replayed once" in out


@pytest.mark.parametrize("name", ["conv", "code"])
def test_an_hour_of_a_language_model(name):
    """End to end, and an hour of the conversations within .2 s in the kernel."""
    path = AZURE / f"azure_llm_2023_{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    scenario = load_scenario("llm-gateway", trace=path)
    rows = len(read_trace(scenario.arrivals).gaps)
    for policy in map(baselines.make, ("pull-fastest", "lwl", "weighted")):
        simulator = Simulator(scenario, policy.steps, policy.announce, workload=workload_for(scenario))
        simulator.reset(0)
        started = time.process_time()
        assert simulator.run(encode(policy.steps, scenario), rows + 1) == rows
        assert time.process_time() - started < 0.2
        assert simulator.arrays.pools["accepted"].sum() == rows
    waits = [simulate(scenario, baselines.make(n), replications=2).wait.mean for n in ("weighted", "lwl")]
    assert waits[0] > 2 * waits[1]


def test_more_customers_than_recorded():
    """Blocks of the trace: the load is that of the scenario, and what is between neighbours stays."""
    path = AZURE / "azure_llm_2023_conv.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    once = load_scenario("llm-gateway", trace=path)
    blocks = replace(once, arrivals=replace(once.arrivals, block=500))
    result = simulate(blocks, baselines.make("weighted"), 400_000)
    assert result.customers >= 400_000
    assert result.busy[0].mean == pytest.approx(0.7, abs=0.02)
    single = Scenario((Pool(1),), load=0.3, arrivals=blocks.arrivals)
    assert simulate(single, baselines.make("random"), 100_000).stable
