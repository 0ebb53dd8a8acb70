"""Rows of a trained router beside its rivals on one system: differences in % with intervals, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from agents.general.figure import Row
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.statistics import Estimate, estimate


@dataclass(frozen=True)
class Difference:
    """What a policy costs more than another, in % of the other's cost, with its interval of 95 %."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Return `wins`, `loses` or, where the interval holds 0, `equal`."""
        return "wins" if self.high < 0 else "loses" if self.low > 0 else "equal"

    def __str__(self) -> str:
        text = f"{self.mean:+.1f} % ({self.low:+.1f} to {self.high:+.1f})"
        return f"**{text}**" if self.verdict == "loses" else text


def cost(found: Row) -> Estimate | None:
    """Return what an arriving customer costs; None where the queues grow."""
    return estimate(found["samples"]["cost"]) if found["stable"] else None


def cell(found: Row) -> str:
    """Return a cost as a cell of a table."""
    value = cost(found)
    return "unstable" if value is None else plus_minus(value)


def at_price(found: Row, price: float) -> Row:
    """Return the row with a message at another price, of a policy that does not look at prices.

    The cost of a customer is linear in it, run by run.
    """
    more = price - found["scenario"]["content"]["prices"]["message"]
    samples = found["samples"]
    priced = [c + more * m for c, m in zip(samples["cost"], samples["messages"], strict=True)]
    return {**found, "samples": {**samples, "cost": priced}}


def difference(found: Row, other: Row) -> Difference | None:
    """Return what `found` costs more than `other`, run by run on the same customers; None if one grows."""
    if not (found["stable"] and other["stable"]):
        return None
    theirs = np.array(other["samples"]["cost"])
    gap = estimate((np.array(found["samples"]["cost"]) - theirs) * (100 / theirs.mean()))
    return Difference(gap.mean, gap.low, gap.high)


def compared(found: Row, other: Row | None) -> str:
    """Return the difference as a cell of a table."""
    if other is None:
        return "-"
    if not found["stable"]:
        return "**unstable**"
    gap = difference(found, other)
    return "it is unstable" if gap is None else str(gap)


@dataclass(frozen=True)
class Contest:
    """The rows of one trained router on one system."""

    rows: tuple[Row, ...]

    @property
    def learned(self) -> Row:
        """The row of the router."""
        return next(found for found in self.rows if found["role"] == "learned")

    def named(self, name: str) -> Row | None:
        """Return the row of a baseline, or of `tuned` or `start`; None: it is not there."""
        wanted = ("tuned", "start") if name in ("tuned", "start") else ("baseline",)
        for found in self.rows:
            if found["role"] in wanted and (found["role"] == name or found["policy"]["name"] == name):
                return found
        return None

    @property
    def best_baseline(self) -> Row:
        """The baseline of least cost."""
        stable = [found for found in self.rows if found["role"] == "baseline" and found["stable"]]
        return min(stable, key=lambda found: float(np.mean(found["samples"]["cost"])))

    def against(self, name: str) -> Difference | None:
        """Return what the router costs more than a policy; None: one is unstable, or not there."""
        other = self.named(name)
        return None if other is None else difference(self.learned, other)

    def priced(self, price: float, simulated: Iterable[Row] = ()) -> Contest:
        """Return the contest at another price; rows of those that look at it were `simulated` there."""
        if price == self.learned["scenario"]["content"]["prices"]["message"]:
            return self
        blind = (at_price(found, price) for found in self.rows if not found["reads_price"])
        return Contest((*blind, *simulated))


def contests(rows: Iterable[Row], part: str) -> dict[tuple[str, str], Contest]:
    """Return the contests of a part, by router and system."""
    found: dict[tuple[str, str], list[Row]] = {}
    for each in rows:
        if each["part"] == part:
            found.setdefault((each["trained"], each["system"]), []).append(each)
    return {key: Contest(tuple(group)) for key, group in found.items()}
