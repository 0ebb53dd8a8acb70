"""The parts of a verdict: tests that pass, fail or stay undecided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pull_env.simulation.statistics import Estimate


def within(value: Estimate, target: float, tolerance: float) -> bool | None:
    """Return whether an interval is within `target` (1 ± `tolerance`).

    None if it crosses an end, or is NaN, as of an unstable run.
    """
    low, high = sorted((target * (1 - tolerance), target * (1 + tolerance)))
    if low <= value.low and value.high <= high:
        return True
    return False if value.high < low or value.low > high else None


def above(value: Estimate, bound: float) -> bool | None:
    """Return whether an interval is above `bound`; None if it contains it."""
    return True if value.low > bound else False if value.high < bound else None


def vanishing(values: Sequence[Estimate], factor: float = 10.0) -> bool | None:
    """Return whether values fall towards 0: none rises, and by `factor` in all.

    False: an interval is entirely above the one before it. None: not by the factor, intervals considered.
    """
    if rises(values):
        return False
    return True if len(values) > 1 and factor * values[-1].high < values[0].low else None


def rises(values: Sequence[Estimate], level: float = 0.95) -> bool:
    """Return whether an interval of `level` is entirely above the one before it."""
    spans = [value.interval(level) for value in values]
    return any(after[0] > before[1] for before, after in pairwise(spans))


def falls(values: Sequence[Estimate], factor: float = 10.0) -> bool | None:
    """Return whether the last value is below the first by `factor`.

    False: its interval is entirely above that of the first. None: not by the factor, intervals considered.
    """
    if len(values) < 2 or values[-1].low > values[0].high:
        return None if len(values) < 2 else False
    return True if factor * values[-1].high < values[0].low else None


def all_hold(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether all verdicts are True; None: undecided, or no verdicts."""
    decisions = list(verdicts)
    if False in decisions:
        return False
    return None if None in decisions or not decisions else True


def verdict_word(decided: bool | None) -> str:
    """Return a decision as a word."""
    return {True: "yes", False: "no", None: "undecided"}[decided]


def count_verdicts(decided: Sequence[bool | None]) -> str:
    """Return how many were decided how."""
    met, missed, left = (decided.count(verdict) for verdict in (True, False, None))
    return f"{met} of {len(decided)} meet it, {missed} do not, {left} are undecided."
