"""The PettingZoo envs: its own tests, sums of rewards, the runs of the inner envs."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from pull_env import (
    Announce,
    Policy,
    Pool,
    Prices,
    Scenario,
    Send,
    Take,
    Trace,
    aec_env,
    parallel_env,
    simulate,
)
from pull_env.envs.control import ControlEnv
from pull_env.envs.router import RouterEnv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own examples use what it has deprecated
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

REWARDS = ("shared", "own")
UNEVEN = Scenario(
    pools=(Pool(3, rate=2.0, buffer=3), Pool(5, rate=0.5, buffer=2)),
    routers=4,
    load=0.9,
    shares=(0.6, 0.3, 0.1, 0.0),
    prices=Prices(message=0.1, block=3.0),
)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("customers", [60, 10_000])  # an end within its play, and none
def test_pettingzoo_accepts_it(reward, customers, capsys):
    for scenario in (UNEVEN, "two-speeds"):
        system = {"scenario": scenario, "customers": customers, "reward": reward}
        api_test(aec_env(**system), num_cycles=100)
        seed_test(lambda system=system: aec_env(**system), num_cycles=100)
        parallel_api_test(parallel_env(**system, period=10), num_cycles=100)
        parallel_seed_test(lambda system=system: parallel_env(**system, period=10), num_cycles=100)
    assert capsys.readouterr().out.count("Passed") == 4


def play(env, act, seed=0):
    """Play an episode; return the rewards that each agent got from `last`, in order."""
    received = {agent: [] for agent in env.possible_agents}
    env.reset(seed=seed)
    for agent in env.agent_iter():
        _, reward, _, truncated, _ = env.last()
        received[agent].append(reward)
        env.step(None if truncated else act(agent))
    return received


@pytest.mark.parametrize("reward", REWARDS)
def test_rewards_sum_to_the_cost_of_the_same_run(reward):
    customers = 1600
    env = aec_env(UNEVEN, catalog=[Take(0)], customers=customers, reward=reward)
    received = play(env, lambda agent: 0, seed=5)
    policy = Policy("take", (Take(0), Send(0)), Announce())
    run = simulate(UNEVEN, policy, customers, seed=5, replications=1, warmup=0)
    cost = customers * run.cost.mean
    assert env.agents == []
    assert len(received["router_3"]) == 1, "it never acts: only its dead step"
    assert sum(map(len, received.values())) == customers + 4
    sums = {agent: sum(rewards) for agent, rewards in received.items()}
    if reward == "shared":
        assert all(total == pytest.approx(-cost, rel=1e-9) for total in sums.values())
    else:
        assert sum(sums.values()) == pytest.approx(-cost, rel=1e-9)
        assert sums["router_3"] == 0.0
        assert sums["router_0"] < sums["router_1"] < sums["router_2"] < 0.0
        assert all(rewards[0] == 0.0 for rewards in received.values()), (
            "nothing was caused before the first action"
        )


def test_it_runs_as_the_router_env_step_by_step():
    """An agent that waited gets the sum of rewards since its last action."""
    env, inner = aec_env(UNEVEN, customers=400, reward="own"), RouterEnv(UNEVEN, customers=400)
    env.reset(seed=3)
    seen, info = inner.reset(seed=3)
    last_cost = dict.fromkeys(env.agents, 0.0)
    rng = np.random.default_rng(0)
    truncated, repeats = False, 0
    while not truncated:
        agent = f"router_{info['router']}"
        assert env.agent_selection == agent
        observation, reward, _, _, agent_info = env.last()
        assert np.array_equal(observation, seen)
        assert np.array_equal(agent_info["action_mask"], info["action_mask"])
        assert (agent_info["cost"], agent_info["time"]) == (last_cost[agent], info["time"])
        assert reward == -last_cost[agent]
        for k, other in enumerate(env.agents):
            assert np.array_equal(env.observe(other), inner.observe(k)[0])
        action = int(rng.integers(inner.action_space.n))
        env.step(action)
        seen, _, _, truncated, info = inner.step(action)
        last_cost[agent] = info["cost"]
        repeats += not truncated and env.agent_selection == agent
    assert repeats > 100
    assert all(env.truncations.values())
    assert not any(env.terminations.values())


def test_dead_agents_leave_one_by_one_and_only_by_none():
    env = aec_env(UNEVEN, customers=2)
    env.reset(seed=0)
    env.step(0), env.step(0)
    assert env.agents == env.possible_agents
    with pytest.raises(ValueError, match="the only valid action is None"):
        env.step(0)
    for left in (3, 2, 1, 0):
        agent = env.agent_selection
        env.step(None)
        assert agent not in env.agents
        assert len(env.agents) == left
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    assert env.agents == env.possible_agents
    assert not any(env.truncations.values())


@pytest.mark.parametrize("make", [aec_env, parallel_env])
def test_steps_before_reset_are_refused(make):
    with pytest.raises(ResetNeeded):
        make(UNEVEN).step({} if make is parallel_env else 0)


@pytest.mark.parametrize("make", [aec_env, parallel_env])
def test_arguments_that_are_not_allowed_are_named(make):
    with pytest.raises(ValueError, match="reward is 'all': it must be one of shared, own"):
        make(reward="all")
    with pytest.raises(ValueError, match="customers is 1"):
        make(customers=1)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_in_mid_episode_continue_as_the_original(clone):
    env = aec_env(UNEVEN, customers=500)
    env.reset(seed=0)
    for k in range(200):
        env.step(k % 18)
    twin = clone(env)
    for k in range(200):
        assert env.agent_selection == twin.agent_selection
        assert env.last()[1] == twin.last()[1]
        assert np.array_equal(env.last()[0], twin.last()[0])
        env.step(k % 18), twin.step(k % 18)


def test_an_episode_by_number():
    env, other = aec_env(UNEVEN, customers=100), aec_env(UNEVEN, customers=100)
    play(env, lambda agent: 0, seed=2)
    env.reset()
    other.reset(seed=2, options={"episode": 1})
    assert np.array_equal(env.last()[0], other.last()[0])
    assert env.infos[env.agent_selection]["time"] == other.infos[other.agent_selection]["time"]


def test_a_trace_ends_the_episode_of_all(tmp_path):
    rows = "\n".join(f"{0.3 * k!r},{1 + k % 3}" for k in range(1, 51))
    (tmp_path / "trace.csv").write_text(f"time,size\n{rows}\n")
    trace = Trace(str(tmp_path / "trace.csv"), time="time", size="size")
    scenario = Scenario((Pool(3, rate=1.0),), routers=2, load=0.8, arrivals=trace)
    one = aec_env(scenario)
    received = play(one, lambda agent: 0)
    assert sum(map(len, received.values())) == 50 + 2
    assert one.observation_space("router_0").contains(one._inner.observe(0)[0])
    both = parallel_env(scenario, period=40)
    both.reset(seed=0)
    counts = []
    while both.agents:
        infos = both.step({agent: both.action_space(agent).sample() for agent in both.agents})[4]
        counts.append(sum(info["customers"] for info in infos.values()))
    assert counts == [40, 10]


def hot(k, size=3):
    action = np.full(size, -1.0, np.float32)
    action[k] = 1.0
    return action


def test_each_router_plays_its_own_mixture_and_own_rewards_add_up():
    catalog = [Send(0), Send(1)]
    shared, own = (
        parallel_env(UNEVEN, catalog=catalog, period=500, customers=2000, reward=reward) for reward in REWARDS
    )
    shared.reset(seed=1), own.reset(seed=1)
    pools, by_pool = own._inner.simulator.arrays.pools, np.zeros(2)
    while own.agents:
        actions = {"router_0": hot(0), "router_1": hot(1), "router_2": hot(0), "router_3": hot(1)}
        team = shared.step(actions)[1]
        _, rewards, terminated, truncated, infos = own.step(actions)
        by_pool += [infos[f"router_{k}"]["customers"] + infos[f"router_{k + 2}"]["customers"] for k in (0, 1)]
        assert (pools["accepted"] + pools["blocked"]).tolist() == by_pool.tolist()
        assert sum(info["customers"] for info in infos.values()) == 500
        assert infos["router_3"] == {**infos["router_3"], "customers": 0, "cost": 0.0}
        for agent, info in infos.items():
            assert rewards[agent] == pytest.approx(-info["cost"] * info["customers"] / 500, rel=1e-12)
            assert team[agent] == pytest.approx(sum(rewards.values()), rel=1e-12)
        assert not any(terminated.values())
        assert all(truncated.values()) == (not own.agents)
    with pytest.raises(ResetNeeded):
        own.step(actions)


def test_equal_mixtures_are_the_run_of_the_control_env():
    env, inner = parallel_env(UNEVEN, period=50, customers=200), ControlEnv(UNEVEN, period=50, customers=200)
    observations, _ = env.reset(seed=1)
    seen, _ = inner.reset(seed=1)
    np.testing.assert_allclose(np.mean(list(observations.values()), axis=0), seen, atol=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(4):
        action = rng.uniform(-1, 1, inner.action_space.shape)
        observations, rewards, _, truncated, infos = env.step(dict.fromkeys(env.agents, action))
        seen, reward, _, ended, info = inner.step(action)
        assert set(truncated.values()) == {ended}
        weights = [infos[agent]["customers"] for agent in env.possible_agents]
        local = np.average([observations[a][:22] for a in env.possible_agents], axis=0, weights=weights)
        np.testing.assert_allclose(local, seen[:22], atol=1e-6)
        assert all(value == pytest.approx(reward, rel=1e-12) for value in rewards.values())
        assert infos["router_0"]["time"] == info["time"]
        assert np.array_equal(observations["router_3"][:22], observation_of(inner, 3))


def observation_of(env, router):
    """Return what a router without customers observes after a period, by the kernel."""
    from pull_env.kernels.envs.observe import observe

    observe(env.simulator.address, router, env._observed.address)
    seen = env._observed.observation.copy()
    observe(env.simulator.address, int(env.simulator.arrays.head["router"][0]), env._observed.address)
    return seen


def test_actions_of_all_agents_are_needed():
    env = parallel_env(UNEVEN)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions are of router_0: they must be of router_0, router_1"):
        env.step({"router_0": np.zeros(10)})
    with pytest.raises(ValueError, match="it must be 10 numbers"):
        env.step(dict.fromkeys(env.agents, np.zeros(9)))
