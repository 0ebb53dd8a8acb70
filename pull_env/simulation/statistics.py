"""Estimates with intervals: replications or batch means, paired differences, quantiles of the wait, drift."""

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
    """A mean with its interval of 95 %; all NaN where no mean is claimed.

    Attributes:
        mean: The point estimate.
        low: Lower end of the interval.
        high: Upper end.
        count: Independent observations (replications, or batches of a single run) behind it.
        error: Standard error of the mean.
        samples: The observations, in order of the replications: what paired differences are made of.
    """

    mean: float
    low: float
    high: float
    count: int
    error: float
    samples: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval of another `level`, by Student's law with `count` - 1 degrees of freedom."""
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
    """Return the two-sided quantile of Student's law for `count` observations; infinite for one."""
    return float(special.stdtrit(count - 1, 0.5 + level / 2)) if count > 1 else math.inf


def estimate(samples: Sequence[float] | Floats) -> Estimate:
    """Return the estimate behind independent `samples`."""
    values = np.asarray(samples, np.float64)
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.inf
    return from_error(float(values.mean()), error, values.size, tuple(values.tolist()))


def from_error(mean: float, error: float, count: int, samples: tuple[float, ...] = ()) -> Estimate:
    """Return the estimate of `mean` with a standard error that stems from `count` observations."""
    half = t_quantile(LEVEL, count) * error if error > 0 else 0.0
    return Estimate(mean, mean - half, mean + half, count, error, samples)


def nan_estimate(count: int) -> Estimate:
    """Return the estimate that claims nothing."""
    return Estimate(math.nan, math.nan, math.nan, count, math.nan)


def paired(first: Estimate, second: Estimate) -> Estimate:
    """Return `first` - `second`, from two runs on the same seeds (common random numbers).

    Raises:
        ValueError: The two do not stem from the same number of replications.
    """
    if len(first.samples) != len(second.samples) or not first.samples:
        raise ValueError(
            f"paired needs equal replications: {len(first.samples)} and {len(second.samples)} were given"
        )
    return estimate(np.subtract(first.samples, second.samples))


def erlang_quantiles(counts: Array, rates: Floats, probabilities: Sequence[float]) -> dict[float, Estimate]:
    """Return quantiles of the wait of a customer that found q customers at a server of rate mu: Erlang(q,
    mu).

    Args:
        counts: (replications, J, Q) int64  accepted customers by queue found.
        rates: (J,) service rates.
        probabilities: In (0, 1).

    Returns:
        By probability, in time units. The error is that of the law at the quantile, over its density there.
    """
    pool, queue = np.nonzero(counts.sum(axis=0))
    shares = counts[:, pool, queue] / counts.sum(axis=(1, 2))[:, None]  # (replications, kinds of customers)
    mu, mean_share = rates[pool], shares.mean(axis=0)
    waits = queue > 0

    def survival(t: float) -> Floats:
        """P(wait > t) by kind of customer."""
        return np.where(waits, special.gammaincc(np.maximum(queue, 1), mu * t), 0.0)

    def density(t: float) -> Floats:
        power = special.xlogy(queue - 1, mu * t) - mu * t - special.gammaln(np.maximum(queue, 1))
        return np.where(waits, mu * np.exp(power), 0.0)

    def excess(p: float, t: float) -> float:
        return float(mean_share @ survival(t)) - (1 - p)

    longest = float(np.max(np.where(waits, queue / mu, 0.0))) * 3 + 40 / float(rates.min())
    found = {}
    for p in probabilities:
        t = _root(partial(excess, p), longest)
        found[p] = _quantile(t, shares @ survival(t), float(mean_share @ density(t)), counts.shape[0])
    return found


def histogram_quantiles(counts: Array, probabilities: Sequence[float]) -> dict[float, Estimate]:
    """Return quantiles of realised waits that `kernels.tally.wait_bin` binned; linear within a bin.

    Args:
        counts: (replications, J, Q) int64  accepted customers by bin.
        probabilities: In (0, 1).
    """
    by_bin = counts.sum(axis=1)
    upto = np.cumsum(by_bin, axis=1) / by_bin.sum(axis=1)[:, None]  # (replications, Q)
    bins = np.arange(counts.shape[2])
    octave, within = np.divmod(bins - 1, WAIT_BINS_PER_OCTAVE)
    low = np.ldexp(0.5 + within / (2 * WAIT_BINS_PER_OCTAVE), octave + WAIT_OCTAVES[0])
    width = np.ldexp(0.5 / WAIT_BINS_PER_OCTAVE, octave + WAIT_OCTAVES[0])
    low[0] = width[0] = 0.0
    mean = upto.mean(axis=0)
    found = {}
    for p in probabilities:
        k = int(np.searchsorted(mean, p))
        before, mass = (mean[k - 1], mean[k] - mean[k - 1]) if k else (0.0, mean[0])
        part = (p - before) / mass
        at = upto[:, k - 1] + part * (upto[:, k] - upto[:, k - 1]) if k else upto[:, 0]
        found[p] = _quantile(
            float(low[k] + part * width[k]), at, float(mass / width[k]) if k else 0.0, counts.shape[0]
        )
    return found


def _root(decreasing: Callable[[float], float], high: float) -> float:
    """Return where `decreasing` crosses 0, from `high` or beyond it; 0 if it starts below.

    Bisection to the last bit: scipy.optimize would take a third of a second to import.
    """
    low = 0.0
    if decreasing(low) <= 0.0:
        return 0.0
    while decreasing(high) > 0.0:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if decreasing(middle) > 0.0 else (low, middle)
    return high


def _quantile(t: float, law: Floats, density: float, replications: int) -> Estimate:
    """Return the estimate of a quantile `t` from the `law` at t in each replication and the density there."""
    if t == 0.0 or density <= 0.0:
        return Estimate(t, t, t, replications, 0.0)
    spread = float(law.std(ddof=1)) / math.sqrt(replications) if replications > 1 else math.inf
    return from_error(t, spread / density, replications)


def has_drift(numbers: Floats, significance: float = 1e-4) -> bool:
    """Tell whether customers in the system grow, beyond what a stationary system shows by chance.

    The increments between batches are compared with zero. In a stationary system they cancel, so the test
    errs on the side of stability; in an unstable one they keep their sign, so growth that fades (a warm-up
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
