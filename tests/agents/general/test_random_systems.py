"""Random systems keep to the stated distribution."""

from __future__ import annotations

import numpy as np
import pytest

from agents.general.random_systems import draw_systems


def test_draws_keep_to_the_stated_distribution() -> None:
    drawn = draw_systems(0, 400, "tests")
    assert all(20 <= s.servers <= 2000 and 1 <= s.routers <= 50 and 1 <= len(s.pools) <= 4 for s in drawn)
    assert all(0.5 <= s.nominal_load <= 0.97 and 0.005 <= s.prices.message <= 0.5 for s in drawn)
    assert all(max(p.rate for p in s.pools) <= 10.0001 * min(p.rate for p in s.pools) for s in drawn)
    assert all(s.capacity == pytest.approx(s.servers) for s in drawn)
    changing = np.mean([any((s.arrivals, s.shares, s.faults, s.news)) for s in drawn])
    assert abs(changing - 1 / 3) < 0.1
    assert drawn == draw_systems(0, 400, "tests")
    assert drawn[0] != draw_systems(0, 1)[0]
    assert draw_systems(0, 3, "tests") == drawn[:3]
