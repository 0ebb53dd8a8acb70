"""A network in the kernel, the naive twin and the env: the same bits."""

import dataclasses

import pytest

from pull_env.envs.policy_driver import PolicyEnv, play
from pull_env.envs.router import RouterEnv
from pull_env.policy.policy import Announce, Cycle, Inspect, Last, Memory, Probe, Recall, Send, Take
from pull_env.scenario.scenario import Pool, Prices, Scenario, load_scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.policy_runner import PolicyRunner
from tests.oracles.cases import ANNOUNCEMENTS, SCENARIOS, feeds
from tests.oracles.naive import Naive
from tests.oracles.naive_faults import NaiveFaults
from tests.oracles.networks import follow
from tests.oracles.twins import run_both, state_of

MIXED = (
    Take(),
    Last(),
    Recall(),
    Take(0, "oldest"),
    Probe(at_most=3, recall=True),
    Inspect("delay"),
    Cycle("rate"),
    Send(1),
)
KINDS = {
    "linear": ((), {}),
    "tanh": ((5,), {}),
    "relu": ((9, 8), {"activation": "relu"}),
    "sampled": ((16,), {"sampled": True, "scale": 1.0}),
    "masked": ((3,), {"masked": True}),
    "masked and sampled": ((), {"masked": True, "sampled": True, "scale": 1.0}),
}


def run_twins(scenario, policy, seed, stops, workload=None):
    runner = PolicyRunner(scenario, policy, workload)
    runner.reset(seed, 2)
    twin = NaiveFaults if scenario.has_faults_or_delays else Naive
    run_both(runner.simulator, runner.run, twin(scenario, policy, seed, 2, runner.simulator.workload), stops)


@pytest.mark.parametrize("clock", ["markov", "calendar"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("catalog", [None, MIXED], ids=["default", "mixed"])
def test_kernel_and_twin(catalog, kind, clock):
    hidden, options = KINDS[kind]
    for seed, (scenario, announce) in enumerate(
        zip(SCENARIOS.values(), ANNOUNCEMENTS.values(), strict=False)
    ):
        policy = follow(scenario, *hidden, catalog=catalog, announce=announce, seed=seed, **options)
        if seed % 2:
            policy = dataclasses.replace(policy, memory=Memory(2, by_pool=False))
        workload = feeds(scenario) if clock == "calendar" else None
        run_twins(scenario, policy, seed, (1, 40, 80), workload)


def test_nothing_is_announced_and_nothing_can_be_taken():
    scenario = SCENARIOS["infinite buffers"]
    policy = follow(scenario, 4, announce=None, catalog=(Take(), Take(1), Recall(0)), masked=True)
    run_twins(scenario, policy, 1, (1, 40, 200))


def test_a_network_of_many_units_and_a_long_run():
    scenario = Scenario((Pool(6, 0.5, 8), Pool(5, 1.0), Pool(4, 2.0, 1)), routers=3, load=0.9)
    policy = follow(scenario, 64, 64, sampled=True, scale=1.0)
    run_twins(scenario, policy, 7, (200, 400))


@pytest.mark.parametrize("customers", [0, 1, 97, 250])
def test_a_feed_ends(customers):
    scenario = SCENARIOS["finite buffers"]
    run_twins(scenario, follow(scenario, 4), 1, (0, 1, 96, 1, 200), feeds(scenario, customers=customers))


@pytest.mark.parametrize("name", ["failures", "slow-news"])
def test_faults(name):
    scenario = load_scenario(name)
    run_twins(scenario, follow(scenario, 8, sampled=True, scale=1.0), 1, (1, 60, 300))


def test_free_waiting_is_seen():
    scenario = Scenario(
        (Pool(2, 1.0, 3), Pool(2, 2.0)), routers=2, load=1.2, prices=Prices(wait=0, message=1)
    )
    run_twins(scenario, follow(scenario, 8), 3, (1, 300))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["two-speeds", "bursty", "finite-buffers"])
def test_the_environment_plays_the_same(name, kind):
    scenario, (hidden, options) = load_scenario(name), KINDS[kind]
    policy, customers = follow(scenario, *hidden, **options), 3000
    env = PolicyEnv(policy, scenario, customers=customers)
    env.reset(seed=5)
    assert play(policy, RouterEnv(scenario, customers=customers), seed=5) == env.play()
    runner = PolicyRunner(scenario, policy)
    runner.reset(5)
    assert runner.run(customers) == customers
    left, right = state_of(env.simulator), state_of(runner.simulator)
    assert left == {**right, **{key: left[key] for key in left.keys() - right.keys()}}
    assert set(right) <= set(left)


def test_an_agent_that_takes_the_best_action_plays_the_same():
    """The env's step, its observations and numpy in place of `PolicyEnv`."""
    scenario = load_scenario("small-mixed")
    policy = follow(scenario, 32)
    env, runner = RouterEnv(scenario, customers=2000), PolicyRunner(scenario, policy)
    compiled = CompiledNetwork(policy.network)
    seen, _ = env.reset(seed=5)
    for _ in range(2000):
        seen = env.step(int(compiled.preferences(seen[None])[0].argmax()))[0]
    runner.reset(5)
    runner.run(2000)
    assert state_of(env.simulator) == state_of(runner.simulator)


def test_a_catalog_of_its_own_and_announcements():
    scenario = SCENARIOS["unequal shares"]
    announce = Announce(threshold=2)
    policy = follow(scenario, catalog=MIXED, announce=announce)
    env = PolicyEnv(policy, scenario, customers=500)
    env.reset(seed=1)
    played = env.play()
    assert (
        play(policy, RouterEnv(scenario, catalog=MIXED, announce=announce, customers=500), seed=1) == played
    )
    runner = PolicyRunner(scenario, policy)
    runner.reset(1)
    runner.run(500)
    assert env.simulator.arrays.servers["queue"].tolist() == runner.simulator.arrays.servers["queue"].tolist()
    assert env.simulator.arrays.streams.tolist() == runner.simulator.arrays.streams.tolist()
    with pytest.raises(ValueError, match=r"catalog has 18 steps: network needs .* with its own 8"):
        play(policy, RouterEnv(scenario, announce=announce), seed=1)
    with pytest.raises(ValueError, match="memory is"):
        play(policy, RouterEnv(scenario, catalog=MIXED, announce=announce, memory=3), seed=1)
