"""`RouterEnv` with the checkers of its users, and against the simulator's counts."""

import copy
import json
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from pull_env.envs.router import RouterEnv
from pull_env.kernels.state import CALENDAR
from pull_env.policy.policy import Announce, Inspect, Probe, Send, Take
from pull_env.scenario.scenario import Pool, Prices, Scenario, Trace, load_scenario, scenario_names
from tests.oracles.env_twins import cost_of, record

ID = "pull_env/Router-v0"


@pytest.fixture
def traced(tmp_path):
    """A scenario of 5000 customers from a file, more than one feed."""
    rng = np.random.default_rng(0)
    times, sizes = rng.exponential(1.0, 5000).cumsum(), rng.exponential(1.0, 5000) + 0.01
    rows = "\n".join(f"{time!r},{size!r}" for time, size in zip(times.tolist(), sizes.tolist(), strict=True))
    (tmp_path / "trace.csv").write_text(f"time,size\n{rows}\n")
    trace = Trace(str(tmp_path / "trace.csv"), time="time", size="size")
    pools = (Pool(4, rate=1.5), Pool(4, rate=0.5, buffer=3))
    return Scenario(pools=pools, routers=2, load=0.9, arrivals=trace)


@pytest.mark.parametrize("observation", ["local", "with-state"])
@pytest.mark.parametrize("name", scenario_names())
def test_checkers_accept_it(name, observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(ID, scenario=name, observation=observation)
        check_env(env.unwrapped)
        check_env_sb3(env.unwrapped)


def test_checkers_accept_it_with_a_trace(traced):
    check_env(gym.make(ID, scenario=traced.to_dict()).unwrapped)
    check_env_sb3(RouterEnv(traced))


def test_the_spec_goes_through_json():
    keywords = {
        "scenario": load_scenario("small-mixed").to_dict(),
        "catalog": [{"kind": "take", "pool": 1}, {"kind": "probe", "at_most": 3, "stop_at": 0.5}],
        "announce": {"threshold": 2, "recipient": "fewest"},
        "customers": 50,
        "memory": 4,
        "observation": "with-state",
    }
    env = gym.make(ID, **keywords)
    text = env.spec.to_json()
    assert json.loads(text)["kwargs"] == keywords
    twin = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert np.array_equal(env.reset(seed=1)[0], twin.reset(seed=1)[0])
    assert record(env.unwrapped, 40) == record(twin.unwrapped, 40)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"scenario": "two-sped"}, "two-speeds"),
        ({"scenario": 3}, "scenario is 3"),
        ({"catalog": []}, "catalog: steps is"),
        ({"catalog": "take"}, "catalog is 'take'"),
        ({"catalog": [{"kind": "tale"}]}, "catalog: step.kind is 'tale'"),
        ({"catalog": [Take(2)]}, r"steps\[0\].pool is 2"),
        ({"announce": {"threshold": 0}}, "announce.threshold is 0"),
        ({"announce": 1}, "announce is 1"),
        ({"customers": 1}, "customers is 1: it must be a whole number from 2"),
        ({"customers": 1e4}, "customers is 10000.0"),
        ({"memory": 0}, "memory.size is 0"),
        ({"observation": "all"}, "observation is 'all': it must be one of local, with-state"),
        ({"render_mode": "human"}, "render_mode is 'human': it must be one of ansi, rgb_array"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        RouterEnv(**keywords)


def test_make_vec_env_of_stable_baselines3_makes_it():
    """It asks for `rgb_array`."""
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(ID, n_envs=2, seed=0, env_kwargs={"scenario": "small-mixed"})
    assert envs.reset().shape == (2, 22)
    first, second = envs.get_images()
    assert first.shape == second.shape == (400, 960, 3)
    assert not np.array_equal(first, second)


def test_an_action_that_is_not_real_sends_to_its_pool():
    env = RouterEnv("two-speeds", announce=None, customers=300)
    env.reset(seed=0)
    for k in range(200):
        inside = env.simulator.arrays.pools["accepted"].copy()
        assert not env.action_masks()[[0, 1, 2, 3]].any()
        *_, info = env.step(k % 4)
        assert info["messages"] == 0
        assert (env.simulator.arrays.pools["accepted"] - inside).tolist() == ([1, 0], [0, 1])[k % 2]


@pytest.mark.parametrize("name", scenario_names())
def test_rewards_sum_to_minus_the_cost_of_the_run(name):
    env = RouterEnv(name, customers=1500)
    _, info = env.reset(seed=4)
    assert info["cost"] == cost_of(env) == 0.0
    total, truncated = 0.0, False
    rng = np.random.default_rng(0)
    while not truncated:
        _, reward, terminated, truncated, info = env.step(rng.integers(env.action_space.n))
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool
        prices = env.scenario.prices
        parts = prices.block if info["blocked"] else prices.wait * info["wait"]
        assert reward == -info["cost"] == -(parts + prices.message * info["messages"])
        total += reward
    assert total == pytest.approx(-cost_of(env), rel=1e-9)
    assert env.simulator.placed == 1500


def test_a_trace_ends_the_episode(traced):
    env = RouterEnv(traced)
    _, info = env.reset(seed=0)
    keys = {key: type(value) for key, value in info.items()}
    total, count, truncated = 0.0, 0, False
    while not truncated:
        assert info["router"] in (0, 1)
        observation, reward, terminated, truncated, info = env.step(14)
        assert {key: type(value) for key, value in info.items()} == keys
        count, total = count + 1, total + reward
    assert count == 5000
    assert not terminated
    assert info["router"] == -1
    assert env.observation_space.contains(observation)
    assert total == pytest.approx(-cost_of(env), rel=1e-9)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_continue_as_the_original(clone, traced):
    for scenario in ("two-speeds", traced):
        env = RouterEnv(scenario, observation="with-state", announce=Announce(withdraw=False))
        env.reset(seed=1)
        record(env, 300)
        twin = clone(env)
        expected = record(env, 300)
        assert record(twin, 300) == expected
        assert np.array_equal(env.action_masks(), twin.action_masks())
        assert np.array_equal(env.reset()[0], twin.reset()[0])


def test_steps_out_of_turn_are_refused():
    env = RouterEnv("small-mixed", customers=2)
    for call in (lambda: env.step(0), env.action_masks):
        with pytest.raises(ResetNeeded):
            call()
    env.reset(seed=0)
    for action in (-1, 18, np.int64(18)):
        with pytest.raises(ValueError, match=f"action is {action}: it must be a whole number from 0 to 17"):
            env.step(action)
    assert env.step(0)[3] is False
    assert env.step(np.int64(1))[3] is True
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.close()
    env.close()


def test_options_are_checked():
    env = RouterEnv("small-mixed")
    with pytest.raises(ValueError, match=r"options\.episod is not a known key: did you mean 'episode'"):
        env.reset(options={"episod": 1})
    with pytest.raises(ValueError, match=r"options\.episode is -1: it must be a whole number from 0"):
        env.reset(options={"episode": -1})


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([Inspect()], r"steps\[0\] is Inspect"),
        ([Take(order="oldest"), Send()], r"steps\[0\] is Take"),
        ([Probe(at_most=20), Send()], r"steps\[0\] is Probe"),
        ([Inspect(rank="work")], r"steps\[0\] is Inspect"),
        ([Take()], "the last step must always be able to act"),
        ([], "the last step must always be able to act"),
    ],
)
def test_skip_refuses_steps_that_read_what_is_not_kept(steps, message):
    env = RouterEnv("two-speeds")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.skip(steps, 10)
    env.skip([Take(), Probe(at_most=8), Send()], 10)
    assert env.simulator.placed == 10


def test_skip_says_where_a_trace_ends(traced):
    env = RouterEnv(traced)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="customers is 6000: the trace ended after 5000"):
        env.skip([Send()], 6000)
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_look_shows_any_router_and_changes_nothing():
    env, twin = RouterEnv("small-mixed"), RouterEnv("small-mixed")
    with pytest.raises(ResetNeeded):
        env.observe(0)
    seen, info = env.reset(seed=0)
    twin.reset(seed=0)
    for k in range(30):
        shown = [env.observe(router) for router in (0, 1)]
        assert np.array_equal(shown[info["router"]][0], seen)
        assert np.array_equal(shown[info["router"]][1], info["action_mask"])
        assert np.array_equal(env.action_masks(), info["action_mask"])
        seen, *_, info = env.step(k % 18)
        assert np.array_equal(seen, twin.step(k % 18)[0])
    for router in (-1, 2):
        with pytest.raises(ValueError, match=f"router is {router}: it must be a whole number from 0 to 1"):
            env.observe(router)


def test_a_step_that_needs_unfinished_work_moves_to_the_calendar():
    env = RouterEnv("small-mixed", catalog=[Inspect(rank="work"), Inspect(rank="queue")], customers=500)
    env.reset(seed=0)
    total = sum(env.step(k % 2)[1] for k in range(500))
    assert env.simulator.arrays.head["flags"][0] & CALENDAR
    assert total == pytest.approx(-cost_of(env), rel=1e-9)


def test_free_waiting_and_free_messages():
    env = RouterEnv(Scenario(pools=(Pool(2),), load=0.5, prices=Prices(wait=0.0, message=0.0)))
    env.reset(seed=0)
    rewards = [env.step(k % 11)[1] for k in range(100)]
    assert rewards == [0.0] * 100
    assert not np.signbit(rewards).any()
