"""What holds for every registered id: a new env is tested by being registered."""

import copy
import importlib
import json
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from pull_env import Announce, Cycle, Policy, Probe, Send, Take, load_scenario, simulate
from pull_env.envs.adapters.multi_objective import MORouterEnv
from pull_env.envs.base import CustomerEnv
from pull_env.envs.control import ControlEnv
from pull_env.envs.dispatch import DispatchEnv
from pull_env.envs.registration import ENVS, register_envs
from pull_env.envs.router import RouterEnv

IDS = list(ENVS)
SCENARIO = "finite-buffers"  # several routers and pools, and customers are blocked


VECTORS = {"pull_env/MORouter-v0"}  # their reward is no number, as the tools of one objective expect


@pytest.fixture(params=IDS)
def name(request):
    return request.param


@pytest.fixture(params=sorted(set(IDS) - VECTORS))
def scalar(request):
    return request.param


def test_all_other_rewards_are_numbers(name):
    assert (name in VECTORS) == isinstance(gym.make(name).unwrapped, MORouterEnv)


def plain(value):
    """Turn arrays into lists, at any depth, so that == compares values and types."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else (type(value), value)


def record(env, steps, seed=9):
    """Return what an env returns for random actions."""
    env.action_space.seed(seed)
    return [plain(env.step(env.action_space.sample())) for _ in range(steps)]


def test_both_checkers_accept_it(scalar):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for arguments in ({}, {"scenario": SCENARIO}):
            env = gym.make(scalar, **arguments)
            check_env(env.unwrapped)
            check_env_sb3(env.unwrapped)


def test_one_seed_gives_one_course(name):
    env, twin = gym.make(name), gym.make(name)
    for seed in (7, None, 8):
        assert plain(env.reset(seed=seed)) == plain(twin.reset(seed=seed))
        assert record(env, 60) == record(twin, 60)


def test_a_reset_without_a_seed_continues_the_stream(name):
    env, twin = gym.make(name), gym.make(name)
    courses = []
    for seed in (7, None, None):
        env.reset(seed=seed)
        courses.append(record(env, 60))
    assert courses[0] != courses[1] != courses[2] != courses[0]
    twin.reset(seed=7, options={"episode": 2})
    assert record(twin, 60) == courses[2]
    env.reset(seed=7)
    assert record(env, 60) == courses[0]


def test_without_any_seed_two_envs_differ(name):
    env, twin = gym.make(name), gym.make(name)
    env.reset(), twin.reset()
    assert record(env, 60) != record(twin, 60)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_in_mid_episode_continue_as_the_original(name, clone):
    env = gym.make(name, scenario=SCENARIO)
    env.reset(seed=1)
    record(env, 30)
    twin = clone(env)
    expected = record(env, 30)
    assert record(twin, 30) == expected
    assert plain(twin.reset()) == plain(env.reset())


def test_the_spec_goes_through_json(name):
    keywords = {"scenario": load_scenario("small-mixed").to_dict(), "announce": {"threshold": 2}}
    env = gym.make(name, **keywords)
    text = env.spec.to_json()
    assert json.loads(text)["kwargs"].items() >= keywords.items()
    twin = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert plain(env.reset(seed=1)) == plain(twin.reset(seed=1))
    assert record(env, 30) == record(twin, 30)


def test_the_end_is_a_truncation_and_the_env_does_not_reset_itself(name):
    env = gym.make(name, customers=200).unwrapped
    env.reset(seed=0)
    steps, truncated = 0, False
    while not truncated:
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        steps += 1
        assert type(terminated) is type(truncated) is bool
        assert not terminated
    assert steps > 1
    assert env.simulator.placed == 200
    assert info["time"] > 0.0
    with pytest.raises(ResetNeeded):
        env.step(env.action_space.sample())
    assert env.simulator.placed == 200
    env.reset()
    assert not env.step(env.action_space.sample())[3]
    env.close()
    env.close()


def test_an_episode_of_one_step_is_refused(name):
    with pytest.raises(ValueError, match="customers is 1"):
        gym.make(name, customers=1)


def test_steps_before_reset_are_refused(name):
    env = gym.make(name).unwrapped
    with pytest.raises(ResetNeeded):
        env.step(env.action_space.sample())
    with pytest.raises(ResetNeeded):
        env.skip([Send()], 10)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_it_can_be_watched(name, mode):
    env = gym.make(name, render_mode=mode)
    env.reset(seed=3)
    pictures = [env.render()]
    for _ in range(3):
        env.step(env.action_space.sample())
        pictures.append(env.render())
    assert plain(pictures[0]) != plain(pictures[-1])
    if mode == "rgb_array":
        assert {(picture.dtype, picture.shape) for picture in pictures} == {
            (np.dtype(np.uint8), pictures[0].shape)
        }


def test_what_was_returned_never_changes(name):
    env = gym.make(name)
    kept = [env.reset(seed=0)]
    env.action_space.seed(0)
    before = [plain(kept[0])]
    for _ in range(20):
        kept.append(env.step(env.action_space.sample()))
        before.append(plain(kept[-1]))
    env.reset()
    assert [plain(answer) for answer in kept] == before


def test_infos_have_the_same_keys_and_types_at_every_step(name):
    def kinds(info):
        return {key: (type(value), getattr(value, "dtype", None)) for key, value in info.items()}

    env = gym.make(name)
    _, first = env.reset(seed=0)
    for _ in range(20):
        *_, info = env.step(env.action_space.sample())
        assert kinds(info) == kinds(first)


def test_episode_statistics_are_logged_although_the_task_has_no_end(scalar):
    env = RecordEpisodeStatistics(gym.make(scalar, customers=200))
    monitored = Monitor(gym.make(scalar, customers=200))
    env.reset(seed=0), monitored.reset(seed=0)
    truncated, total, steps = False, 0.0, 0
    env.action_space.seed(0)
    while not truncated:
        action = env.action_space.sample()
        _, reward, _, truncated, info = env.step(action)
        *_, info_of_monitor = monitored.step(action)
        total, steps = total + reward, steps + 1
    assert info["episode"]["l"] == info_of_monitor["episode"]["l"] == steps
    assert info["episode"]["r"] == pytest.approx(total, rel=1e-5)


def test_stable_baselines3_learns_that_an_end_is_a_truncation(scalar):
    envs = DummyVecEnv([lambda: gym.make(scalar, customers=200)])
    envs.seed(0)
    envs.reset()
    done = [False]
    while not done[0]:
        seen, _, done, infos = envs.step([envs.action_space.sample()])
    assert infos[0]["TimeLimit.truncated"]
    assert not np.array_equal(infos[0]["terminal_observation"], seen[0])


def test_masks_pass_through_wrappers(name):
    env = gym.make(name, scenario=SCENARIO)
    if not isinstance(env.unwrapped, CustomerEnv):
        assert not hasattr(env.unwrapped, "action_masks")
        return
    _, info = env.reset(seed=0)
    for _ in range(50):
        masks = env.get_wrapper_attr("action_masks")()
        assert masks.dtype == np.bool_
        assert info["action_mask"].dtype == np.int8
        assert masks.tolist() == info["action_mask"].tolist()
        assert masks.any()
        *_, info = env.step(env.action_space.sample(mask=info["action_mask"]))


class Watch(gym.Wrapper):
    """Counts actions that the mask of the moment forbids, and those it could have."""

    forbidden = chances = 0

    def step(self, action):
        masks = self.get_wrapper_attr("action_masks")()
        self.forbidden += not masks[action]
        self.chances += not masks.all()
        return self.env.step(action)


def test_a_learner_with_masks_never_takes_a_masked_action(scalar):
    import torch
    from sb3_contrib import MaskablePPO

    env = Watch(gym.make(scalar, scenario=SCENARIO))
    if not isinstance(env.unwrapped, CustomerEnv):
        pytest.skip("it has no masks")
    torch.set_num_threads(1)
    MaskablePPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=1, seed=0).learn(256)
    assert env.chances > 100
    assert env.forbidden == 0


def test_no_stream_of_any_seed_and_episode_is_that_of_another(name):
    """Seeds made as seed x k would give equal streams for seed 0 and shared others."""
    env = gym.make(name).unwrapped
    words = []
    for seed in range(8):
        for episode in range(8):
            env.reset(seed=seed, options={"episode": episode})
            words += env.simulator.arrays.streams.ravel().tolist()
    assert len(words) == len(set(words)) == 8 * 8 * 5 * 4  # seeds, episodes, streams, words


def test_every_id_works_in_a_fresh_process_and_registers_once():
    program = (
        "import gymnasium as gym; "
        f"[gym.make('pull_env:' + name).reset(seed=0) for name in {IDS}]; "
        "import importlib, pull_env.envs.registration as r; importlib.reload(r); r.register_envs()"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_registering_neither_compiles_nor_replaces(name):
    program = "import sys, pull_env.envs.registration; assert 'numba' not in sys.modules"
    if name == IDS[0]:
        subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    spec = gym.spec(name)
    importlib.reload(sys.modules[register_envs.__module__])
    register_envs()
    assert gym.spec(name) is spec


# How each env plays a run of `simulate`: the policy, the env, and its action at every step.
def router_run(name, customers):
    policy = Policy("fallback", (Take(1), Send(1)), Announce())
    env = gym.make(name, scenario=SCENARIO, catalog=[Send(0), Take(1)], customers=customers)
    return policy, env.unwrapped, lambda: 1


def dispatch_run(name, customers):
    env = gym.make(name, scenario=SCENARIO, free_information=True, customers=customers).unwrapped
    turns = {}

    def turn():
        routers = env.simulator.arrays.routers
        router = int(env.simulator.arrays.head["router"][0])
        server = turns.get(router, int(routers["cycle"][router]))
        turns[router] = (server + 1) % env.scenario.servers
        return server

    return Policy("round robin", (Cycle(),)), env, turn


def control_run(name, customers):
    probe = Probe(weights="rate", at_most=8, stop_at=0.5)
    env = gym.make(name, scenario=SCENARIO, catalog=[Take(0), probe], customers=customers).unwrapped
    wait = 2.0 * (1.0 - 0.25) * env.scenario.servers / env.scenario.capacity
    policy = Policy("probe", (Probe(weights="rate", at_most=8, stop_at=wait),), Announce())
    return policy, env, lambda: np.array([-1.0, 1.0, -0.25], np.float32)


RUNS = {RouterEnv: router_run, MORouterEnv: router_run, DispatchEnv: dispatch_run, ControlEnv: control_run}


def test_rewards_of_an_episode_sum_to_minus_the_cost_of_the_same_run(name):
    customers = 3200
    policy, env, act = RUNS[type(gym.make(name).unwrapped)](name, customers)
    run = simulate(env.scenario, policy, customers, seed=6, replications=1, warmup=0)
    env.reset(seed=6)
    total, truncated = 0.0, False
    while not truncated:
        _, reward, _, truncated, info = env.step(act())
        if name in VECTORS:
            reward = float(reward @ env.weights)
            assert reward == pytest.approx(-info["cost"], rel=1e-12)
        else:
            assert type(reward) is float
            assert reward == -info["cost"]
        total += reward * info.get("customers", 1)  # a step of many customers earns their mean
    assert run.p_block.mean > 0.0
    assert total == pytest.approx(-customers * run.cost.mean, rel=1e-9)
