"""Columns of Parquet files and of the Standard Workload Format."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from pull_env import Empirical
from pull_env.scenario.columns import read_table
from pull_env.scenario.scenario import ScenarioError, Trace
from pull_env.scenario.trace import read_trace, skipped_rows

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
    ("values", "kind", "numbers"),
    [
        ([1, 2, 2**60 + 1], "int64", [1.0, 2.0, 2.0**60]),
        ([0.1, 0.25, 3.0], "float32", [0.1, 0.25, 3.0]),
        (["1", " 2.5", "x"], "string", [1.0, 2.5, math.nan]),
        ([b"1", b"2", b"3"], "binary", [1.0, 2.0, 3.0]),
        ([True, False, True], "bool", [math.nan] * 3),
        ([0, 1, 2], "timestamp[us]", [math.nan] * 3),
    ],
)
def test_numbers_of_a_parquet_column(values, kind, numbers, tmp_path):
    """They are those that the same values have as text in a CSV file."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = str(tmp_path / "some.parquet")
    parquet.write_table(pyarrow.table({"x": pyarrow.array(values, type=kind)}), path)
    (column,), skipped = read_table(path, ("x",))
    np.testing.assert_array_equal(column.numbers(), numbers)
    assert skipped == 0


def test_times_of_a_parquet_column(tmp_path):
    """Years that nanoseconds cannot hold are no times, whatever the unit of the column."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = str(tmp_path / "some.parquet")
    stamps = np.array(
        ["1850-01-01", "1900-01-01T01:02:03", "2199-12-31", "3000-01-01", "NaT"], "datetime64[us]"
    )
    parquet.write_table(pyarrow.table({"x": stamps, "y": np.arange(5)}), path)
    (times, numbers), _ = read_table(path, ("x", "y"))
    assert np.isnat(times.times()).tolist() == [True, False, False, True, True]
    assert times.times()[1] == np.datetime64("1900-01-01T01:02:03", "ns")
    assert np.isnat(numbers.times()).all()
