"""Positions in the picture: nothing overlaps, and groups hold their members."""

import math

import numpy as np
import pytest

from pull_env.rendering import layout
from tests.oracles.pictures import SYSTEMS


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_groups_are_sorted_and_hold_their_members(size):
    values = np.random.default_rng(0).integers(0, 9, 43)
    medians, group = layout.grouped(values, size)
    assert medians.size == -(-43 // size)
    assert np.bincount(group).tolist() == [size] * (43 // size) + [43 % size] * (43 % size > 0)
    for k in range(medians.size):
        members = np.sort(values[group == k])
        assert medians[k] == members[members.size // 2]
    assert size == 1 or (np.diff(medians) >= 0).all()


@pytest.mark.parametrize("scenario", SYSTEMS.values(), ids=SYSTEMS)
def test_everything_has_its_own_place(scenario):
    plan = layout.Layout(scenario)
    tops, sizes = plan.tops.tolist(), [pool.size for pool in scenario.pools]
    rows = [math.ceil(math.ceil(size / plan.servers_per_cell) / plan.columns) for size in sizes]
    ends = [top + row * plan.pitch for top, row in zip(tops, rows, strict=True)]
    assert all(end < top for end, top in zip(ends, [*tops[1:], plan.height - layout.FOOT + 1], strict=True))
    assert plan.columns * plan.pitch <= layout.PLOT
    assert plan.height % 16 == layout.FRAME % 16 == 0
    assert plan.height < 900 or len(sizes) > 9
    assert plan.bars * plan.bar <= layout.PLOT
    assert plan.bars * plan.routers_per_bar >= scenario.routers
    assert plan.bar_width > 0
