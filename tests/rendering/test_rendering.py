"""Rendering changes nothing, is fast, and is what envs return."""

import time
from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import baselines
from pull_env import as_scenario
from pull_env.envs.router import RouterEnv
from pull_env.rendering import RENDERERS
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.workload import calendar_workload
from tests.oracles.pictures import LARGE, TAKE_OR_PROBE, simulated


def bytes_of(simulator):
    """The bytes of all arrays."""
    arrays = [getattr(simulator.arrays, field.name) for field in fields(simulator.arrays)]
    flat = [
        part for array in arrays for part in (vars(array).values() if hasattr(array, "order") else [array])
    ]
    return [array.tobytes() for array in flat]


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
def test_rendering_changes_nothing(draw, clock):
    scenario = as_scenario("finite-buffers")
    for policy in (TAKE_OR_PROBE, baselines.make("jiq"), baselines.make("jsq")):
        workload = calendar_workload(scenario) if clock == "calendar" else None
        rendered = simulated(scenario, policy, 100, workload=workload)
        not_rendered = simulated(scenario, policy, 112, workload=workload)
        for _ in range(12):
            before = bytes_of(rendered)
            first, second = draw(rendered), draw(rendered)
            assert np.array_equal(first, second)
            assert bytes_of(rendered) == before
            rendered.run(encode(policy.steps, scenario), 1)
        head = [name for name in rendered.arrays.head.dtype.names if not hasattr(rendered.arrays, name)]
        for name in head:
            assert rendered.arrays.head[name] == not_rendered.arrays.head[name], name
        for name in ("servers", "pools", "lists", "streams", "messages"):
            first, second = getattr(rendered.arrays, name), getattr(not_rendered.arrays, name)
            assert first.tobytes() == second.tobytes(), name


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
