"""`MORouterEnv`: the reward taken apart, and put together again."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from pull_env.envs.adapters.multi_objective import MORouterEnv
from pull_env.envs.policy_driver import play
from pull_env.envs.router import RouterEnv
from pull_env.policy.policy import Announce, Policy, Probe, Take
from pull_env.scenario.scenario import Pool, Prices, Scenario

ID = "pull_env/MORouter-v0"
CROWDED = Scenario(
    (Pool(4, rate=1.5, buffer=3), Pool(4, rate=0.5, buffer=2)),
    routers=3,
    load=1.3,
    prices=Prices(wait=0.7, message=0.05, block=4.0),
)


def courses(env, twin, steps=1500):
    """Yield what two envs answer to the same random actions."""
    rng = np.random.default_rng(3)
    assert np.array_equal(env.reset(seed=5)[0], twin.reset(seed=5)[0])
    for _ in range(steps):
        action = int(rng.integers(twin.action_space.n))
        yield env.step(action), twin.step(action)


def test_the_reward_is_minus_wait_messages_and_blocked():
    env, kinds = MORouterEnv(CROWDED), set()
    for (observation, reward, *rest, info), (expected, scalar, *others, plain) in courses(
        env, RouterEnv(CROWDED)
    ):
        assert np.array_equal(observation, expected)
        assert rest == others
        assert info["cost"] == plain["cost"] == -scalar
        assert reward.dtype == np.float64
        assert env.reward_space.contains(reward)
        assert reward.tolist() == [-plain["wait"], -plain["messages"], -plain["blocked"]]
        assert not np.signbit(reward[reward == 0.0]).any()
        assert reward @ env.weights == pytest.approx(scalar, rel=1e-12)
        kinds.add(tuple(reward != 0.0))
    assert {(True, False, False), (True, True, False), (False, True, True)} <= kinds


def test_rewards_are_fresh_arrays():
    env = MORouterEnv(CROWDED)
    env.reset(seed=0)
    first = env.step(12)[1]
    kept = first.copy()
    first_again = env.step(13)[1]
    assert np.array_equal(first, kept)
    assert first is not first_again


def test_a_policy_drives_it():
    policy = Policy("take or probe", (Take(), Probe(stop_at=0.0)), Announce())
    env, twin = MORouterEnv(CROWDED, customers=300), RouterEnv(CROWDED, customers=300)
    vector, scalar = play(policy, env, seed=1), play(policy, twin, seed=1)
    assert vector == scalar
    costs = np.array([scalar.wait, scalar.messages, scalar.blocked])
    assert -costs @ env.weights == pytest.approx(scalar.reward, rel=1e-9)


def test_gymnasium_makes_it_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(ID, scenario=CROWDED.to_dict(), customers=50)
        env.reset(seed=0)
        assert env.step(0)[1].shape == (3,)
    assert env.unwrapped.reward_dim == 3
    assert env.unwrapped.weights.tolist() == [0.7, 0.05, 4.0]


def test_mo_gymnasium_makes_a_scalar_of_it():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = mo_gymnasium.make(ID, scenario=CROWDED.to_dict())
    env = mo_gymnasium.wrappers.LinearReward(env, weight=env.unwrapped.weights)
    twin = gym.make("pull_env/Router-v0", scenario=CROWDED.to_dict())
    total = 0.0
    for (_, reward, *_, info), (_, scalar, *_, plain) in courses(env, twin):
        assert reward == pytest.approx(scalar, rel=1e-12)
        assert info["vector_reward"].shape == (3,)
        assert plain["cost"] == info["cost"]
        total += reward
    assert total < -100.0


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_the_checker_accepts_the_scalar():
    """Use Gymnasium's wrapper: that of MO-Gymnasium puts its weights in every info."""
    env = gym.make(ID, scenario="small-mixed")
    check_env(gym.wrappers.TransformReward(env, lambda reward: float(reward @ env.unwrapped.weights)))


def test_mo_gymnasium_counts_and_batches_it():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = mo_gymnasium.make(ID, scenario="finite-buffers", customers=40)
    env = mo_gymnasium.wrappers.MORecordEpisodeStatistics(env)
    env.reset(seed=2)
    total, truncated = np.zeros(3), False
    while not truncated:
        _, reward, _, truncated, info = env.step(24)
        total += reward
    assert info["episode"]["l"] == 40
    np.testing.assert_allclose(info["episode"]["r"], total, rtol=1e-5)
    envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv([lambda: mo_gymnasium.make(ID)] * 2)
    envs.reset(seed=0)
    assert envs.step(np.array([12, 13]))[1].shape == (2, 3)
    envs.close()
