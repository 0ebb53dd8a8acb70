"""A policy in the env and in the kernel ends in bit-identical state."""

import gymnasium as gym
import numpy as np
import pytest

from pull_env.envs.policy_driver import Driver, PolicyEnv, play
from pull_env.envs.router import RouterEnv
from pull_env.kernels.state import CALENDAR
from pull_env.policy.policy import STEPS, Announce, Cycle, Inspect, Policy, Probe, Recall, Send, Take
from pull_env.scenario.scenario import as_scenario, load_scenario
from tests.oracles.env_twins import FASTEST, POLICIES, WEIGHTED, assert_same_state, kernel_run

ONE_OF_EACH = ("two-speeds", "small-mixed", "finite-buffers")


def test_the_table_holds_every_step():
    assert {step.kind for policy in POLICIES for step in policy.steps} == set(STEPS) - {"lookup"}


@pytest.mark.parametrize("scenario", ONE_OF_EACH)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_kernel_and_env_end_in_the_same_state(policy, scenario):
    scenario = as_scenario(scenario)
    runner = PolicyEnv(policy, scenario, customers=2000)
    env = RouterEnv(scenario, announce=policy.announce, memory=policy.memory, customers=2000)
    for episode, seed in enumerate((11, None)):
        runner.reset(seed=seed)
        played = runner.play()
        assert play(policy, env, seed=seed) == played
        simulator = kernel_run(policy, scenario, 2000, 11, episode)
        assert_same_state(runner, simulator)
        pools, head, prices = simulator.arrays.pools, simulator.arrays.head[0], scenario.prices
        wait = pools["wait_sum"] if head["flags"] & CALENDAR else pools["queue_sum"] / pools["rate"]
        messages = int(head["pulls"] + head["removes"] + head["probes"] + head["updates"])
        assert played.customers == 2000
        assert played.blocked == pools["blocked"].sum()
        assert played.messages == messages
        assert played.wait == pytest.approx(wait.sum(), rel=1e-9)
        cost = prices.wait * wait.sum() + prices.message * messages + prices.block * played.blocked
        assert played.reward == pytest.approx(-cost, rel=1e-9)


def test_a_catalog_of_one_step_is_that_policy():
    scenario = load_scenario("two-speeds")
    policy = Policy("two choices", (Probe(),))
    env = RouterEnv(scenario, catalog=list(policy.steps), announce=None)
    env.reset(seed=3)
    for _ in range(2000):
        env.step(0)
    assert_same_state(env, kernel_run(policy, scenario, 2000, 3, 0))


def test_play_stops_after_customers_and_takes_wrapped_envs():
    env = gym.make("pull_env/Router-v0", scenario="small-mixed", customers=100)
    assert play(WEIGHTED, env, customers=30, seed=0).customers == 30
    assert play(WEIGHTED, env).customers == 100


def test_another_pull_protocol_is_refused():
    blind = Policy("blind", (Send(weights="rate"),))
    for use in (play, Driver):
        with pytest.raises(ValueError, match=r"blind needs gymnasium.make\(..., announce=None\)"):
            use(blind, RouterEnv("two-speeds"))
        with pytest.raises(ValueError, match="must be a RouterEnv"):
            use(blind, gym.make("CartPole-v1"))


@pytest.mark.parametrize(
    "step", [Probe(at_most=3), Take(order="oldest"), Inspect(), Cycle(), Recall(), Probe(0, at_most=8)]
)
def test_a_driver_names_a_step_without_counterpart(step):
    policy = Policy("p", (Take(0), step, Send()), Announce())
    with pytest.raises(ValueError, match=rf"steps\[1\] is {type(step).__name__}"):
        Driver(policy, RouterEnv("two-speeds"))
    Driver(policy, RouterEnv("two-speeds", catalog=[Take(0), step, Send()]))


def observe_messages(env: RouterEnv, held: list[int]) -> np.ndarray:
    observation = env.reset(seed=0)[0]
    observation[3::9][: len(held)] = [h / (1 + h) for h in held]
    return observation


@pytest.mark.parametrize(
    ("policy", "held", "shares"),
    [
        (WEIGHTED, [3, 1], {0: 0.75, 1: 0.25}),
        (WEIGHTED, [0, 2000], {1: 1.0}),
        (WEIGHTED, [0, 0], {4: 0.75, 5: 0.25}),  # sends by capacity: 50 x 1.5 and 50 x 0.5
        (FASTEST, [1, 5], {0: 1.0}),
        (FASTEST, [0, 5], {1: 1.0}),
        (Policy("pull", (Take(), Send()), Announce()), [0, 0], {4: 0.5, 5: 0.5}),
        (Policy("slow", (Take(1, order="fastest"), Recall(1), Send(0)), Announce()), [9, 0], {4: 1.0}),
    ],
)
def test_a_driver_splits_its_choices(policy, held, shares):
    env = RouterEnv("two-speeds")
    batch = np.tile(observe_messages(env, held), (4000, 1))
    actions, state = Driver(policy, env, seed=1).predict(batch, state="kept")
    assert state == "kept"
    assert actions.shape == (4000,)
    counts = np.bincount(actions, minlength=18) / 4000
    for action in range(18):
        share = shares.get(action, 0.0)
        assert abs(counts[action] - share) <= 4 * np.sqrt(share * (1 - share) / 4000)
    again, _ = Driver(policy, env, seed=1).predict(batch)
    assert np.array_equal(actions, again)


def test_a_driver_takes_one_observation_and_one_with_state():
    env = RouterEnv("two-speeds", observation="with-state")
    driver = Driver(FASTEST, env, seed=0)
    action, _ = driver.predict(env.reset(seed=0)[0], deterministic=True)
    assert action.shape == ()
    env.step(action)
    with pytest.raises(ValueError, match="observation has 12 entries: it must have 22 at least"):
        driver.predict(np.zeros(12, np.float32))


def test_a_driver_recalls_what_is_remembered():
    env = RouterEnv("two-speeds")
    driver = Driver(
        Policy("recall", (Recall(0), Probe(0, at_most=8, stop_at=0.5, rank="delay")), Announce()), env
    )
    observation = env.reset(seed=0)[0]
    assert driver.predict(observation)[0] == 7
    observation = env.step(7)[0]
    while env.simulator.arrays.memory["server"][env.simulator.arrays.head["router"][0], 0, 0] < 0:
        observation = env.step(7)[0]
    assert driver.predict(observation)[0] == 2


@pytest.mark.parametrize("policy", [WEIGHTED, FASTEST], ids=lambda policy: policy.name)
def test_a_driver_costs_what_the_kernel_costs(policy):
    """Compare 12 episodes of the same customers.

    If the distributions are equal, |t| > 4 has probability 0.2 %."""
    exact, driven = (RouterEnv("two-speeds", customers=3000) for _ in range(2))
    driver = Driver(policy, driven, seed=0)
    differences = []
    for seed in (6, *[None] * 11):
        reward = play(policy, exact, seed=seed).reward
        observation, _ = driven.reset(seed=seed)
        truncated = False
        while not truncated:
            observation, step_reward, _, truncated, _ = driven.step(driver.predict(observation)[0])
            reward -= step_reward
        differences.append(reward / 3000)
    assert abs(np.mean(differences)) < 4 * np.std(differences, ddof=1) / np.sqrt(12)
    assert np.std(differences) < 0.1  # else the interval says nothing
