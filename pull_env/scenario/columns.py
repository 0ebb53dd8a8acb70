"""Columns of recorded values in files: CSV, Parquet or Standard Workload Format.

The end of a file's name says which. A column of a Parquet file keeps its type; the others are text.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pull_env.scenario.validation import ScenarioError, one_of

# Feitelson, Tsafrir, Krakov 2014, "Experience with using the Parallel Workloads Archive": 18 values a line,
# -1 for what is not known. `submit` is a time in seconds, `run` the seconds that the work took.
SWF = (
    "number",
    "submit",
    "wait",
    "run",
    "processors",
    "cpu",
    "memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think",
)


# numpy reads more than this as a time ("now", a bare year, an offset with a warning), and years that int64
# nanoseconds cannot hold wrap around silently.
_TIMESTAMP = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\d(?:[T ][\d:.]+)?)(?:Z|\+00:00)?", re.ASCII)
_YEARS = np.array(["1900", "2200"], "datetime64[Y]")


class Column(NamedTuple):
    """A column of a file, with what error messages need to name a row."""

    path: str
    name: str
    values: Sequence[str] | npt.NDArray[Any]  # (rows,) of a Parquet file numbers or times, else text
    lines: Sequence[int]  # of the file, by row
    unit: str  # what `lines` counts: a line, or a row of a Parquet file

    def refuse(self, refused: npt.NDArray[np.bool_], allowed: str) -> None:
        """Raise for the first row that is `refused`, (rows,) flags."""
        if refused.any():
            row = int(refused.argmax())
            place = f"{self.path}, {self.unit} {self.lines[row]}: {self.name}"
            raise ScenarioError(f"{place} is {str(self.values[row])!r}: it must be {allowed}")

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return the values as numbers, NaN for those that are none, (rows,)."""
        if isinstance(self.values, np.ndarray):
            return np.full(len(self.values), np.nan) if self.is_time else self.values.astype(np.float64)
        return np.array([_number(text) for text in self.values], np.float64)

    def times(self) -> npt.NDArray[np.datetime64]:
        """Return the values as times in nanoseconds, NaT for those that are none, (rows,)."""
        if isinstance(self.values, np.ndarray):
            if not self.is_time:
                return np.full(len(self.values), "NaT", "datetime64[ns]")
            years = self.values.astype("datetime64[Y]")
            known = (years >= _YEARS[0]) & (years < _YEARS[1])
            return np.where(known, self.values, np.datetime64("NaT")).astype("datetime64[ns]")
        return np.array([_time(text) for text in self.values], "datetime64[ns]")

    @property
    def is_time(self) -> bool:
        """Whether the file says that the values are times."""
        return isinstance(self.values, np.ndarray) and self.values.dtype.kind == "M"


class Table(NamedTuple):
    """Columns of a file."""

    columns: tuple[Column, ...]
    skipped: int  # rows left out as they have another number of values than the header


def read_table(path: str, names: tuple[str, ...], skip: bool = False) -> Table:
    """Return the columns `names` of a file.

    Args:
        path: Absolute path of the file.
        names: Names of the columns.
        skip: Whether to leave out rows with another number of values than the header, instead of an error.

    Raises:
        ScenarioError: If the file cannot be read, or a column is missing.
    """
    try:
        if path.endswith(".parquet"):
            return _parquet(path, names)
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            if path.endswith(".swf"):
                lines = enumerate(file, 1)
                rows = [(k, line.split()) for k, line in lines if line.strip() and line.strip()[0] != ";"]
                return _select(path, names, 1, list(SWF), rows, skip)
            reader = csv.reader(file)
            header = [name.strip() for name in next(filter(None, reader), [])]
            if not header:
                raise ScenarioError(f"{path} is empty: it must have a header and at least 2 rows")
            first = reader.line_num
            rows = [(reader.line_num, row) for row in reader if row]  # a blank line is an empty row
            return _select(path, names, first, header, rows, skip)
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        kind = "an SWF" if path.endswith(".swf") else "a CSV"
        raise ScenarioError(f"{path} is not {kind} file in UTF-8: {error}") from None


def positive_numbers(path: str, name: str) -> npt.NDArray[np.float64]:
    """Return the values of a column, scaled to mean 1, (rows,).

    The file is parsed again only after it has changed.

    Raises:
        ScenarioError: If the file cannot be read, the column is missing, a value is not a positive number,
            or there is none.
    """
    path = os.path.abspath(path)
    return _positive_numbers(path, name, file_version(path))


def file_version(path: str) -> tuple[int, int]:
    """Return the time and size of a file, to notice changes.

    Raises:
        ScenarioError: If there is no such file.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)  # replications read the same file many times
def _positive_numbers(path: str, name: str, _version: tuple[int, int]) -> npt.NDArray[np.float64]:
    (column,), _ = read_table(path, (name,))
    values = column.numbers()
    column.refuse(~((values > 0.0) & np.isfinite(values)), "a positive finite number")
    if not values.size:
        raise ScenarioError(f"{path} has no row below its header: it must have at least one")
    values /= values.mean()
    values.flags.writeable = False
    return values


def _select(
    path: str,
    names: tuple[str, ...],
    line: int,
    header: list[str],
    rows: list[tuple[int, list[str]]],
    skip: bool,
) -> Table:
    """Return columns of `rows`, each with its line; `header` is in `line`."""
    indices = [_position(f"{path}, line {line}", header, name) for name in names]
    complete = [(number, row) for number, row in rows if len(row) == len(header)]
    if len(complete) < len(rows) and not skip:
        number, row = next((number, row) for number, row in rows if len(row) != len(header))
        raise ScenarioError(
            f"{path}, line {number}: the row has {len(row)} values: it must have {len(header)}, as the header"
        )
    lines = [number for number, _ in complete]
    columns = (
        Column(path, name, [row[k].strip() for _, row in complete], lines, "line")
        for name, k in zip(names, indices, strict=True)
    )
    return Table(tuple(columns), len(rows) - len(complete))


def _parquet(path: str, names: tuple[str, ...]) -> Table:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ScenarioError(f"{path} is a Parquet file, which needs: pip install pyarrow") from None
    try:
        known = parquet.read_schema(path).names
        for name in names:
            _position(path, known, name)
        table = parquet.read_table(path, columns=list(dict.fromkeys(names)))
    except ArrowException as error:
        raise ScenarioError(f"{path} is not a Parquet file: {error}") from None
    rows = range(1, table.num_rows + 1)
    columns = (Column(path, name, _typed(table.column(name).to_numpy()), rows, "row") for name in names)
    return Table(tuple(columns), 0)


def _typed(values: npt.NDArray[Any]) -> list[str] | npt.NDArray[Any]:
    """Return numbers and times as they are, other values as text.

    Numbers in single precision are text too: 0.1 is 0.1 then, as in a CSV file, and not 0.10000000149.
    """
    exact = values.dtype.kind in "iuM" or values.dtype == np.float64
    if exact:
        return values
    return [each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in values]


def _position(where: str, header: list[str], name: str) -> int:
    if name not in header:
        raise ScenarioError(f"{where}: {name!r} is not a column: {one_of(name, header)}")
    return header.index(name)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _time(text: str) -> np.datetime64:
    match = _TIMESTAMP.fullmatch(text)
    try:
        return np.datetime64(match[1] if match else "NaT", "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")
