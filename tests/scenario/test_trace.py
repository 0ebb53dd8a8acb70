"""Traces: exact gaps and sizes, scaling, the cache, bad files and rows, and real traces."""

from __future__ import annotations

import os
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baselines
from pull_env import load_scenario, simulate
from pull_env.__main__ import main
from pull_env.scenario import trace as module
from pull_env.scenario.scenario import Pool, Scenario, ScenarioError, Trace
from pull_env.scenario.trace import read_trace, scaled_trace, skipped_rows
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for

AZURE = Path(__file__).parents[3] / "shared/traces"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "customers.csv"


def written(path: Path, *lines: str) -> Trace:
    path.write_text("\n".join(lines), encoding="utf-8")
    return Trace(str(path), "time", "size")


def test_times_as_numbers(path: Path) -> None:
    gaps, sizes = read_trace(written(path, "time,size", "10,3", "10.5,1", "10.5,0.25", "12e0,7"))
    np.testing.assert_array_equal(gaps, [0.0, 0.5, 0.0, 1.5])
    np.testing.assert_array_equal(sizes, [3.0, 1.0, 0.25, 7.0])
    assert gaps.dtype == sizes.dtype == np.float64


def test_times_as_timestamps_keep_seven_decimals(path: Path) -> None:
    gaps, _ = read_trace(
        written(
            path,
            "time,size",
            "2023-11-16 23:59:59.6805900,1",
            "2023-11-16 23:59:59.6805901,1",
            "2023-11-17T00:00:01.6805901,1",
            "2023-11-17 00:01:01.6805901Z,1",
            "2023-11-17 00:01:02.6805901+00:00,1",
        )
    )
    np.testing.assert_array_equal(gaps, [0.0, 1e-7, 2.0, 60.0, 1.0])


def test_days_are_timestamps_too(path: Path) -> None:
    gaps, _ = read_trace(written(path, "time,size", "2024-02-28,1", "2024-03-01,1"))
    np.testing.assert_array_equal(gaps, [0.0, 2 * 86400.0])


def test_columns_are_found_by_name_between_others(path: Path) -> None:
    path.write_bytes(
        b'\xef\xbb\xbfcity, work ,"at, UTC"\r\n\r\n"New\r\nYork",2,1\r\n\r\nRome, 4 , 3 \r\n'
    )  # byte order mark, Windows line ends, blank lines, quotes, spaces
    gaps, sizes = read_trace(Trace(str(path), "at, UTC", "work"))
    assert (gaps.tolist(), sizes.tolist()) == ([0.0, 2.0], [2.0, 4.0])


def test_arrays_are_read_only(path: Path) -> None:
    trace = written(path, "time,size", "0,1", "1,1")
    for array in (*read_trace(trace), *scaled_trace(Scenario((Pool(1),), load=0.5, arrivals=trace))):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


rows_of_nanoseconds_and_sizes = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**50)), min_size=1)


@given(rows_of_nanoseconds_and_sizes)
def test_any_gaps_and_sizes_come_back(rows: list[tuple[int, int]]) -> None:
    rows = [(0, 1), *rows, (1, 1)]
    gaps, sizes = np.array(rows, dtype=np.int64).T
    stamps = np.datetime64("2020-01-01", "ns") + np.cumsum(gaps).astype("timedelta64[ns]")
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{stamp},{size}" for stamp, size in zip(stamps, sizes, strict=True)]
        arrivals = read_trace(written(Path(folder) / "customers.csv", "time,size", *lines))
    np.testing.assert_array_equal(arrivals.gaps, gaps / 1e9)
    np.testing.assert_array_equal(arrivals.sizes, sizes)


def test_scaled_to_the_arrival_rate_and_mean_size_one(path: Path) -> None:
    trace = written(path, "time,size", "0,1", "1,2", "4,3")
    scenario = Scenario((Pool(2, rate=2.0),), load=0.5, arrivals=trace)
    gaps, sizes = scaled_trace(scenario)  # 2 arrivals in 4 seconds become 2 customers per unit of time
    np.testing.assert_allclose(gaps, [0.0, 0.25, 0.75], rtol=1e-15)
    np.testing.assert_array_equal(sizes, [0.5, 1.0, 1.5])


@pytest.mark.parametrize("rate", [0.01, 3.0, 1e4])
def test_the_mean_rate_is_the_scenarios(rate: float, path: Path) -> None:
    trace = written(
        path, "time,size", "2023-11-16 18:15:46.68,1", "2023-11-16 18:15:50.9,8", "2023-11-16 19:00:00,2"
    )
    gaps, sizes = scaled_trace(Scenario((Pool(1),), arrival_rate=rate, arrivals=trace))
    assert gaps[0] == 0.0
    assert 2 / gaps.sum() == pytest.approx(rate, rel=1e-14)
    assert sizes.mean() == pytest.approx(1.0, rel=1e-15)


def test_a_scenario_without_a_trace() -> None:
    with pytest.raises(ScenarioError, match=r"^arrivals is None: it must be a Trace$"):
        scaled_trace(Scenario((Pool(1),), load=0.5))


def test_a_file_is_parsed_once_until_it_changes(path: Path) -> None:
    trace = written(path, "time,size,other", "0,1,5", "1,2,6")
    first = read_trace(trace)
    assert read_trace(trace) is first
    assert read_trace(Trace(trace.trace, "time", "other")).sizes.tolist() == [5.0, 6.0]
    written(path, "time,size,other", "0,1,5", "2,2,6")
    os.utime(path, ns=(1, 1))  # same size: only the time of the change tells
    assert read_trace(trace).gaps.tolist() == [0.0, 2.0]


def test_a_relative_path_follows_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, end in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "customers.csv", "time,size", "0,1", f"{end},1")
        os.utime(tmp_path / name / "customers.csv", ns=(1, 1))
    for name, end in (("a", 1), ("b", 2)):
        monkeypatch.chdir(tmp_path / name)
        assert read_trace(Trace("customers.csv", "time", "size")).gaps[1] == end


NUMBER = "it must be a positive finite number"


TIME = re.escape(f"it must be {module.TIMES_ALLOWED}")


EARLIER = "it must be no earlier than in the row before"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], " is empty: it must have a header and at least 2 rows"),
        (["", ""], " is empty: it must have a header and at least 2 rows"),
        (["time,size"], " has too few rows below its header, 0: it must have at least 2"),
        (["time,size", "0,1"], " has too few rows below its header, 1: it must have at least 2"),
        (
            ["Time,size", "0,1", "1,1"],
            r", line 1: 'time' is not a column: did you mean 'Time'\? It must be one of Time, size",
        ),
        (
            ["", "time,sizes", "0,1"],
            r", line 2: 'size' is not a column: did you mean 'sizes'\? It must be one of time, sizes",
        ),
        (["time,size", "0,1", "", "1"], ", line 4: the row has 1 values: it must have 2, as the header"),
        (["time,size", "0,1", "1,1,000"], ", line 3: the row has 3 values: it must have 2, as the header"),
        (["time,size", "noon,1", "1,1"], f", line 2: time is 'noon': {TIME}"),
        (["time,size", "nan,1", "1,1"], f", line 2: time is 'nan': {TIME}"),
        (["time,size", "NaT,1", "1,1"], f", line 2: time is 'NaT': {TIME}"),
        (["time,size", "now,1", "1,1"], f", line 2: time is 'now': {TIME}"),
        (["time,size", "inf,1", "1,1"], f", line 2: time is 'inf': {TIME}"),
        (["time,size", "0,1", ",1"], f", line 3: time is '': {TIME}"),
        (["time,size", "0,1", "2023-11-16,1"], f", line 3: time is '2023-11-16': {TIME}"),
        (["time,size", "2023-11-16,1", "5,1"], f", line 3: time is '5': {TIME}"),
        (["time,size", "2023-11-16,1", "2023-13-01,1"], f", line 3: time is '2023-13-01': {TIME}"),
        (["time,size", "2023-11-16,1", "3000-01-01,1"], f", line 3: time is '3000-01-01': {TIME}"),
        (
            ["time,size", "2023-11-16 18:00:00+02:00,1", "1,1"],
            rf", line 2: time is '2023-11-16 18:00:00\+02:00': {TIME}",
        ),
        (["time,size", "0,1", "2,1", "1.5,1"], f", line 4: time is '1.5': {EARLIER}"),
        (
            ["time,size", "2023-11-16 18:00:00.0000001,1", "2023-11-16 18:00:00,1"],
            f", line 3: time is '2023-11-16 18:00:00': {EARLIER}",
        ),
        (["time,size", "7,1", "7,2"], ": time is '7' in every row: time must pass"),
        (["time,size", "0,1", "1,big"], f", line 3: size is 'big': {NUMBER}"),
        (["time,size", "0,1", "1,"], f", line 3: size is '': {NUMBER}"),
        (["time,size", "0,0", "1,1"], f", line 2: size is '0': {NUMBER}"),
        (["time,size", "0,1", "1,-2"], f", line 3: size is '-2': {NUMBER}"),
        (["time,size", "0,1", "1,nan"], f", line 3: size is 'nan': {NUMBER}"),
        (["time,size", "0,1", "1,inf"], f", line 3: size is 'inf': {NUMBER}"),
    ],
)
def test_a_bad_file(lines: list[str], sentence: str, path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"^{re.escape(str(path))}{sentence}$"):
        read_trace(written(path, *lines))


def test_the_line_is_that_of_the_file_where_rows_span_lines(path: Path) -> None:
    trace = written(path, "note,time,size", '"a', 'b",0,1', "", "c,1,x")
    with pytest.raises(ScenarioError, match=r", line 5: size is 'x'"):
        read_trace(trace)


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=f"^{re.escape(str(path))} cannot be read: No such file or directory$"
    ):
        read_trace(Trace(str(path), "time", "size"))


def test_a_file_that_is_not_text(path: Path) -> None:
    path.write_bytes(b"time,size\n0,\xff\n1,1\n")
    with pytest.raises(ScenarioError, match=r"customers\.csv is not a CSV file in UTF-8: .*0xff"):
        read_trace(Trace(str(path), "time", "size"))


@pytest.mark.parametrize(
    ("name", "rows", "seconds", "tokens"),
    [("conv", 19_366, 3501.721937, 4_088_665), ("code", 8_819, 3435.948056, 245_896)],
)
def test_azure_traces(name: str, rows: int, seconds: float, tokens: int) -> None:
    path = AZURE / f"azure_llm_2023_{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    trace = Trace(str(path), "TIMESTAMP", "GeneratedTokens")
    gaps, sizes = read_trace(trace)
    assert len(gaps) == len(sizes) == rows
    assert gaps.sum() == pytest.approx(seconds, rel=1e-12)
    assert sizes.sum() == tokens
    scaled_gaps, scaled_sizes = scaled_trace(Scenario((Pool(10, 2.0),), load=0.9, arrivals=trace))
    assert (rows - 1) / scaled_gaps.sum() == pytest.approx(18.0, rel=1e-12)
    assert scaled_sizes.mean() == pytest.approx(1.0, rel=1e-12)
    assert np.corrcoef(gaps, scaled_gaps)[0, 1] == pytest.approx(1.0, rel=1e-12)


def test_reading_is_fast(path: Path) -> None:
    start = np.datetime64("2023-11-16 18:15:46.6805900")
    stamps = start + 1_800_000 * np.arange(19_000)
    trace = written(path, "time,other,size", *(f"{stamp},374,44" for stamp in stamps))
    taken = []
    for _ in range(5):
        module._parse.cache_clear()
        before = time.process_time()
        assert len(read_trace(trace).gaps) == 19_000
        taken.append(time.process_time() - before)
    assert min(taken) < 0.5  # 0.05 at rest


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
