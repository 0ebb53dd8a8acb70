"""Differences of a trained router to other policies."""

import pytest

from agents.report.comparison import difference


def test_a_difference_and_its_verdict():
    def row(costs, stable=True):
        return {"samples": {"cost": costs}, "stable": stable}

    better = difference(row([0.8, 1.9, 2.7]), row([1.0, 2.1, 2.9]))
    assert better.mean == pytest.approx(-10)
    assert better.verdict == "wins"
    assert difference(row([1.0, 2.0]), row([1.1, 1.8])).verdict == "equal"
    assert difference(row([1.2, 2.1, 3.2]), row([1.0, 2.0, 3.0])).verdict == "loses"
    assert difference(row([1.0], False), row([1.0])) is None
