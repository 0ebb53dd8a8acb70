"""`ControlEnv`: its mixtures, its observations against `RouterEnv`, SAC and TD3."""

import numpy as np
import pytest

from pull_env import Announce, Policy, Pool, Prices, Probe, Recall, Scenario, Send, Take, Trace, simulate
from pull_env.envs.control import ControlEnv
from pull_env.envs.control_accounts import control_names, mixture
from pull_env.envs.router import RouterEnv
from pull_env.scenario.scenario import load_scenario, scenario_names

SCENARIO = load_scenario("finite-buffers")


def one_hot(env, k, wait=-1.0):
    action = np.full(env.action_space.shape, -1.0, np.float32)
    action[k], action[-1] = 1.0, wait
    return action


@pytest.mark.parametrize("k", range(13))
def test_one_step_of_the_default_catalog_is_the_policy_of_that_step(k):
    env = ControlEnv(SCENARIO, customers=3200)
    step = env.catalog[k]
    J, service = len(SCENARIO.pools), SCENARIO.servers / SCENARIO.capacity
    steps = {Take: lambda: (step, Send(step.pool)), Recall: lambda: (step, Send(step.pool))}.get(
        type(step), lambda: (step,)
    )()
    if k >= 3 * J:
        steps = (Probe(step.pool, step.weights, at_most=8, stop_at=1.5 * service, rank="delay"),)
    run = simulate(SCENARIO, Policy("one", steps, Announce()), 3200, seed=2, replications=1, warmup=0)
    env.reset(seed=2)
    total = sum(100 * env.step(one_hot(env, k, wait=-0.25))[1] for _ in range(32))
    assert total == pytest.approx(-3200 * run.cost.mean, rel=1e-9)
    assert len(env.catalog) == 4 * J + 1 == 13


def test_a_probe_without_reservation_wait_is_left_as_it_is():
    probe = Probe(at_most=3)
    run = simulate(SCENARIO, Policy("p", (probe,), Announce()), 320, seed=2, replications=1, warmup=0)
    for wait in (-1.0, 0.3, 1.0):
        env = ControlEnv(SCENARIO, catalog=[probe], customers=320, period=160)
        env.reset(seed=2)
        total = sum(160 * env.step(np.array([1.0, wait]))[1] for _ in range(2))
        assert total == pytest.approx(-320 * run.cost.mean, rel=1e-9)


def test_steps_are_drawn_in_proportion_to_their_weights():
    """If the draws are right, |z| > 4 has probability 0.006 %."""
    env = ControlEnv("two-speeds", catalog=[Send(0), Send(1)], period=20_000, customers=40_000)
    env.reset(seed=1)
    env.step([0.5, 0.2, -1.0])
    share = mixture(np.array([0.5, 0.2]))[0]
    sent = env.simulator.arrays.pools["accepted"][0] / 20_000
    assert abs(sent - share) < 4 * np.sqrt(share * (1 - share) / 20_000)


def test_a_step_that_cannot_act_leaves_its_weight_to_the_others():
    """Take from pool 0 if there is a message, else send, of a millionth of its weight."""
    env = ControlEnv("two-speeds", catalog=[Take(0), Send(1)], period=2000, customers=4000)
    env.reset(seed=0)
    for _ in range(2):
        before = env.simulator.arrays.pools["accepted"].copy()
        observation = env.step([1.0, -0.93, -1.0])[0]
        sent = env.simulator.arrays.pools["accepted"] - before
        assert sent[0] == pytest.approx(
            2000 * observation[control_names(env.scenario).index("pool 0: found a message")]
        )
        assert sent.min() > 100


def test_what_it_sees_is_the_mean_of_what_routers_see():
    """Compare a mixture of one step with that step in `RouterEnv`, by customer."""
    catalog = [Take(0), Take(1), Probe(weights="rate", at_most=4)]
    control = ControlEnv("two-speeds", catalog=catalog, period=50, customers=200)
    router = RouterEnv("two-speeds", catalog=catalog)
    first, _ = control.reset(seed=4)
    observation, info = router.reset(seed=4)
    observed = [router.observe(k) for k in range(10)]
    np.testing.assert_allclose(first[:22], np.mean([seen for seen, _ in observed], axis=0), atol=1e-6)
    np.testing.assert_allclose(first[22:24], np.mean([mask[:2] for _, mask in observed], axis=0), atol=1e-6)
    assert first[24:].tolist() == [0.0, 0.0, 0.0]
    for k in (2, 0, 1, 2):
        observations, found_messages, costs, waits, messages = [], [], [], [], []
        for _ in range(50):
            observations.append(observation)
            found_messages.append(info["action_mask"][:2])
            observation, reward, *_, info = router.step(k)
            costs.append(-reward)
            waits.append(info["wait"])
            messages.append(info["messages"])
        mean, reward, _, truncated, means = control.step(one_hot(control, k))
        wait, sent = np.mean(waits), np.mean(messages)
        expected = [
            *np.mean(observations, axis=0),
            *np.mean(found_messages, axis=0),
            wait / (1 + wait),
            0,
            sent / (1 + sent),
        ]
        np.testing.assert_allclose(mean, expected, atol=1e-6)
        assert reward == -means["cost"] == pytest.approx(-np.mean(costs), rel=1e-12)
        assert (means["customers"], means["blocked"], means["time"]) == (50, 0.0, info["time"])
        assert means["wait"] == pytest.approx(wait, rel=1e-12)
        assert means["messages"] == pytest.approx(sent, rel=1e-12)
    assert truncated


@pytest.mark.parametrize("name", scenario_names())
def test_presets_stay_within_the_space(name):
    env = ControlEnv(name, customers=2000)
    assert (
        len(control_names(env.scenario)) == env.observation_space.shape[0] == 10 * len(env.scenario.pools) + 7
    )
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    truncated = False
    while not truncated:
        assert env.observation_space.contains(observation)
        observation, _, _, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)


def test_numbers_outside_the_box_are_taken_as_the_nearest_within():
    env, twin = ControlEnv(SCENARIO), ControlEnv(SCENARIO)
    env.reset(seed=0), twin.reset(seed=0)
    wild = np.linspace(-3, 3, 14)
    assert env.step(wild)[1] == twin.step(wild.clip(-1, 1))[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": 0}, "period is 0: it must be a whole number from 1"),
        ({"period": 30, "customers": 100}, "customers is 100: it must be a multiple of period, 30, from 60"),
        (
            {"period": 100, "customers": 100},
            "customers is 100: it must be a multiple of period, 100, from 200",
        ),
        ({"catalog": []}, "catalog: steps is"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ControlEnv(SCENARIO, **arguments)


@pytest.mark.parametrize("action", [np.zeros(13), np.full(14, np.nan), 0.0])
def test_an_action_of_another_shape_or_not_finite_is_refused(action):
    env = ControlEnv(SCENARIO)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="it must be 14 numbers from -1 to 1"):
        env.step(action)


def test_a_trace_ends_the_episode_within_a_period(tmp_path):
    rng = np.random.default_rng(0)
    times, sizes = rng.exponential(1.0, 4250).cumsum(), rng.exponential(1.0, 4250) + 0.01
    rows = "\n".join(f"{time!r},{size!r}" for time, size in zip(times.tolist(), sizes.tolist(), strict=True))
    (tmp_path / "trace.csv").write_text(f"time,size\n{rows}\n")
    trace = Trace(str(tmp_path / "trace.csv"), time="time", size="size")
    scenario = Scenario((Pool(4, rate=1.5),), load=0.9, arrivals=trace, prices=Prices(message=0.1))
    env = ControlEnv(scenario)  # more are fed at a time than a period, and the end of a feed lies within one
    env.reset(seed=0)
    counts, total, truncated = [], 0.0, False
    while not truncated:
        observation, reward, _, truncated, info = env.step(one_hot(env, 4))
        counts.append(info["customers"])
        total += reward * info["customers"]
    assert counts == [100] * 42 + [50]
    assert env.observation_space.contains(observation)
    arrays = env.simulator.arrays
    messages = sum(int(arrays.head[name][0]) for name in ("pulls", "removes", "probes"))
    assert total == pytest.approx(-(arrays.pools["wait_sum"].sum() + 0.1 * messages), rel=1e-9)


@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_sac_and_td3_train_on_it(name):
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    env = ControlEnv("small-mixed", period=50, customers=1000)
    learner = getattr(stable_baselines3, name)("MlpPolicy", env, learning_starts=40, batch_size=32, seed=0)
    before = [weights.clone() for weights in learner.policy.parameters()]
    learner.learn(120)
    moved = [bool((a != b).any()) for a, b in zip(before, learner.policy.parameters(), strict=True)]
    assert sum(moved) > len(moved) / 2
    action, _ = learner.predict(env.reset(seed=1)[0], deterministic=True)
    assert env.action_space.contains(action)
    env.step(action)
