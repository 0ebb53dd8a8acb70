"""The ids that Gymnasium knows, those of the presets included."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from pull_env.envs.registration import ENVS, preset_id
from pull_env.envs.router import RouterEnv
from pull_env.scenario.scenario import scenario_names


def test_every_preset_has_an_id():
    assert preset_id("two-speeds") == "pull_env/TwoSpeeds-v0"
    assert set(ENVS) >= {preset_id(name) for name in scenario_names()}
    assert len(ENVS) == 4 + len(scenario_names())


@pytest.mark.parametrize("name", ENVS)
def test_every_id_makes_an_env_that_steps(name):
    env = gym.make(name, customers=200)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[2:4] == (False, False)


@pytest.mark.parametrize("name", scenario_names())
def test_the_id_of_a_preset_is_the_router_env_on_it(name):
    env, twin = gym.make(preset_id(name), memory=4), RouterEnv(name, memory=4)
    assert env.unwrapped.scenario == twin.scenario
    assert np.array_equal(env.reset(seed=1)[0], twin.reset(seed=1)[0])
    for action in (0, 3, env.action_space.n - 1):
        assert env.step(action)[1] == twin.step(action)[1]
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.scenario == twin.scenario


def test_registering_reads_no_scenario():
    program = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import pull_env.envs.registration
import gymnasium
assert "pull_env/DataCenter-v0" in gymnasium.registry
assert not [path for path in opened if path.endswith(".toml")], opened
assert "numba" not in sys.modules
pull_env.load_scenario("data-center")
assert [path for path in opened if path.endswith(".toml")]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
