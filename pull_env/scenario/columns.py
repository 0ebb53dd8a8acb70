"""Columns of recorded values in a file: CSV, Parquet or Standard Workload Format, by the end of its name."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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


class Column(NamedTuple):
    """One column of a file, with what an error message needs to name a place in it."""

    path: str
    name: str
    texts: list[str]
    lines: Sequence[int]  # of the file, by row
    unit: str  # what `lines` counts: a line, or a row of a Parquet file

    def place(self, row: int) -> str:
        """Return where a row stands."""
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def refuse(self, refused: npt.NDArray[np.bool_], allowed: str) -> None:
        """Raise for the first row that is `refused`, (rows,) flags."""
        if refused.any():
            row = int(refused.argmax())
            raise ScenarioError(
                f"{self.place(row)}: {self.name} is {self.texts[row]!r}: it must be {allowed}"
            )


class Table(NamedTuple):
    """Columns of a file."""

    columns: tuple[Column, ...]
    skipped: int  # rows left out as they have another number of values than the header


def read_table(path: str, names: tuple[str, ...], skip: bool = False) -> Table:
    """Return the columns `names` of a file, as texts.

    Args:
        path: An absolute one.
        names: Of the columns.
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
    """Return the values of a column, scaled to mean 1; the file is parsed again only after it has changed.

    Raises:
        ScenarioError: If the file cannot be read, the column is missing, a value is not a positive number,
            or there is none.
    """
    path = os.path.abspath(path)
    return _positive_numbers(path, name, stamp(path))


def numbers(column: Column) -> npt.NDArray[np.float64]:
    """Return the numbers that the texts of a column spell, NaN for those that spell none."""
    return np.array([_number(text) for text in column.texts], np.float64)


def stamp(path: str) -> tuple[int, int]:
    """Return what tells whether a file has changed.

    Raises:
        ScenarioError: If there is no such file.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)  # replications read the same file many times
def _positive_numbers(path: str, name: str, _stamp: tuple[int, int]) -> npt.NDArray[np.float64]:
    (column,), _ = read_table(path, (name,))
    values = numbers(column)
    column.refuse(~((values > 0.0) & np.isfinite(values)), "a positive finite number")
    if not values.size:
        raise ScenarioError(f"{path} has no row below its header: it must have one at least")
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
    """Return columns of `rows`, each with its line; the header stands at `line`."""
    places = [_position(f"{path}, line {line}", header, name) for name in names]
    whole = [(at, row) for at, row in rows if len(row) == len(header)]
    if len(whole) < len(rows) and not skip:
        at, row = next((at, row) for at, row in rows if len(row) != len(header))
        raise ScenarioError(
            f"{path}, line {at}: the row has {len(row)} values: it must have {len(header)}, as the header"
        )
    lines = [at for at, _ in whole]
    columns = (
        Column(path, name, [row[k].strip() for _, row in whole], lines, "line")
        for name, k in zip(names, places, strict=True)
    )
    return Table(tuple(columns), len(rows) - len(whole))


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
    texts = {name: table.column(name).to_numpy().astype(str).tolist() for name in set(names)}
    return Table(tuple(Column(path, name, texts[name], rows, "row") for name in names), 0)


def _position(where: str, header: list[str], name: str) -> int:
    if name not in header:
        raise ScenarioError(f"{where}: {name!r} is not a column: {one_of(name, header)}")
    return header.index(name)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
