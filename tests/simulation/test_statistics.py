"""Intervals, quantiles and the drift test against known values and known error rates."""

import math

import numpy as np
import pytest

from pull_env.kernels.statistics import BINS, wait_bin
from pull_env.simulation.statistics import (
    erlang_quantiles,
    estimate,
    has_drift,
    histogram_quantiles,
    paired,
    t_quantile,
)


def test_student():
    assert t_quantile(0.95, 8) == pytest.approx(2.3646242510102993)
    assert t_quantile(0.999, 61) == pytest.approx(3.460, abs=1e-3)  # printed tables, 60 degrees of freedom
    assert t_quantile(0.95, 1) == math.inf


def test_an_estimate_of_three():
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.count) == (2.0, 3)
    assert found.error == pytest.approx(1 / math.sqrt(3))
    assert found.high - found.mean == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert found.interval(0.95) == pytest.approx((found.low, found.high))
    assert float(found) == 2.0


def test_intervals_cover_as_often_as_they_say():
    draw = np.random.default_rng(0)
    found = [estimate(draw.normal(size=8)) for _ in range(4000)]
    covered = np.mean([e.low <= 0 <= e.high for e in found])
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


def test_paired_needs_the_same_replications():
    with pytest.raises(ValueError, match="3 and 2"):
        paired(estimate([1.0, 2.0, 3.0]), estimate([1.0, 2.0]))


def test_erlang_quantiles_of_a_known_mixture():
    """Half of the customers do not wait, half wait for one service of rate 2: P(wait > t) = exp(-2 t) / 2."""
    counts = np.zeros((4, 1, 16), np.int64)
    counts[:, 0, 0] = counts[:, 0, 1] = 500
    found = erlang_quantiles(counts, np.array([2.0]), (0.5, 0.9, 0.99))
    assert found[0.5].mean == 0.0
    assert found[0.9].mean == pytest.approx(math.log(5) / 2, rel=1e-9)
    assert found[0.99].mean == pytest.approx(math.log(50) / 2, rel=1e-9)


def test_binned_quantiles_of_uniform_waits():
    counts = np.zeros((2, 1, BINS), np.int64)
    for wait in np.arange(0.0005, 1.0, 0.001):
        counts[:, 0, wait_bin.py_func(wait)] += 1
    found = histogram_quantiles(counts, (0.1, 0.5, 0.9, 0.99))
    for p, value in found.items():
        assert value.mean == pytest.approx(p, abs=0.002)


@pytest.mark.parametrize("wait", [1e-6, 0.3, 0.5, 1.0, 1.5, 7.0, 1e6])
def test_a_bin_is_narrow_and_holds_its_wait(wait):
    counts = np.zeros((2, 1, BINS), np.int64)
    counts[:, 0, wait_bin.py_func(wait)] = 10
    low, high = (histogram_quantiles(counts, (p,))[p].mean for p in (1e-9, 1 - 1e-9))
    assert low <= wait * (1 + 1e-9)
    assert wait <= high * (1 + 1e-9)
    assert (high - low) / wait <= 1 / 64 + 1e-9


def walks(draw, drift, replications=8, batches=32):
    """Random walks with a drift: customers in an unstable pool."""
    return np.cumsum(np.pad(draw.normal(drift, 1.0, (replications, batches)), ((0, 0), (1, 0))), axis=1)


def test_drift_is_seen_and_noise_is_not():
    draw = np.random.default_rng(1)
    assert np.mean([has_drift(walks(draw, 0.4)) for _ in range(300)]) > 0.95
    assert np.mean([has_drift(walks(draw, 0.0)) for _ in range(2000)]) < 0.002
    assert not any(
        has_drift(draw.geometric(0.01, (8, 33)).astype(float)) for _ in range(2000)
    )  # a stationary pool


def test_growth_that_fades_is_no_drift():
    filling = 1000 * (1 - np.exp(-np.arange(33) / 4)) + np.random.default_rng(2).normal(0, 5, (8, 33))
    assert not has_drift(filling)
    assert has_drift(30.0 * np.arange(33) + np.random.default_rng(2).normal(0, 5, (8, 33)))
