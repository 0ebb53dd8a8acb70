"""What the pictures show is what the simulator holds, and looking changes nothing."""

import math
import re
import time
from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import baselines
from pull_env import (
    Announce,
    Cycle,
    Drain,
    Faults,
    Inspect,
    Policy,
    Pool,
    Prices,
    Probe,
    Scenario,
    Send,
    Take,
    as_scenario,
)
from pull_env.envs.router import RouterEnv
from pull_env.rendering import RENDERERS, ansi, canvas, layout, picture, rgb_array, snapshot
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import calendar_workload

LARGE = Scenario((Pool(6_000, 1.25), Pool(4_000, 0.6, buffer=5)), routers=500, load=0.95, name="large")
SMALL = Scenario(
    (Pool(3, 1.5), Pool(2, 0.5, buffer=4)), routers=2, load=1.2, prices=Prices(block=3.0), name="Small 1"
)
TAKE_OR_PROBE = Policy("take or probe", (Take(), Probe(at_most=3, stop_at=0.0)), Announce())


def simulated(scenario, policy, customers, *, seed=0, workload=None):
    scenario = as_scenario(scenario)
    simulator = Simulator(scenario, policy.steps, policy.announce, workload=workload)
    simulator.reset(seed)
    simulator.run(encode(policy.steps, scenario), customers)
    return simulator


def bytes_of(simulator):
    """All that the simulator holds, to the bit."""
    arrays = [getattr(simulator.arrays, field.name) for field in fields(simulator.arrays)]
    flat = [
        part for array in arrays for part in (vars(array).values() if hasattr(array, "order") else [array])
    ]
    return [array.tobytes() for array in flat]


@pytest.fixture
def known():
    """A simulator whose state is set by hand: queues 0, 1, 7 and 2, 25; router 1 asked 0 and 4, and chose 2."""
    simulator = simulated(SMALL, TAKE_OR_PROBE, 50)
    arrays = simulator.arrays
    arrays.servers["queue"] = [0, 1, 7, 2, 25]
    arrays.lists["held"] = [[1, 4], [0, 0]]
    arrays.head["last_router"], arrays.head["last_server"], arrays.head["probed_count"] = 1, 2, 2
    arrays.head["router"], arrays.head["blocked"], arrays.head["wait"] = 0, 0, 1.25
    arrays.probed[:2] = [0, 4]
    return simulator


def rows(text, first):
    """The cells of the lines of the table whose first heading is `first`."""
    lines = text.split(f"\n {first} ")[1].splitlines()[2:]
    return [re.split(r"  +", line.strip()) for line in lines[: lines.index("") if "" in lines else None]]


def test_the_text_of_a_known_state(known):
    text = ansi(known)
    assert "Small 1: time " in text
    assert ", 50 customers placed\n" in text
    assert "router 1 asked servers 0, 4, chose 2 of pool 0: wait 1.25\n" in text
    assert rows(text, "pool") == [
        ["0", "3", "1.5", "-", "8", "1", "1", ".", ".", ".", "1", ".", "."],
        ["1", "2", "0.5", "4", "27", ".", ".", "1", ".", ".", ".", ".", "1"],
    ]
    assert rows(text, "router") == [
        ["0", "5", "1", "4", "has the next"],
        ["1", "0", "0", "0", "placed the last"],
    ]
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_the_text_counts_servers_and_routers_of_a_large_system():
    simulator = simulated(LARGE, TAKE_OR_PROBE, 100_000)
    text, arrays = ansi(simulator), simulator.arrays
    bounds = [*snapshot.LEVELS, np.inf]
    for row, queues in zip(rows(text, "pool"), np.split(arrays.servers["queue"], [6_000]), strict=True):
        assert row[5:] == [str(c) if c else "." for c in np.histogram(queues, bounds)[0]]
        assert int(row[4]) == queues.sum()
    held = arrays.lists["held"]
    for row, counts in zip(rows(text, "routers by messages"), (held.sum(axis=1), *held.T), strict=True):
        assert row[2:] == [str(c) if c else "." for c in np.histogram(counts, bounds)[0]]
        assert int(row[1]) == counts.sum()
    assert held.sum() > 0
    assert max(map(len, text.splitlines())) <= 110


def test_means_are_those_of_the_rewards():
    env = RouterEnv(SMALL)
    env.reset(seed=3)
    shot = snapshot.Snapshot(env.simulator)
    assert np.isnan([shot.wait, shot.messages, shot.cost]).all()
    assert shot.last_customer() == "no customer has been placed yet"
    assert "wait -, messages -, cost - a customer\n" in ansi(env.simulator)
    infos = [env.step(k % 18)[4] for k in range(500)]
    shot = snapshot.Snapshot(env.simulator)
    assert shot.placed == 500
    assert shot.cost == pytest.approx(np.mean([info["cost"] for info in infos]))
    assert shot.messages == pytest.approx(np.mean([info["messages"] for info in infos]))
    assert shot.wait == pytest.approx(np.mean([info["wait"] for info in infos if not info["blocked"]]))
    assert shot.time == infos[-1]["time"]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Policy("blind", (Send(),)), r"router \d asked nobody, chose \d of pool \d: (wait \S+|blocked)"),
        (Policy("one", (Probe(at_most=1),)), r"router \d asked server (\d), chose \1 of .*"),
        (
            Policy("four", (Probe(at_most=4, replace=True),)),
            r"router \d asked servers \d, \d, \d, \d, chose .*",
        ),
        (Policy("many", (Probe(at_most=30, replace=True),)), r"router \d asked 30 servers, chose .*"),
        (Policy("jsq", (Inspect(),)), r"router \d looked at all servers, chose .*"),
        (Policy("turns", (Cycle(),)), r"router \d asked nobody, chose .*"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_sentence_on_the_last_customer(policy, sentence):
    assert re.fullmatch(sentence, snapshot.Snapshot(simulated(SMALL, policy, 40)).last_customer())


def test_a_blocked_customer_is_said_and_crossed_out(known):
    cell = slice(216, 248), slice(220 + 2 * 36, 220 + 3 * 36 - 4)
    plain = rgb_array(known)[cell]
    known.arrays.head["blocked"] = 1
    assert "chose 2 of pool 0: blocked" in ansi(known)
    crossed = rgb_array(known)[cell]
    assert (plain == picture.RAMP[5]).all()
    assert not (crossed == picture.RAMP[5]).all()
    assert (crossed.reshape(-1, 3) == picture.SENT).all(axis=1).sum() > 100


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
    assert frames == {0: [*picture.ASKED], 1: [*picture.BACKGROUND], 2: [*picture.SENT]}
    assert pixels[270 + side + 1, left + pitch + 10].tolist() == [*picture.ASKED]


def test_routers_as_bars(known):
    """Bars up to 5 over 64 pixels: router 0 holds 1 from pool 0 and 4 from pool 1, and router 1 nothing."""
    pixels = rgb_array(known)
    first, second = pixels[104:168, 230], pixels[104:168, 230 + 48]
    assert (first[:51] == picture.LAST_POOL).all()
    assert (first[51:] == picture.FIRST_POOL).all()
    assert (second == picture.EMPTY).all()
    assert pixels[102, 230].tolist() == [*picture.BACKGROUND]
    assert pixels[102, 230 + 48].tolist() == [*picture.SENT]  # it placed the last customer
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
    assert shown[level] == 10_000 / 5 * 6 * 6  # five servers a cell of six pixels a side
    assert shown.sum() == shown[level]


def test_the_colours_grow_lighter_with_the_queue():
    """So they can be told apart whatever hues are seen: at least 8 points of CIE lightness from each to the next."""
    linear = np.where(
        picture.RAMP / 255 <= 0.04045,
        picture.RAMP / 255 / 12.92,
        ((picture.RAMP / 255 + 0.055) / 1.055) ** 2.4,
    )
    lightness = 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16
    assert (np.diff(lightness) > 8).all()


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_groups_are_sorted_and_hold_their_members(size):
    values = np.random.default_rng(0).integers(0, 9, 43)
    middle, group = layout.grouped(values, size)
    assert middle.size == -(-43 // size)
    assert np.bincount(group).tolist() == [size] * (43 // size) + [43 % size] * (43 % size > 0)
    for k in range(middle.size):
        members = np.sort(values[group == k])
        assert middle[k] == members[members.size // 2]
    assert size == 1 or (np.diff(middle) >= 0).all()


SYSTEMS = {
    "ten": Scenario((Pool(10),), load=0.8),
    "small": SMALL,
    "large": LARGE,
    "forty pools": Scenario(tuple(Pool(3, 1 + k / 10) for k in range(40)), routers=30, load=0.8),
    "skewed": Scenario((Pool(1), Pool(99_999, 0.1)), routers=241, load=0.5),
    **{name: as_scenario(name) for name in ("two-speeds", "homogeneous", "many-pools", "data-center")},
}


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


@pytest.mark.parametrize("scenario", SYSTEMS.values(), ids=SYSTEMS)
def test_the_size_of_a_picture_depends_on_the_scenario_only(scenario):
    policy = Policy("all", (Take(), Probe(at_most=8)), Announce())
    shapes = {rgb_array(simulated(scenario, policy, customers)).shape for customers in (0, 1, 500)}
    assert shapes == {(layout.Layout(scenario).height, 960, 3)}


def test_a_large_system_is_drawn_within_a_tenth_of_a_second():
    simulator = simulated(LARGE, TAKE_OR_PROBE, 50_000)
    for draw in RENDERERS.values():
        seconds = []
        for _ in range(8):
            start = time.perf_counter()
            draw(simulator)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.1


@pytest.mark.parametrize("clock", ["markov", "calendar"])
@pytest.mark.parametrize("draw", RENDERERS.values(), ids=RENDERERS)
def test_looking_changes_nothing(draw, clock):
    scenario = as_scenario("finite-buffers")
    for policy in (TAKE_OR_PROBE, baselines.make("jiq"), baselines.make("jsq")):
        workload = calendar_workload(scenario) if clock == "calendar" else None
        seen = simulated(scenario, policy, 100, workload=workload)
        unseen = simulated(scenario, policy, 112, workload=workload)
        for _ in range(12):
            before = bytes_of(seen)
            first, second = draw(seen), draw(seen)
            assert np.array_equal(first, second)
            assert bytes_of(seen) == before
            seen.run(encode(policy.steps, scenario), 1)
        head = [name for name in seen.arrays.head.dtype.names if not hasattr(seen.arrays, name)]
        for name in head:
            assert seen.arrays.head[name] == unseen.arrays.head[name], name
        for name in ("servers", "pools", "lists", "streams", "messages"):
            assert getattr(seen.arrays, name).tobytes() == getattr(unseen.arrays, name).tobytes(), name


def test_letters_are_drawn_and_unknown_ones_are_questions():
    assert canvas.GLYPHS.shape == (48, 9, 6)
    assert not canvas.GLYPHS[:, :, 5].any()
    assert len({glyph.tobytes() for glyph in canvas.GLYPHS}) == 48

    def written(text):
        board = canvas.Canvas(60, 18, (0, 0, 0))
        board.write(0, 0, text, (255, 255, 255))
        return board.pixels

    assert written("1").sum() == 2 * 2 * 3 * 255 * canvas.GLYPHS[1].sum()
    assert np.array_equal(written("Aß"), written("a?"))
    assert not np.array_equal(written("a b"), written("ab"))
    assert np.array_equal(written("abcdefgh"), written("abcde"))  # the rest is cut off


def test_the_env_draws_what_its_mode_says():
    for mode, kind in (("ansi", str), ("rgb_array", np.ndarray)):
        env = gym.make("pull_env/Router-v0", scenario="small-mixed", render_mode=mode)
        with pytest.raises(ResetNeeded):
            env.unwrapped.render()
        env.reset(seed=0)
        env.step(12)
        shown = env.render()
        assert isinstance(shown, kind)
        assert np.array_equal(shown, RENDERERS[mode](env.unwrapped.simulator))
    env = RouterEnv("small-mixed")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render needs gymnasium.make"):
        assert env.render() is None


def test_a_list_of_pictures():
    env = gym.make("pull_env/TwoSpeeds-v0", render_mode="rgb_array_list")
    env.reset(seed=0)
    for action in range(5):
        env.step(action)
    frames = env.render()
    assert len(frames) == 6
    assert len({frame.tobytes() for frame in frames}) == 6


def test_a_window(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with pytest.warns(UserWarning, match="HumanRendering wrapper is being applied"):
        env = gym.make("pull_env/Router-v0", scenario="small-mixed", render_mode="human")
    env.reset(seed=0)
    env.step(12)
    assert env.render() is None
    assert env.get_wrapper_attr("window").get_size() == (960, 400)
    env.close()


def test_closed_servers_are_shown():
    """Half of a pool fails, and the other pool is drained."""
    faults = Faults(up=5.0, down=5.0, pools=(0,), drains=(Drain(1, 0.0),))
    scenario = Scenario((Pool(40, 1.5), Pool(10, 0.5)), routers=2, load=0.5, faults=faults)
    simulator = simulated(scenario, Policy("blind", (Send(),)), 2000, workload=calendar_workload(scenario))
    closed = snapshot.Snapshot(simulator).closed
    assert closed[40:].all()
    assert 5 < closed[:40].sum() < 35
    assert [row[-1] for row in rows(ansi(simulator), "pool")] == [str(closed[:40].sum()), "10"]
    grey = (rgb_array(simulator) == picture.CLOSED).all(axis=2).sum()
    side = layout.Layout(scenario).pitch - layout.Layout(scenario).gap
    assert (closed.sum() - 3) * side**2 < grey < (closed.sum() + 3) * side**2  # the legend, and frames
    assert "closed" not in ansi(simulated(SMALL, TAKE_OR_PROBE, 50))
