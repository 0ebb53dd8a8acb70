"""The pixels show what the simulator holds."""

import numpy as np
import pytest

from pull_env import Announce, Drain, Faults, Policy, Pool, Probe, Scenario, Send, Take
from pull_env.rendering import ansi, layout, picture, rgb_array, snapshot
from pull_env.simulation.workload import calendar_workload
from tests.oracles.pictures import LARGE, SMALL, SYSTEMS, TAKE_OR_PROBE, simulated, table_rows


def test_a_blocked_customer_is_crossed_out(known):
    cell = slice(216, 248), slice(220 + 2 * 36, 220 + 3 * 36 - 4)
    plain = rgb_array(known)[cell]
    known.arrays.head["blocked"] = 1
    assert "chose 2 of pool 0: blocked" in ansi(known)
    crossed = rgb_array(known)[cell]
    assert (plain == picture.RAMP[5]).all()
    assert not (crossed == picture.RAMP[5]).all()
    assert (crossed.reshape(-1, 3) == picture.CHOSEN).all(axis=1).sum() > 100


def test_the_pixels_of_a_known_state(known):
    pixels = rgb_array(known)
    assert pixels.dtype == np.uint8
    assert pixels.shape == (400, 960, 3)
    left, pitch, side = 220, 36, 32
    for top, levels in ((216, (0, 1, 5)), (270, (2, 7))):
        for k, level in enumerate(levels):
            corners = pixels[[top + 3, top + side - 1], [left + k * pitch + 3, left + k * pitch + side - 1]]
            assert (corners == picture.RAMP[level]).all(), (top, k)
        beyond = pixels[top + 3 : top + side, left + len(levels) * pitch : left + len(levels) * pitch + side]
        assert (beyond == picture.BACKGROUND).all()
    frames = {k: pixels[216 + side + 1, left + k * pitch + 10].tolist() for k in range(3)}
    assert frames == {0: [*picture.PROBED], 1: [*picture.BACKGROUND], 2: [*picture.CHOSEN]}
    assert pixels[270 + side + 1, left + pitch + 10].tolist() == [*picture.PROBED]


def test_routers_as_bars(known):
    """Bars up to 5 over 64 pixels: router 0 holds 1 from pool 0 and 4 from pool 1, and router 1 nothing."""
    pixels = rgb_array(known)
    first, second = pixels[104:168, 230], pixels[104:168, 230 + 48]
    assert (first[:51] == picture.LAST_POOL).all()
    assert (first[51:] == picture.FIRST_POOL).all()
    assert (second == picture.EMPTY).all()
    assert pixels[102, 230].tolist() == [*picture.BACKGROUND]
    assert pixels[102, 230 + 48].tolist() == [*picture.CHOSEN]  # it placed the last customer
    assert pixels[175, 230].tolist() == [*picture.TEXT]  # it has the next one
    assert pixels[175, 230 + 48].tolist() == [*picture.BACKGROUND]
    known.arrays.head["router"] = -1  # a trace has ended
    assert rgb_array(known)[175, 230].tolist() == [*picture.BACKGROUND]
    assert "has the next" not in ansi(known)


@pytest.mark.parametrize("queue", [0, 1, 2, 3, 4, 5, 9, 10, 19, 20, 10_000])
def test_every_cell_has_the_colour_of_its_queue(queue):
    simulator = simulated(LARGE, TAKE_OR_PROBE, 0)
    simulator.arrays.servers["queue"] = queue
    shown = (rgb_array(simulator)[200:-72].reshape(-1, 3)[:, None] == picture.RAMP).all(axis=2).sum(axis=0)
    level = np.flatnonzero(np.array(snapshot.LEVELS) <= queue)[-1]
    assert shown[level] == 10_000 / 5 * 6 * 6  # five servers per cell of six pixels a side
    assert shown.sum() == shown[level]


def test_the_colours_grow_lighter_with_the_queue():
    """Distinct whatever hues a reader sees: at least 8 points of CIE lightness from each to the next."""
    linear = np.where(
        picture.RAMP / 255 <= 0.04045,
        picture.RAMP / 255 / 12.92,
        ((picture.RAMP / 255 + 0.055) / 1.055) ** 2.4,
    )
    lightness = 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16
    assert (np.diff(lightness) > 8).all()


@pytest.mark.parametrize("scenario", SYSTEMS.values(), ids=SYSTEMS)
def test_the_size_of_a_picture_depends_on_the_scenario_only(scenario):
    policy = Policy("all", (Take(), Probe(at_most=8)), Announce())
    shapes = {rgb_array(simulated(scenario, policy, customers)).shape for customers in (0, 1, 500)}
    assert shapes == {(layout.Layout(scenario).height, 960, 3)}


def test_closed_servers_are_shown():
    """Half of a pool fails, and the other pool is drained."""
    faults = Faults(up=5.0, down=5.0, pools=(0,), drains=(Drain(1, 0.0),))
    scenario = Scenario((Pool(40, 1.5), Pool(10, 0.5)), routers=2, load=0.5, faults=faults)
    simulator = simulated(scenario, Policy("blind", (Send(),)), 2000, workload=calendar_workload(scenario))
    closed = snapshot.Snapshot(simulator).closed
    assert closed[40:].all()
    assert 5 < closed[:40].sum() < 35
    assert [row[-1] for row in table_rows(ansi(simulator), "pool")] == [str(closed[:40].sum()), "10"]
    grey = (rgb_array(simulator) == picture.CLOSED).all(axis=2).sum()
    side = layout.Layout(scenario).pitch - layout.Layout(scenario).gap
    assert (closed.sum() - 3) * side**2 < grey < (closed.sum() + 3) * side**2  # the legend, and frames
    assert "closed" not in ansi(simulated(SMALL, TAKE_OR_PROBE, 50))
