"""Recorded arrivals: read a CSV file of customers, and scale it to the arrival rate of a scenario."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from pull_env.scenario import Scenario, ScenarioError, Trace, nearest

TIMES_ALLOWED = "a number, or a timestamp such as 2023-11-16 18:15:46.68 (no offset, or UTC), as in all rows"

# numpy takes more than this for a time ("now", a bare year, an offset with a warning), and years that int64
# nanoseconds cannot hold wrap around silently.
_TIMESTAMP = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\d(?:[T ][\d:.]+)?)(?:Z|\+00:00)?", re.ASCII)


class Arrivals(NamedTuple):
    """Recorded customers in order of arrival; the arrays are read-only."""

    gaps: npt.NDArray[np.float64]  # (rows,) time since the arrival before; 0 for the first
    sizes: npt.NDArray[np.float64]  # (rows,) work that the customer brings, positive


class _Column(NamedTuple):
    """One column of a file, with what an error message needs to name a place in it."""

    path: str
    name: str
    texts: list[str]
    lines: Sequence[int]  # line number in the file, by row

    def refuse(self, refused: npt.NDArray[np.bool_], allowed: str) -> None:
        """Raise for the first row that is `refused`, (rows,) flags."""
        if refused.any():
            row = int(refused.argmax())
            place = f"{self.path}, line {self.lines[row]}"
            raise ScenarioError(f"{place}: {self.name} is {self.texts[row]!r}: it must be {allowed}")


def read_trace(trace: Trace) -> Arrivals:
    """Return the arrivals in a CSV file, gaps in seconds and sizes as recorded.

    Times are numbers of seconds, or timestamps such as `2023-11-16 18:15:46.6805900`, in UTC or without an
    offset; the first row decides which. The file is parsed again only after it has changed.

    Raises:
        ScenarioError: If the file cannot be read, a column is missing, a value cannot be parsed, a size is
            not positive, time goes backwards or never passes, or there are fewer than 2 rows.
    """
    path = os.path.abspath(trace.trace)
    try:
        status = os.stat(path)
        return _parse(path, trace.time, trace.size, (status.st_mtime_ns, status.st_size))
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not a CSV file in UTF-8: {error}") from None


def scaled_trace(scenario: Scenario) -> Arrivals:
    """Return the recorded arrivals of a scenario in its units.

    Gaps are scaled so that (rows - 1) / duration is the total arrival rate, sizes so that their mean is 1:
    a server serves a customer in size / rate.

    Raises:
        ScenarioError: If the scenario has no trace, or `read_trace` refuses it.
    """
    if scenario.arrivals is None:
        raise ScenarioError("arrivals is None: it must be a Trace")
    gaps, sizes = read_trace(scenario.arrivals)
    mean_gap = gaps.sum() / (len(gaps) - 1)
    return _read_only(gaps / (mean_gap * scenario.total_arrival_rate), sizes / sizes.mean())


@lru_cache(maxsize=8)  # replications read the same file many times
def _parse(path: str, time: str, size: str, _stamp: tuple[int, int]) -> Arrivals:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        times, sizes = _columns(file, path, (time, size))
    return _read_only(_gaps(times), _sizes(sizes))


def _columns(file: TextIO, path: str, names: tuple[str, str]) -> tuple[_Column, _Column]:
    reader = csv.reader(file)
    header = [name.strip() for name in next(filter(None, reader), [])]
    if not header:
        raise ScenarioError(f"{path} is empty: it must have a header and at least 2 rows")
    first, second = (_position(path, reader.line_num, header, name) for name in names)
    lines, first_texts, second_texts = [], [], []
    for row in filter(None, reader):  # a blank line is an empty row
        if len(row) != len(header):
            place = f"{path}, line {reader.line_num}"
            raise ScenarioError(
                f"{place}: the row has {len(row)} values: it must have {len(header)}, as the header"
            )
        lines.append(reader.line_num)
        first_texts.append(row[first].strip())
        second_texts.append(row[second].strip())
    if len(lines) < 2:
        raise ScenarioError(
            f"{path} has too few rows below its header, {len(lines)}: it must have at least 2"
        )
    return _Column(path, names[0], first_texts, lines), _Column(path, names[1], second_texts, lines)


def _position(path: str, line: int, header: list[str], name: str) -> int:
    if name not in header:
        raise ScenarioError(
            f"{path}, line {line}: {name!r} is not a column: the nearest is {nearest(name, header)!r}, "
            f"of {', '.join(header)}"
        )
    return header.index(name)


def _gaps(times: _Column) -> npt.NDArray[np.float64]:
    if math.isnan(_number(times.texts[0])):
        stamps = np.array([_timestamp(text) for text in times.texts])
        times.refuse(np.isnat(stamps), TIMES_ALLOWED)
        gaps = np.diff(stamps, prepend=stamps[0]) / np.timedelta64(1, "s")
    else:
        seconds = np.array([_number(text) for text in times.texts])
        times.refuse(~np.isfinite(seconds), TIMES_ALLOWED)
        gaps = np.diff(seconds, prepend=seconds[0])
    times.refuse(gaps < 0.0, "no earlier than in the row before")
    if not gaps.any():
        raise ScenarioError(f"{times.path}: {times.name} is {times.texts[0]!r} in every row: time must pass")
    return gaps


def _sizes(sizes: _Column) -> npt.NDArray[np.float64]:
    values = np.array([_number(text) for text in sizes.texts])
    sizes.refuse(~((values > 0.0) & np.isfinite(values)), "a positive finite number")
    return values


def _number(text: str) -> float:
    """Return the number that `text` spells, NaN if it spells none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _timestamp(text: str) -> np.datetime64:
    """Return the time that `text` spells, in nanoseconds; NaT if it spells none."""
    match = _TIMESTAMP.fullmatch(text)
    try:
        return np.datetime64(match[1] if match else "NaT", "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")


def _read_only(gaps: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]) -> Arrivals:
    gaps.flags.writeable = sizes.flags.writeable = False
    return Arrivals(gaps, sizes)
