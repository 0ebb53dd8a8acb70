"""Estimates come back from rows."""

from __future__ import annotations

import json

import pytest

from baselines.reproduce.common.study import read_estimate
from pull_env.reporting.rows import to_line
from pull_env.simulation.statistics import estimate, nan_estimate


@pytest.mark.parametrize("samples", [[1.0, 1.5, 2.5], [4.0, 4.0], [7.0]])
def test_an_estimate_comes_back_from_a_row(samples: list[float]) -> None:
    first = estimate(samples)
    again = read_estimate(json.loads(to_line(first.to_dict())))
    assert (again.mean, again.count) == (first.mean, first.count)
    assert (again.low, again.high) == pytest.approx((first.low, first.high))
    assert again.error == pytest.approx(first.error)


def test_what_is_not_claimed_comes_back_so() -> None:
    assert str(read_estimate(json.loads(to_line(nan_estimate(8).to_dict())))) == str(nan_estimate(8))
