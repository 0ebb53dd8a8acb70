"""Recorded arrivals: read a file of customers, and scale it to a scenario."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pull_env.scenario.columns import Column, file_version, read_table
from pull_env.scenario.scenario import Scenario, ScenarioError, Trace
from pull_env.scenario.validation import check_scenario

Floats = npt.NDArray[np.float64]

TIMES_ALLOWED = "a number, or a timestamp such as 2023-11-16 18:15:46.68 (no offset, or UTC), as in all rows"


class RecordedArrivals(NamedTuple):
    """Recorded customers in order of arrival; the arrays are read-only."""

    gaps: Floats  # (rows,) time since the previous arrival; 0 for the first
    sizes: Floats  # (rows,) service requirement, positive


def read_trace(trace: Trace) -> RecordedArrivals:
    """Return the arrivals in a file, gaps in seconds and sizes as recorded.

    Times are numbers of seconds, or timestamps such as `2023-11-16 18:15:46.6805900`, in UTC or without an
    offset; the first row decides which. The file is parsed again only after it has changed.

    Raises:
        ScenarioError: If the file cannot be read, a column is missing, all times are equal, or there are
            fewer than 2 rows. And, unless bad rows are skipped, if a value cannot be parsed, a size is not
            positive, or times decrease.
    """
    return _read(trace)[0]


def skipped_rows(trace: Trace) -> int:
    """Return how many bad rows of a file are skipped; raise as `read_trace` does."""
    return _read(trace)[1]


def scaled_trace(scenario: Scenario) -> RecordedArrivals:
    """Return the recorded arrivals of a scenario in its units.

    Gaps are scaled so that (rows - 1) / duration is the total arrival rate, sizes so that their mean is 1:
    a server serves a customer in size / rate.

    Raises:
        ScenarioError: If the scenario has no trace, or `read_trace` refuses it.
    """
    if not isinstance(scenario.arrivals, Trace):
        raise check_scenario.refusal("arrivals", scenario.arrivals, "a Trace")
    gaps, sizes = read_trace(scenario.arrivals)
    mean_gap = gaps.sum() / (len(gaps) - 1)
    return _read_only(gaps / (mean_gap * scenario.total_arrival_rate), sizes / sizes.mean())


def _read(trace: Trace) -> tuple[RecordedArrivals, int]:
    path = os.path.abspath(trace.trace)
    return _parse(path, trace.time, trace.size, trace.bad_rows == "skip", file_version(path))


@lru_cache(maxsize=8)  # replications read the same file many times
def _parse(
    path: str, time: str, size: str, skip: bool, _version: tuple[int, int]
) -> tuple[RecordedArrivals, int]:
    (time_column, size_column), ragged = read_table(path, (time, size), skip)
    rows = len(time_column.values)
    times, sizes = (_times(time_column, skip), size_column.numbers()) if rows else (np.zeros(0), np.zeros(0))
    valid = (sizes > 0.0) & np.isfinite(sizes)
    if skip:
        usable = _usable(times, valid)
        times, sizes = times[usable], sizes[usable]
    if len(times) < 2:
        raise ScenarioError(
            f"{path} has too few rows below its header, {len(times)}: it must have at least 2"
        )
    gaps = _gaps(times)
    if not skip:
        time_column.refuse(gaps < 0.0, "no earlier than in the row before")
        size_column.refuse(~valid, "a positive finite number")
    if not gaps.any():
        raise ScenarioError(f"{path}: {time} is {str(time_column.values[0])!r} in every row: time must pass")
    return _read_only(gaps, sizes), ragged + rows - len(sizes)


def _times(column: Column, skip: bool) -> npt.NDArray[np.float64] | npt.NDArray[np.datetime64]:
    """Return the times, either all in seconds or all as timestamps; NaN if skipped."""
    seconds = column.numbers()
    seconds[~np.isfinite(seconds)] = np.nan
    parsed = np.isfinite(seconds)
    if not (parsed.any() if skip else parsed[0]):
        stamps = column.times()
        if not skip:
            column.refuse(np.isnat(stamps), TIMES_ALLOWED)
        return stamps
    if not skip:
        column.refuse(~parsed, TIMES_ALLOWED)
    return seconds


def _usable(
    times: npt.NDArray[np.float64] | npt.NDArray[np.datetime64], valid: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which rows are `valid`, and have a time not before earlier rows, (rows,)."""
    known = valid & ~np.isnan(times)
    usable = np.zeros(len(times), np.bool_)
    usable[known] = times[known] >= np.maximum.accumulate(times[known])
    return usable


def _gaps(times: npt.NDArray[np.float64] | npt.NDArray[np.datetime64]) -> Floats:
    gaps = np.diff(times, prepend=times[0])
    if gaps.dtype.kind == "m":
        gaps = gaps / np.timedelta64(1, "s")
    result: Floats = gaps
    return result


def _read_only(gaps: Floats, sizes: Floats) -> RecordedArrivals:
    gaps.flags.writeable = sizes.flags.writeable = False
    return RecordedArrivals(gaps, sizes)
