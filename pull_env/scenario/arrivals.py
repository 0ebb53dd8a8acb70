"""Arrival processes other than Poisson streams of fixed shares.

Frozen dataclasses that check their fields. In a table, `kind` names the class, and a table without it is a
trace: `arrivals = {kind = "bursts", peak = 1.5, length = 20}`. Rates are relative: the mean rate is the
scenario's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.scenario.laws import Law, build_law, check_law
from pull_env.scenario.validation import ScenarioError, assign
from pull_env.scenario.validation import check_scenario as check

Floats = npt.NDArray[np.float64]

CHANCES_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Trace:
    """A file of recorded customers, which `pull_env.scenario.trace` reads.

    Attributes:
        trace: Path of a CSV file with a header, of a Parquet file (.parquet), or of one in Standard Workload
            Format (.swf), whose columns are named in `pull_env.scenario.columns`.
        time: Name of the column with the arrival times.
        size: Name of the column with the work that each customer brings.
        block: Customers per block: the run is an endless sequence of blocks, each copied from a random
            position of the trace. None: the trace is replayed once.
        bad_rows: "skip" leaves out rows that cannot be used, and `trace.skipped_rows` counts them; None
            refuses the file.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    trace: str
    time: str
    size: str
    block: int | None = None
    bad_rows: str | None = None

    def __post_init__(self) -> None:
        check.fields(self, check.path, "trace")
        check.fields(self, check.text, "time", "size")
        check.fields(self, check.count, "block")
        check.fields(self, check.choice, "bad_rows", choices=("skip",))


@dataclass(frozen=True)
class Batches:
    """Batches of customers that arrive at the times of a Poisson stream.

    A batch arrives at one router, which assigns its customers one by one, like the parts of a request.

    Attributes:
        size: Mean number of customers in a batch, from 1.
        law: "geometric", or "fixed": exactly `size`, a whole number.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    size: float
    law: str = "geometric"
    kind: str = field(default="batches", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.choice, "law", choices=("geometric", "fixed"))
        if self.law == "fixed":
            check.fields(self, check.count, "size")
        else:
            check.fields(self, check.number, "size", least=1.0, most=1e6)


@dataclass(frozen=True)
class Modulated:
    """A Markov-modulated Poisson process: the arrival rate depends on a phase.

    Attributes:
        rates: (K,) relative arrival rates of the phases.
        lengths: (K,) mean lengths of the phases; they are exponential.
        moves: (K, K) transition probabilities, one row per phase; None: the phases take turns.

    Raises:
        ScenarioError: If a value is not allowed, or the stationary distribution of the phase is not unique.
    """

    rates: tuple[float, ...]
    lengths: tuple[float, ...]
    moves: tuple[tuple[float, ...], ...] | None = None
    kind: str = field(default="modulated", init=False)

    def __post_init__(self) -> None:
        rates = check.each("rates", self.rates, check.non_negative)
        lengths = check.each("lengths", self.lengths, check.positive)
        if not any(rates):
            raise check.refusal("rates", rates, "a list with a positive number")
        if len(lengths) != len(rates):
            raise ScenarioError(f"lengths has {len(lengths)} numbers: it must have {len(rates)}, as rates")
        assign(self, rates=rates, lengths=lengths)
        if self.moves is not None:
            rows = check.items("moves", self.moves)
            assign(self, moves=tuple(_chances(f"moves[{k}]", row, len(rates)) for k, row in enumerate(rows)))
            if len(rows) != len(rates):
                raise ScenarioError(f"moves has {len(rows)} rows: it must have {len(rates)}, as rates")
        if np.linalg.matrix_rank(self.generator) < len(rates) - 1:
            raise check.refusal("moves", self.moves, "such that all phases lead to one set of phases")
        if not self.mean_rate > 0.0:
            raise check.refusal("rates", rates, "positive in a recurrent phase")

    @cached_property
    def chances(self) -> Floats:
        """Transition probabilities of the phases, (K, K)."""
        phases = len(self.rates)
        return np.roll(np.eye(phases), 1, axis=1) if self.moves is None else np.array(self.moves)

    @cached_property
    def generator(self) -> Floats:
        """Generator matrix of the phase process, (K, K); rows sum to 0."""
        phases = len(self.rates)
        rates: Floats = (self.chances - np.eye(phases)) / np.array(self.lengths)[:, None]
        return rates

    @cached_property
    def time_shares(self) -> Floats:
        """Stationary distribution of the phase, (K,)."""
        phases = len(self.rates)
        equations = np.vstack([self.generator.T, np.ones(phases)])
        shares = np.linalg.lstsq(equations, np.append(np.zeros(phases), 1.0), rcond=None)[0]
        rounded: Floats = np.maximum(shares, 0.0)
        rounded /= rounded.sum()
        return rounded

    @property
    def mean_rate(self) -> float:
        """Mean of the relative rates over time."""
        return float(self.time_shares @ np.array(self.rates))


@dataclass(frozen=True)
class Bursts:
    """A modulated stream of two phases, quiet and burst, given by its peak.

    The mean load is the scenario's; the load in quiet times follows from it.

    Attributes:
        peak: Load in a burst, above the scenario's.
        length: Mean length of a burst.
        share: Share of time in bursts.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    peak: float
    length: float
    share: float = 0.1
    kind: str = field(default="bursts", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.positive, "peak", "length")
        check.fields(self, check.number, "share", above=0.0, below=1.0)

    def phases(self, load: float) -> Modulated:
        """Return the two phases, quiet and burst, at a mean load.

        Raises:
            ScenarioError: If the peak is not above the load, or the bursts alone bring more than the load.
        """
        if not load < self.peak <= load / self.share * (1.0 + 1e-12):
            allowed = f"above the load, {load:g}, and at most {load / self.share:g}, all of it in bursts"
            raise check.refusal("peak", self.peak, allowed)
        return _two_phases(self, load)


@dataclass(frozen=True)
class Day:
    """A Poisson stream whose rate is a sine, starting at a random time of the day.

    Attributes:
        period: Length of a day.
        swing: Amplitude as a share of the mean rate, at most 1.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    period: float
    swing: float
    kind: str = field(default="day", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.positive, "period")
        check.fields(self, check.number, "swing", least=0.0, most=1.0)


@dataclass(frozen=True)
class Renewal:
    """A renewal process: independent gaps of any distribution.

    Attributes:
        gaps: Distribution of the gaps; in TOML its table.

    Raises:
        ScenarioError: If `gaps` is not a distribution.
    """

    gaps: Law
    kind: str = field(default="renewal", init=False)

    def __post_init__(self) -> None:
        check_law("gaps", self.gaps)


@dataclass(frozen=True)
class HotRouter:
    """Shares of the routers: a hot one gets more than the others, and it changes.

    The others share the rest equally; in the long run all get equal shares. A scenario takes it as `shares`.

    Attributes:
        share: Share of the customers that the hot router gets.
        every: Mean time until the hot router changes, exponential; the next one is uniform over the others.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    share: float
    every: float

    def __post_init__(self) -> None:
        check.fields(self, check.positive, "every")
        check.fields(self, check.number, "share", above=0.0, most=1.0)


Arrivals = Trace | Batches | Modulated | Bursts | Day | Renewal
ARRIVALS: dict[str, type[Any]] = {
    "batches": Batches,
    "modulated": Modulated,
    "bursts": Bursts,
    "day": Day,
    "renewal": Renewal,
}


def build_arrivals(data: object, where: str) -> Arrivals:
    """Return the arrivals that a table describes: those of its `kind`, or a trace.

    Raises:
        ScenarioError: If there is no such kind, or a parameter is unknown, missing or not allowed.
    """
    if not isinstance(data, Mapping) or "kind" not in data:
        return check.build(where, data, Trace)
    kind, parameters = check.variant(where, data, "kind", ARRIVALS)
    if kind is Renewal:
        values = check.known_fields(where, parameters, Renewal)
        return Renewal(build_law(values["gaps"], f"{where}.gaps"))
    arrivals: Arrivals = check.build(where, parameters, kind)
    return arrivals


@lru_cache(maxsize=8)  # every feed needs it, and the stationary distribution is most of its start
def _two_phases(bursts: Bursts, load: float) -> Modulated:
    share = bursts.share
    quiet = max(0.0, (load - share * bursts.peak) / (1.0 - share))
    return Modulated((quiet, bursts.peak), (bursts.length * (1.0 - share) / share, bursts.length))


def _chances(name: str, value: object, phases: int) -> tuple[float, ...]:
    row = check.each(name, value, check.non_negative)
    if len(row) != phases:
        raise ScenarioError(f"{name} has {len(row)} numbers: it must have {phases}, as rates")
    if abs(math.fsum(row) - 1.0) > CHANCES_TOLERANCE:
        raise ScenarioError(f"{name} sum to {math.fsum(row)!r}: they must sum to 1")
    return row
