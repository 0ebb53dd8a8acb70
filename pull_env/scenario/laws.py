"""Distributions of service requirements and of gaps between arrivals, of mean 1.

The rates are the scenario's. A distribution is a frozen dataclass, which `law` names in a table:
`service = {law = "lognormal", scv = 4}`. Its squared coefficient of variation scv, variance / mean^2, is 0
for constant values and 1 for exponential ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.scenario.columns import positive_numbers
from pull_env.scenario.validation import check_scenario as check

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Exponential:
    """The exponential distribution, which is the default."""

    law: str = field(default="exponential", init=False)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1.0

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values, which do not depend on how calls split them."""
        return generator.standard_exponential(count)


@dataclass(frozen=True)
class Deterministic:
    """The constant 1."""

    law: str = field(default="deterministic", init=False)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 0.0

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return `count` ones."""
        return np.ones(count)


@dataclass(frozen=True)
class Erlang:
    """The sum of exponential phases of equal mean.

    Attributes:
        phases: Their number; scv = 1 / phases.

    Raises:
        ScenarioError: If `phases` is not a whole number from 1.
    """

    phases: int
    law: str = field(default="erlang", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.count, "phases")

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1.0 / self.phases

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values."""
        return generator.standard_gamma(self.phases, count) / self.phases


@dataclass(frozen=True)
class Hyperexponential:
    """A mixture of two exponentials with balanced means: each is half of the work.

    Attributes:
        scv: Squared coefficient of variation, above 1.

    Raises:
        ScenarioError: If `scv` is not a finite number above 1.
    """

    scv: float
    law: str = field(default="hyperexponential", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.number, "scv", above=1.0)

    @property
    def chance(self) -> float:
        """Probability p of the shorter one; the means are 1 / (2 p), 1 / (2 (1 - p))."""
        return 0.5 + 0.5 * math.sqrt((self.scv - 1.0) / (self.scv + 1.0))

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values.

        One uniform number chooses the exponential, and is uniform again given the choice.
        """
        p, uniform = self.chance, generator.random(count)
        short = uniform < p
        chance = np.where(short, p, 1.0 - p)
        within = np.where(short, uniform, uniform - p) / chance
        return -np.log1p(-within) / (2.0 * chance)


@dataclass(frozen=True)
class Lognormal:
    """The exponential of a normal variable.

    Attributes:
        scv: Squared coefficient of variation.

    Raises:
        ScenarioError: If `scv` is not a positive finite number.
    """

    scv: float
    law: str = field(default="lognormal", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.positive, "scv")

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values."""
        variance = math.log1p(self.scv)
        return generator.lognormal(-0.5 * variance, math.sqrt(variance), count)


@dataclass(frozen=True)
class Pareto:
    """A power law, P(X > x) = (smallest / x)^shape, truncated if it has a bound.

    Attributes:
        shape: Exponent of the tail. Without bound it must be above 1 for the mean to exist, and the variance
            is infinite up to 2, so that no interval of a mean wait can be trusted.
        bound: Largest value as a multiple of the smallest; None for no limit.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    shape: float
    bound: float | None = None
    law: str = field(default="pareto", init=False)

    def __post_init__(self) -> None:
        if self.bound is None:
            check.fields(self, check.number, "shape", above=1.0)
        else:
            check.fields(self, check.positive, "shape")
            check.fields(self, check.number, "bound", above=1.0)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation; infinite without bound for shapes up to 2."""
        if self.bound is None and self.shape <= 2.0:
            return math.inf
        return self._moment(2) / self._moment(1) ** 2 - 1.0

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values."""
        cut = 0.0 if self.bound is None else self.bound**-self.shape
        tail = 1.0 - generator.random(count) * (1.0 - cut)  # in (cut, 1]
        return tail ** (-1.0 / self.shape) / self._moment(1)

    def _moment(self, power: int) -> float:
        """Return a moment of the distribution with smallest value 1."""
        excess = self.shape - power
        if self.bound is None:
            return self.shape / excess
        logarithm = math.log(self.bound)
        # (1 - bound^-excess) / excess, which is the logarithm of the bound where excess is 0
        integral = -math.expm1(-excess * logarithm) / excess if excess else logarithm
        return self.shape * integral / -math.expm1(-self.shape * logarithm)


@dataclass(frozen=True)
class Weibull:
    """P(X > x) = exp(-(x / scale)^shape), heavier than exponential for shape < 1.

    Attributes:
        shape: Exponent, at least 0.1; below, the largest of a million values dominates their sum.

    Raises:
        ScenarioError: If `shape` is not a finite number from 0.1.
    """

    shape: float
    law: str = field(default="weibull", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.number, "shape", least=0.1)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return math.gamma(1.0 + 2.0 / self.shape) / math.gamma(1.0 + 1.0 / self.shape) ** 2 - 1.0

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values."""
        return generator.weibull(self.shape, count) / math.gamma(1.0 + 1.0 / self.shape)


@dataclass(frozen=True)
class Empirical:
    """Values drawn at random from a file, with replacement, scaled to mean 1.

    Attributes:
        file: Path of a CSV or Parquet file, or one in Standard Workload Format.
        column: Name of the column with the values, which must be positive.

    Raises:
        ScenarioError: If a value is not a string or is empty; or, when values are drawn, if the file cannot
            be used.
    """

    file: str
    column: str
    law: str = field(default="empirical", init=False)

    def __post_init__(self) -> None:
        check.fields(self, check.path, "file")
        check.fields(self, check.text, "column")

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return float(self._values().var())

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return the next `count` values."""
        values = self._values()
        return values[generator.integers(values.size, size=count)]

    def _values(self) -> Floats:
        return positive_numbers(self.file, self.column)


Law = Exponential | Deterministic | Erlang | Hyperexponential | Lognormal | Pareto | Weibull | Empirical
LAWS: dict[str, type[Any]] = {
    "exponential": Exponential,
    "deterministic": Deterministic,
    "erlang": Erlang,
    "hyperexponential": Hyperexponential,
    "lognormal": Lognormal,
    "pareto": Pareto,
    "weibull": Weibull,
    "empirical": Empirical,
}


def build_law(data: object, where: str) -> Law:
    """Return the distribution that a table describes by `law` and its parameters.

    Raises:
        ScenarioError: If it is unknown, or a parameter is unknown, missing or not allowed.
    """
    kind, parameters = check.variant(where, data, "law", LAWS)
    law: Law = check.build(where, parameters, kind)
    return law


def check_law(name: str, value: object) -> None:
    """Refuse a value that is not a distribution."""
    if not isinstance(value, tuple(LAWS.values())):
        raise check.refusal(
            name, value, f"a distribution: {', '.join(kind.__name__ for kind in LAWS.values())}"
        )
