"""Estimates with intervals: means, paired differences, quantiles of waits, drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from pull_env.kernels.state import WAIT_BINS_PER_OCTAVE, WAIT_OCTAVES

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; all NaN for unstable runs.

    Attributes:
        mean: The point estimate.
        low: Lower end of the interval.
        high: Upper end.
        count: Number of independent observations: replications, or batches of a single run.
        error: Standard error of the mean.
        samples: The observations in the order of the replications, for paired differences.
    """

    mean: float
    low: float
    high: float
    count: int
    error: float
    samples: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval of another `level`, by Student's t distribution."""
        half = self.half_width(level)
        return self.mean - half, self.mean + half

    def half_width(self, level: float = LEVEL) -> float:
        """Return half the width of the interval of `level`."""
        return t_quantile(level, self.count) * self.error

    def to_dict(self) -> dict[str, float | int | None]:
        """Return mean, low, high and count as JSON values; None for NaN and infinities."""
        numbers = {"mean": self.mean, "low": self.low, "high": self.high}
        return {**{k: v if math.isfinite(v) else None for k, v in numbers.items()}, "count": self.count}

    def __float__(self) -> float:
        return self.mean


def t_quantile(level: float, count: int) -> float:
    """Return Student's two-sided quantile for `count` observations; inf for one."""
    return float(special.stdtrit(count - 1, 0.5 + level / 2)) if count > 1 else math.inf


def estimate(samples: Sequence[float] | Floats) -> Estimate:
    """Return the estimate from independent `samples`."""
    values = np.asarray(samples, np.float64)
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.inf
    return from_error(float(values.mean()), error, values.size, tuple(values.tolist()))


def from_error(mean: float, error: float, count: int, samples: tuple[float, ...] = ()) -> Estimate:
    """Return the estimate of `mean` with a standard `error` from `count` observations."""
    half = t_quantile(LEVEL, count) * error if error > 0 else 0.0
    return Estimate(mean, mean - half, mean + half, count, error, samples)


def nan_estimate(count: int) -> Estimate:
    """Return an all-NaN estimate, for unstable runs."""
    return Estimate(math.nan, math.nan, math.nan, count, math.nan)


def paired(first: Estimate, second: Estimate) -> Estimate:
    """Return `first` - `second`, from runs on the same seeds (common random numbers).

    Raises:
        ValueError: The two have different numbers of replications.
    """
    if len(first.samples) != len(second.samples) or not first.samples:
        raise ValueError(
            f"paired needs equal replications: {len(first.samples)} and {len(second.samples)} were given"
        )
    return estimate(np.subtract(first.samples, second.samples))


def erlang_quantiles(counts: Array, rates: Floats, probabilities: Sequence[float]) -> dict[float, Estimate]:
    """Return quantiles of the wait, given the queues that customers found.

    A customer that finds q customers at a server of rate mu waits an Erlang(q, mu) time.

    Args:
        counts: (replications, J, Q) int64  accepted customers by queue found.
        rates: (J,) service rates.
        probabilities: In (0, 1).

    Returns:
        By probability, in time units. The error is that of the distribution at the quantile, divided by its
        density there.
    """
    pool, queue = np.nonzero(counts.sum(axis=0))
    shares = counts[:, pool, queue] / counts.sum(axis=(1, 2))[:, None]  # (replications, kinds of customers)
    mu, mean_share = rates[pool], shares.mean(axis=0)
    waits = queue > 0

    def survival(t: float) -> Floats:
        """Return P(wait > t) by kind of customer."""
        return np.where(waits, special.gammaincc(np.maximum(queue, 1), mu * t), 0.0)

    def density(t: float) -> Floats:
        power = special.xlogy(queue - 1, mu * t) - mu * t - special.gammaln(np.maximum(queue, 1))
        return np.where(waits, mu * np.exp(power), 0.0)

    def excess(p: float, t: float) -> float:
        return float(mean_share @ survival(t)) - (1 - p)

    longest = float(np.max(np.where(waits, queue / mu, 0.0))) * 3 + 40 / float(rates.min())
    quantiles = {}
    for p in probabilities:
        t = _root(partial(excess, p), longest)
        quantiles[p] = _quantile(t, shares @ survival(t), float(mean_share @ density(t)), counts.shape[0])
    return quantiles


def histogram_quantiles(counts: Array, probabilities: Sequence[float]) -> dict[float, Estimate]:
    """Return quantiles of realised waits from their histogram, linear within a bin.

    Args:
        counts: (replications, J, Q) int64  accepted customers by `kernels.statistics.wait_bin`.
        probabilities: In (0, 1).
    """
    by_bin = counts.sum(axis=1)
    cumulative = np.cumsum(by_bin, axis=1) / by_bin.sum(axis=1)[:, None]  # (replications, Q)
    bins = np.arange(counts.shape[2])
    octave, within = np.divmod(bins - 1, WAIT_BINS_PER_OCTAVE)
    low = np.ldexp(0.5 + within / (2 * WAIT_BINS_PER_OCTAVE), octave + WAIT_OCTAVES[0])
    width = np.ldexp(0.5 / WAIT_BINS_PER_OCTAVE, octave + WAIT_OCTAVES[0])
    low[0] = width[0] = 0.0
    mean = cumulative.mean(axis=0)
    quantiles = {}
    for p in probabilities:
        k = int(np.searchsorted(mean, p))
        before, mass = (mean[k - 1], mean[k] - mean[k - 1]) if k else (0.0, mean[0])
        part = (p - before) / mass
        at = (
            cumulative[:, k - 1] + part * (cumulative[:, k] - cumulative[:, k - 1]) if k else cumulative[:, 0]
        )
        quantiles[p] = _quantile(
            float(low[k] + part * width[k]), at, float(mass / width[k]) if k else 0.0, counts.shape[0]
        )
    return quantiles


def _root(decreasing: Callable[[float], float], high: float) -> float:
    """Return the root of a decreasing function; 0 if it starts below 0.

    Bisection to the last bit, up from `high` if needed: scipy.optimize takes a third of a second to import.
    """
    low = 0.0
    if decreasing(low) <= 0.0:
        return 0.0
    while decreasing(high) > 0.0:
        low, high = high, 2 * high
    while low < (midpoint := (low + high) / 2) < high:
        low, high = (midpoint, high) if decreasing(midpoint) > 0.0 else (low, midpoint)
    return high


def _quantile(t: float, at: Floats, density: float, replications: int) -> Estimate:
    """Return the estimate of a quantile `t`.

    Args:
        t: The quantile of all replications together.
        at: (replications,) the distribution at `t`.
        density: The density at `t`.
        replications: How many.
    """
    if t == 0.0 or density <= 0.0:
        return Estimate(t, t, t, replications, 0.0)
    spread = float(at.std(ddof=1)) / math.sqrt(replications) if replications > 1 else math.inf
    return from_error(t, spread / density, replications)


def has_drift(numbers: Floats, significance: float = 1e-4) -> bool:
    """Return whether the number of customers grows more than by chance.

    The increments between batches are compared with zero. In a stationary system they cancel, so the test
    errs on the side of stability. In an unstable one they keep their sign, so growth that fades (a warm-up
    that was too short) does not count: the second half must grow at least a quarter as much as the first.

    Args:
        numbers: (replications, batches + 1) customers in a pool at the ends of batches.
        significance: One-sided probability of a false alarm, for increments like those of a random walk.
    """
    steps = np.diff(numbers, axis=1)
    half = steps.shape[1] // 2
    first, second = steps[:, :half].sum(), steps[:, half:].sum()
    error = float(steps.std(ddof=1)) / math.sqrt(steps.size)
    if error == 0.0:
        return bool(steps.mean() > 0)
    bound = float(special.stdtrit(steps.size - 1, 1 - significance))
    return bool(steps.mean() / error > bound and second > 0.25 * max(first, 0.0))
