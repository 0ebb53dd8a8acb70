"""Criteria of verdicts: they pass, fail, or leave undecided."""

from __future__ import annotations

from baselines.reproduce.common.criteria import above, all_hold, rises, vanishing, within
from baselines.reproduce.common.study import read_estimate
from pull_env.simulation.statistics import nan_estimate


def near(mean: float, half: float = 0.01):  # type: ignore[no-untyped-def]
    return read_estimate({"mean": mean, "low": mean - half, "high": mean + half, "count": 8})


def test_criteria_pass_fail_and_leave_undecided() -> None:
    assert within(near(1.0), 1.0, 0.02) is True
    assert within(near(1.02), 1.0, 0.02) is None
    assert within(near(1.04), 1.0, 0.02) is False
    assert within(near(-1.0), -1.0, 0.02) is True
    assert within(nan_estimate(8), 1.0, 0.02) is None
    assert above(near(1.0), 0.9) is True
    assert above(near(1.0), 1.005) is None
    assert above(near(1.0), 1.1) is False
    assert rises([near(1.0), near(1.03)])
    assert not rises([near(1.0), near(1.01), near(0.9)])
    assert vanishing([near(1.0), near(0.5), near(0.05)]) is True
    assert vanishing([near(1.0), near(0.5), near(0.1)]) is None
    assert vanishing([near(1.0), near(0.05), near(0.08)]) is False
    assert vanishing([near(0.001)]) is None
    assert all_hold([True, True]) is True
    assert all_hold([True, None]) is None
    assert all_hold([None, False]) is False
    assert all_hold([]) is None
