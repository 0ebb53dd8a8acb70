"""The parts of a verdict: tests that pass, fail or stay undecided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pull_env.simulation.statistics import Estimate


def within(value: Estimate, target: float, tolerance: float) -> bool | None:
    """Tell whether an interval is within `target` (1 ± `tolerance`).

    None if it crosses an end.

    What is not claimed, as the run was unstable, decides nothing.
    """
    low, high = sorted((target * (1 - tolerance), target * (1 + tolerance)))
    if low <= value.low and value.high <= high:
        return True
    return False if value.high < low or value.low > high else None


def above(value: Estimate, bound: float) -> bool | None:
    """Tell whether an interval lies above `bound`; None if it holds it."""
    return True if value.low > bound else False if value.high < bound else None


def vanishing(values: Sequence[Estimate], factor: float = 10.0) -> bool | None:
    """Tell whether values fall towards 0: never up, by `factor` in all.

    False: an interval lies wholly above the one before it. None: not by the factor, intervals considered.
    """
    if rises(values):
        return False
    return True if len(values) > 1 and factor * values[-1].high < values[0].low else None


def rises(values: Sequence[Estimate], level: float = 0.95) -> bool:
    """Tell whether an interval of `level` lies wholly above the one before it."""
    spans = [value.interval(level) for value in values]
    return any(after[0] > before[1] for before, after in pairwise(spans))


def falls(values: Sequence[Estimate], factor: float = 10.0) -> bool | None:
    """Tell whether the last value is below the first by `factor`.

    False: its interval lies wholly above that of the first. None: not by the factor, intervals considered.
    """
    if len(values) < 2 or values[-1].low > values[0].high:
        return None if len(values) < 2 else False
    return True if factor * values[-1].high < values[0].low else None


def all_hold(verdicts: Iterable[bool | None]) -> bool | None:
    """Return False if any is, else None if any is or there is none, else True."""
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
