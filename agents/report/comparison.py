"""A trained router beside other policies on one system: paired differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from agents.general.figure import Row
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.statistics import Estimate, estimate


@dataclass(frozen=True)
class Difference:
    """How much more a policy costs than another, in %, with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Return `wins`, `loses` or, if the interval holds 0, `equal`."""
        return "wins" if self.high < 0 else "loses" if self.low > 0 else "equal"

    def __str__(self) -> str:
        text = f"{self.mean:+.1f} % ({self.low:+.1f} to {self.high:+.1f})"
        return f"**{text}**" if self.verdict == "loses" else text


def cost(row: Row) -> Estimate | None:
    """Return the cost per arriving customer; None if unstable."""
    return estimate(row["samples"]["cost"]) if row["stable"] else None


def cost_cell(row: Row) -> str:
    """Return a cost as a cell of a table."""
    value = cost(row)
    return "unstable" if value is None else plus_minus(value)


def at_price(row: Row, price: float) -> Row:
    """Return the row of a policy at another price of a message.

    What it does must not depend on the price; then the cost of each replication is linear in it.
    """
    more = price - row["scenario"]["content"]["prices"]["message"]
    samples = row["samples"]
    priced = [c + more * m for c, m in zip(samples["cost"], samples["messages"], strict=True)]
    return {**row, "samples": {**samples, "cost": priced}}


def difference(row: Row, other: Row) -> Difference | None:
    """Return how much more `row` costs than `other`; None if one is unstable.

    Costs are paired by replication, as all policies have the same customers.
    """
    if not (row["stable"] and other["stable"]):
        return None
    theirs = np.array(other["samples"]["cost"])
    gap = estimate((np.array(row["samples"]["cost"]) - theirs) * (100 / theirs.mean()))
    return Difference(gap.mean, gap.low, gap.high)


def difference_cell(row: Row, other: Row | None) -> str:
    """Return a difference as a cell of a table."""
    if other is None:
        return "-"
    if not row["stable"]:
        return "**unstable**"
    gap = difference(row, other)
    return "other unstable" if gap is None else str(gap)


@dataclass(frozen=True)
class Comparison:
    """The rows of one trained router and other policies on one system."""

    rows: tuple[Row, ...]

    @property
    def learned(self) -> Row:
        """The row of the router."""
        return next(row for row in self.rows if row["role"] == "learned")

    def row_of(self, name: str) -> Row | None:
        """Return the row of a baseline, or of `tuned` or `start`; None if it is missing."""
        roles = ("tuned", "start") if name in ("tuned", "start") else ("baseline",)
        for row in self.rows:
            if row["role"] in roles and (row["role"] == name or row["policy"]["name"] == name):
                return row
        return None

    @property
    def rival(self) -> str:
        """The policy to beat: `tuned`, or the start where there is no tuned policy."""
        return "tuned" if self.row_of("tuned") else "start"

    @property
    def best_baseline(self) -> Row:
        """The row of the cheapest stable baseline."""
        stable = [row for row in self.rows if row["role"] == "baseline" and row["stable"]]
        return min(stable, key=lambda row: float(np.mean(row["samples"]["cost"])))

    def against(self, name: str) -> Difference | None:
        """Return how much more the router costs than a policy; None if unknown."""
        other = self.row_of(name)
        return None if other is None else difference(self.learned, other)

    def at_price(self, price: float, simulated: Iterable[Row] = ()) -> Comparison:
        """Return the comparison at another price, with the rows `simulated` at that price."""
        if price == self.learned["scenario"]["content"]["prices"]["message"]:
            return self
        computed = (at_price(row, price) for row in self.rows if not row["reads_price"])
        return Comparison((*computed, *simulated))


def comparisons(rows: Iterable[Row], part: str) -> dict[tuple[str, str], Comparison]:
    """Return the comparisons of a part, by router and system."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["part"] == part:
            groups.setdefault((row["trained"], row["system"]), []).append(row)
    return {key: Comparison(tuple(group)) for key, group in groups.items()}
