"""All envs under all workloads: equal to the kernel and to one another."""

import copy
import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from pull_env import Announce, Drain, Faults, News, Pool, Scenario, Send, Take, evaluate
from pull_env.envs.adapters.multi_agent import aec_env, parallel_env
from pull_env.envs.control import ControlEnv
from pull_env.envs.dispatch import DispatchEnv
from pull_env.envs.policy_driver import PolicyEnv
from pull_env.envs.router import RouterEnv
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated
from pull_env.scenario.laws import Erlang, Hyperexponential, Pareto
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.kernel_data.view import observation_names
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.warmup import warmup_customers
from pull_env.simulation.workload import workload_for
from tests.oracles.env_twins import (
    POLICIES,
    assert_same_state,
    assert_twins,
    cost_of,
    kernel_run,
    pair,
    record,
)

POOLS = (Pool(4, 1.5), Pool(3, 0.5, buffer=4))
WORKLOADS = {
    "service": Scenario(POOLS, routers=3, load=0.8, service=Hyperexponential(5.0)),
    "bursts": Scenario(POOLS, routers=3, load=0.8, arrivals=Bursts(1.6, 20.0), service=Erlang(2)),
    "day": Scenario(POOLS, routers=3, load=0.8, arrivals=Day(50.0, 0.8)),
    "batches": Scenario(POOLS, routers=3, load=0.8, arrivals=Batches(3.0)),
    "hot router": Scenario(POOLS, routers=3, load=0.8, shares=HotRouter(0.8, 30.0), service=Pareto(1.5)),
    "slow news": Scenario(POOLS, routers=3, load=0.8, news=News(0.3, "exponential", loss=0.1, repeat=4.0)),
    "failures": Scenario(
        POOLS,
        routers=3,
        load=0.8,
        faults=Faults(30.0, 5.0, "lost", normal=20.0, slow=5.0, restart=40.0, drains=(Drain(1, 50.0, 90.0),)),
    ),
}
each = pytest.mark.parametrize("scenario", WORKLOADS.values(), ids=WORKLOADS)


@each
@pytest.mark.parametrize("observation", ["local", "with-state"])
def test_checkers_accept_it(scenario, observation):
    env = gym.make("pull_env/Router-v0", scenario=scenario.to_dict(), observation=observation)
    check_env(env.unwrapped, skip_render_check=True)
    check_env(DispatchEnv(scenario), skip_render_check=True)
    check_env(ControlEnv(scenario), skip_render_check=True)


@each
@pytest.mark.parametrize("policy", POLICIES[::3], ids=lambda policy: policy.name)
def test_kernel_and_env_end_in_the_same_state(policy, scenario):
    """Bit-identical, over more customers than one feed."""
    env = PolicyEnv(policy, scenario, customers=5000)
    env.reset(seed=11)
    env.play()
    assert_same_state(env, kernel_run(policy, scenario, 5000, 11, 0))


@each
def test_the_vector_env_is_that_of_single_ones(scenario):
    """Past the next feed, and past the end of the episode."""
    ends = assert_twins(*pair(AutoresetMode.SAME_STEP, 2, scenario=scenario, customers=4200), steps=4300)
    assert ends == 2


@each
def test_copies_continue_past_the_next_feed(scenario):
    env = RouterEnv(scenario, customers=9000, observation="with-state")
    env.reset(seed=3)
    record(env, 1000)
    others = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    expected = record(env, 5000)
    assert all(record(other, 5000) == expected for other in others)


@each
def test_rewards_add_up_to_the_cost(scenario):
    for env in (RouterEnv(scenario, customers=1000), DispatchEnv(scenario, customers=1000)):
        env.reset(seed=4)
        rng, total, truncated = np.random.default_rng(0), 0.0, False
        while not truncated:
            _, reward, _, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
            total += reward
        assert total == pytest.approx(-cost_of(env), rel=1e-9)
    env = ControlEnv(scenario, customers=1000)
    env.reset(seed=4)
    total, truncated = 0.0, False
    while not truncated:
        _, reward, _, truncated, info = env.step(env.action_space.sample())
        total += reward * info["customers"]
    assert total == pytest.approx(-cost_of(env), rel=1e-9)


@each
def test_routers_as_agents(scenario):
    env = aec_env(scenario, customers=300)
    env.reset(seed=1)
    steps = 0
    for _ in env.agent_iter():
        *_, truncated, _ = env.last()
        env.step(None if truncated else 0)
        steps += not truncated
    assert steps == 300
    both = parallel_env(scenario, customers=400)
    both.reset(seed=1)
    customers = 0
    while both.agents:
        infos = both.step({agent: both.action_space(agent).sample() for agent in both.agents})[4]
        customers += sum(info["customers"] for info in infos.values())
    assert customers == 400


def phases_seen(scenario, customers=3000):
    env = RouterEnv(scenario, customers=customers + 1, observation="with-state")
    phase = observation_names(scenario, with_state=True).index("state: arrival phase")
    seen = [env.reset(seed=2)[0][phase]]
    seen += [env.step(0)[0][phase] for _ in range(customers - 1)]
    feed, fed = workload_for(scenario)(np.random.SeedSequence(2, spawn_key=(0, 0))), []
    while sum(map(len, fed)) < customers:
        fed.append(feed.draw(4096).phases)
    return np.array(seen), np.concatenate(fed)[:customers]


@pytest.mark.parametrize(
    "arrivals",
    [Bursts(1.6, 20.0), Modulated((1, 2, 3), (9, 9, 9)), Day(50.0, 0.8)],
    ids=["bursts", "3", "day"],
)
def test_the_state_shows_the_phase_of_arrivals(arrivals):
    seen, fed = phases_seen(Scenario(POOLS, routers=3, load=0.8, arrivals=arrivals))
    np.testing.assert_array_equal(seen, fed.astype(np.float32))
    if not isinstance(arrivals, Day):
        assert len(set(seen)) == len(getattr(arrivals, "rates", (0, 1)))


def test_the_phase_is_not_what_a_router_sees():
    scenario = WORKLOADS["bursts"]
    local = RouterEnv(scenario).reset(seed=0)[0]
    state = RouterEnv(scenario, observation="with-state")
    assert np.array_equal(state.reset(seed=0)[0][: state.local_size], local)


class SendsToFast:
    """An agent that sends to pool 0, by the default catalog."""

    def predict(self, observation, *, deterministic=False):
        return np.full(len(observation), 4), None


@each
def test_evaluate_meets_the_customers_of_the_kernel(scenario):
    scenario = replace(scenario, load=0.5)  # all customers go to four of the servers
    found = evaluate(SendsToFast(), scenario, 6400, seed=6, replications=2, warmup=100)
    assert found.customers == 6400
    fill, sends = (encode(steps, scenario) for steps in ((Take(), Send(weights="rate")), (Send(0),)))
    waits, accepted = [], []
    for k in range(2):
        simulator = Simulator(scenario, (Take(), Send()), Announce(), workload=workload_for(scenario))
        simulator.reset(6, k)
        simulator.run(fill, warmup_customers(scenario, None))
        simulator.run(sends, 100)
        before = simulator.arrays.pools.copy()
        simulator.run(sends, 3200)
        waits.append((simulator.arrays.pools["wait_sum"] - before["wait_sum"]).sum())
        accepted.append((simulator.arrays.pools["accepted"] - before["accepted"]).sum())
    assert found.stable
    assert found.wait.mean == pytest.approx(np.mean(np.array(waits) / accepted), rel=1e-9)
