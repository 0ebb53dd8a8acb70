"""`VecRouter` against `DummyVecEnv` of `RouterEnv`, with learners and wrappers."""

import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib import QRDQN, MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from pull_env.envs.adapters.stable_baselines3 import VecRouter
from pull_env.envs.router import RouterEnv
from pull_env.simulation.seeds import spawn_seeds


def test_importing_the_package_loads_no_learner():
    program = "import sys, pull_env, pull_env.envs.vector; assert 'stable_baselines3' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def assert_infos_equal(expected, given):
    for one, other in zip(expected, given, strict=True):
        one = {name: value for name, value in one.items() if name != "action_mask"}
        other = {name: value for name, value in other.items() if name != "action_mask"}
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert type(value) is type(other[name])
            assert np.array_equal(value, other[name])


def test_it_equals_a_dummy_vector_of_single_envs():
    arguments = {"scenario": "small-mixed", "customers": 7, "observation": "with-state"}
    dummy = DummyVecEnv([lambda: RouterEnv(**arguments)] * 3)
    native = VecRouter(n_envs=3, seed=5, **arguments)
    dummy._seeds = spawn_seeds(5, 3)
    assert np.array_equal(dummy.reset(), native.reset())
    assert_infos_equal(dummy.reset_infos, native.reset_infos)
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.integers(18, size=3)
        expected, given = dummy.step(actions), native.step(actions)
        for one, other in zip(expected[:3], given[:3], strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
        assert_infos_equal(expected[3], given[3])
        assert_infos_equal(dummy.reset_infos, native.reset_infos)
        assert np.array_equal(np.stack(dummy.env_method("action_masks")), get_action_masks(native))
        given[1][...] = 9  # as learners do: what was returned is theirs
        given[0][...] = 9
    dummy.set_options({"episode": 3})
    native.set_options({"episode": 3})
    dummy._seeds, native._seeds = [1, 2, 3], [1, 2, 3]
    assert np.array_equal(dummy.reset(), native.reset())
    assert np.array_equal(dummy.reset(), native.reset())  # seeds and options are used once


def test_runs_of_neighbouring_seeds_share_no_streams():
    runs = [VecRouter(n_envs=20, seed=seed) for seed in (0, 1)]
    seeds = [seed for run in runs for seed in run._seeds]
    assert len(set(seeds)) == 40
    first, second = (run.reset() for run in runs)
    assert not np.array_equal(first, second)
    assert runs[0].seed(0) == spawn_seeds(0, 20)
    assert np.array_equal(runs[0].reset(), first)
    np.random.seed(4)  # noqa: NPY002  the generator of Stable-Baselines3
    drawn = runs[0].seed()
    assert drawn != runs[0].seed()


@pytest.mark.parametrize(
    ("learner", "arguments"),
    [
        (PPO, {"n_steps": 16, "batch_size": 64}),
        (A2C, {"n_steps": 8}),
        (DQN, {"learning_starts": 64, "buffer_size": 1000}),
        (QRDQN, {"learning_starts": 64, "buffer_size": 1000}),
        (MaskablePPO, {"n_steps": 16, "batch_size": 64}),
    ],
)
def test_learners_learn(learner, arguments):
    envs = VecRouter("small-mixed", n_envs=8, seed=0, customers=20)
    model = learner("MlpPolicy", envs, seed=0, device="cpu", **arguments)
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(384)
    assert model.num_timesteps >= 384
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))


def test_a_masked_learner_picks_real_actions_only():
    envs = VecRouter("two-speeds", n_envs=8, seed=0, announce=None, customers=30)
    assert is_masking_supported(envs)
    model = MaskablePPO("MlpPolicy", envs, n_steps=16, batch_size=64, seed=0, device="cpu")
    model.learn(256)
    seen = envs.reset()
    for _ in range(10):
        masks = get_action_masks(envs)
        actions, _ = model.predict(seen, action_masks=masks)
        assert masks[np.arange(8), actions].all()
        assert not masks[:, :2].any()  # nobody announces itself: there is nothing to take
        seen, *_ = envs.step(actions)


def test_wrappers_count_episodes_and_keep_their_statistics(tmp_path):
    envs = VecNormalize(VecMonitor(VecRouter("small-mixed", n_envs=4, seed=0, customers=10)), gamma=0.9)
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=64, seed=0, device="cpu")
    model.learn(128)
    assert [episode["l"] for episode in model.ep_info_buffer] == [10] * 12
    model.save(tmp_path / "model.zip")
    envs.save(str(tmp_path / "normalize.pkl"))
    again = VecNormalize.load(
        str(tmp_path / "normalize.pkl"), VecRouter("small-mixed", n_envs=2, seed=1, customers=10)
    )
    again.training = False
    assert np.array_equal(again.obs_rms.mean, envs.obs_rms.mean)
    assert again.ret_rms.var == envs.ret_rms.var
    loaded = PPO.load(tmp_path / "model.zip", env=again, device="cpu")
    seen = again.reset()
    assert np.array_equal(
        loaded.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0]
    )


def test_costs_in_infos_are_exact_and_rewards_are_rounded():
    envs = VecRouter("two-speeds", n_envs=3, seed=0)
    envs.reset()
    for k in range(18):
        _, rewards, _, infos = envs.step(np.full(3, k))
        assert rewards.dtype == np.float32
        assert [np.float32(-info["cost"]) for info in infos] == rewards.tolist()
        assert all(type(info["cost"]) is float for info in infos)


def test_attributes_and_methods_of_the_envs():
    envs = VecRouter("two-speeds", n_envs=3, seed=0, customers=10)
    envs.reset()
    assert envs.get_attr("customers") == [10, 10, 10]
    envs.set_attr("customers", 20, indices=[0, 2])
    assert envs.get_attr("customers") == [20, 10, 20]
    assert envs.get_attr("customers", indices=1) == [10]
    assert not envs.has_attr("no_such_thing")
    assert envs.env_is_wrapped(Monitor) == [False] * 3
    assert len(envs.env_method("action_masks", indices=[2])) == 1
    assert envs.env_method("get_wrapper_attr", "customers", indices=2) == [20]
    twin = pickle.loads(pickle.dumps(envs))
    assert np.array_equal(twin.step(np.array([4, 5, 17]))[0], envs.step(np.array([4, 5, 17]))[0])
    envs.close()
    envs.close()


def test_what_is_not_allowed_is_named():
    with pytest.raises(ValueError, match="n_envs is 0: it must be a whole number from 1"):
        VecRouter(n_envs=0)
    with pytest.raises(ValueError, match="seed is -1: it must be a whole number from 0"):
        VecRouter(seed=-1)
    with pytest.raises(ValueError, match="'two-speeds'"):
        VecRouter("two-speds")
    with pytest.raises(TypeError, match="colour"):
        VecRouter(colour=1)
    envs = VecRouter(n_envs=2, seed=0)
    envs.reset()
    with pytest.raises(ValueError, match=r"actions\[1\] is 18"):
        envs.step(np.array([0, 18]))
    assert isinstance(envs.observation_space, gym.spaces.Box)
