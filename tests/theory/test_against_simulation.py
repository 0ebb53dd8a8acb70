"""Limits and closed forms of queueing theory, by intervals: large systems, single queues, two equal servers."""

import numpy as np
import pytest

import baselines
from pull_env import Inspect, Policy, Pool, Probe, Scenario, simulate
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.statistics import estimate
from pull_env.simulation.workload import calendar_workload
from tests.oracles.exactness import agrees, meets

pytestmark = pytest.mark.slow

EQUAL = (Pool(10_000, 1.0),)
HALVES = (Pool(5_000, 1.0), Pool(5_000, 2.0))


def large(pools, policy, customers=24_000_000, warmup=1_000_000, **system):
    """Simulate 10,000 servers: a warm-up of 60 time units or more, and a bias of order 1/n below the interval."""
    scenario = Scenario(pools, **system)
    return simulate(scenario, baselines.make(policy), customers, warmup=warmup, replications=16, seed=2)


@pytest.mark.parametrize(("d", "exact"), [(2, 2.614057), (3, 2.027856), (5, 1.632881)])
def test_supermarket_model(d, exact):
    meets(large(EQUAL, f"power-of-d({d})", load=0.9).response, exact, width=0.005)


@pytest.mark.parametrize(("c", "exact"), [(2, 1.298242), (3, 1.053924), (5, 0.885945)])
def test_balanced_routing(c, exact):
    meets(large(HALVES, f"balanced({c})", arrival_rate=12_000.0).response, exact, width=0.005)


def test_balanced_routing_with_one_choice_is_single_queues():
    meets(large(HALVES, "balanced(1)", load=0.8, warmup=3_000_000).response, 1 / 0.2 / 1.5, width=0.01)


@pytest.mark.parametrize("c", [2, 3])
def test_balanced_routing_has_equal_tails_in_both_pools(c):
    """The share of servers with k customers or more is rho^((c^k - 1) / (c - 1)) in every pool (Chen and Ye 2012)."""
    scenario = Scenario(HALVES, load=0.8)
    policy = baselines.make("balanced", c=c)
    chain, tails = encode(policy.steps, scenario), []
    simulator = Simulator(scenario, policy.steps, policy.announce)
    simulator.reset(3)
    simulator.run(chain, 1_000_000)
    for _ in range(1200):
        simulator.run(chain, 12_000)  # one time unit
        queues = simulator.arrays.servers["queue"].reshape(2, -1)
        tails.append([[(queue >= k).mean() for k in (1, 2, 3)] for queue in queues])
    batches = np.array(tails).reshape(20, 60, 2, 3).mean(axis=1)
    for pool in range(2):
        for k in (1, 2, 3):
            exact = 0.8 ** ((c**k - 1) / (c - 1))
            meets(estimate(batches[:, pool, k - 1]), exact, width=0.02, what=f"pool {pool}, k {k}")


# PULL, n and R to infinity at r = n / R: q0 = P(router empty), E[T], P(wait), P(block).
MEAN_FIELD = [
    ([Pool(10_000, 1.0)], 9_000.0, 10, 0.481720, 1.765375, 0.433548, 0.0),
    ([Pool(10_000, 1.0)], 9_000.0, 100, 0.084351, 1.082153, 0.075916, 0.0),
    ([Pool(10_000, 1.0)], 5_000.0, 10, 0.132504, 1.070953, 0.066252, 0.0),
    ([Pool(5_000, 1.0), Pool(5_000, 2.0)], 12_000.0, 10, 0.333578, 1.012191, 0.274470, 0.0),
    ([Pool(5_000, 1.0, 3), Pool(5_000, 2.0, 1)], 12_000.0, 10, 0.259352, 0.834554, 0.112926, 0.093644),
    ([Pool(2_000, 3.0), Pool(3_000, 1.5, 5), Pool(5_000, 0.9, 2)], 13_500.0, 20, 0.298989, 0.897024, 0.233262, 0.043659),
]  # fmt: skip


@pytest.mark.parametrize("case", MEAN_FIELD, ids=lambda case: f"r={case[2]} E[T]={case[4]}")
def test_pull_with_many_routers(case):
    pools, arrival_rate, r, q0, response, p_wait, p_block = case
    n = sum(pool.size for pool in pools)
    result = large(pools, "pull", arrival_rate=arrival_rate, routers=n // r)
    rare = 0.015 if r == 100 else 0.01
    meets(result.response, response, width=0.005)
    meets(result.p_wait, p_wait, width=rare)
    pull, remove = result.messages["pull"], result.messages["remove"]
    meets(estimate(1 - np.array(pull.samples) + np.array(remove.samples)), q0, width=rare)
    if p_block:
        meets(result.p_block, p_block, width=rare)


# PULL as n grows at fixed R: sizes, rates, load; busy share of each pool, E[T].
FLUID = [
    ((5_000, 5_000), (1.0, 2.0), 0.8, (0.867619, 0.766190), 0.680754),
    ((5_000, 5_000), (1.0, 2.0), 0.9, (0.937014, 0.881493), 0.673521),
    ((8_000, 2_000), (1.0, 10.0), 0.7, (0.938606, 0.604558), 0.444794),
    ((2_000, 3_000, 5_000), (3.0, 1.5, 0.9), 0.9, (0.849139, 0.918416, 0.949398), 0.681520),
]  # fmt: skip


@pytest.mark.parametrize("case", FLUID, ids=str)
def test_pull_as_the_system_grows(case):
    sizes, rates, load, busy, response = case
    result = large([Pool(*kind) for kind in zip(sizes, rates, strict=True)], "pull", load=load)
    meets(result.response, response, width=0.002)
    for found, exact in zip(result.busy, busy, strict=True):
        meets(found, exact, width=0.002)
    assert result.p_wait.mean < 1e-4


# Two servers of rate 1: E[N]; of M/M/2 by Erlang C.
TWO_EQUAL = {
    0.8: {"jsq": 4.72918, "jbt(8)": 6.41192, "jbt(4)": 5.47094, "jbt(2)": 5.15921, "jiq": 5.53846, "random": 8.0},
    0.9: {"jsq": 9.85484, "jbt(8)": 11.97918, "jbt(4)": 10.78772, "jbt(2)": 10.90083, "jiq": 12.21429, "random": 18.0},
    0.95: {"jsq": 19.92461, "jbt(8)": 22.26844, "jbt(4)": 21.17066, "jbt(2)": 22.33214, "jiq": 25.55172, "random": 38.0},
}  # fmt: skip
EFFORT = {0.8: (40_000_000, 0.008), 0.9: (50_000_000, 0.016), 0.95: (60_000_000, 0.036)}


@pytest.mark.parametrize(("load", "name"), [(load, name) for load, row in TWO_EQUAL.items() for name in row])
def test_two_equal_servers(load, name):
    customers, width = EFFORT[load]
    scenario = Scenario((Pool(2, 1.0),), load=load)
    result = simulate(scenario, baselines.make(name), customers, replications=32, seed=4)
    meets(result.mean_number, TWO_EQUAL[load][name], width=width)


@pytest.mark.parametrize("load", [0.8, 0.9])
def test_jiq_closed_form(load):
    scenario = Scenario((Pool(2, 1.0),), load=load)
    result = simulate(scenario, baselines.make("jiq"), 40_000_000, replications=32, seed=5)
    exact = 2 * load * (1 + load) / ((1 - load) * (1 + 2 * load))
    meets(result.mean_number, exact, width=0.02)


def test_round_robin_to_equal_servers_is_an_erlang_arrival_queue():
    """E_2/M/1 at load .8: the root of z = (2 lambda / (2 lambda + mu (1 - z)))^2 gives E[T] = 1 / (mu (1 - z))."""
    z = 0.5
    for _ in range(200):
        z = (1.6 / (1.6 + 1 - z)) ** 2
    scenario = Scenario((Pool(2, 1.0),), load=0.8)
    result = simulate(scenario, baselines.make("round-robin"), 20_000_000, replications=32, seed=6)
    meets(result.response, 1 / (1 - z), width=0.01)


def test_weighted_round_robin_gives_each_server_its_share():
    scenario = Scenario((Pool(3, 2.0), Pool(2, 0.5)), load=0.7)
    result = simulate(scenario, baselines.make("weighted-round-robin"), 10_000_000, replications=16, seed=6)
    for busy in result.busy:
        meets(busy, 0.7, width=0.005)


def test_least_work_on_equal_servers_is_one_queue():
    """Exactly M/M/3: Erlang's C formula at load .8 gives P(wait) = .647191 and E[wait] = P(wait) / .6."""
    policy = Policy("least work", (Inspect(rank="work"),))
    result = simulate(Scenario((Pool(3, 1.0),), load=0.8), policy, 8_000_000, replications=16, seed=7)
    meets(result.p_wait, 0.6471910112359551, width=0.01)
    meets(result.wait, 0.6471910112359551 / 0.6, width=0.03)


def deterministic(generator, count):
    return np.ones(count)


def two_point(generator, count):
    """Half of size .1, half of 1.9: squared coefficient of variation .81."""
    return np.where(generator.random(count) < 0.5, 0.1, 1.9)


@pytest.mark.parametrize(("sizes", "variation"), [(deterministic, 0.0), (two_point, 0.81)])
@pytest.mark.parametrize("name", ["random", "weighted"])
def test_pollaczek_khinchine(name, sizes, variation):
    scenario = Scenario((Pool(2, 2.0),), load=0.7)
    result = simulate(
        scenario,
        baselines.make(name),
        8_000_000,
        replications=16,
        seed=8,
        workload=calendar_workload(scenario, sizes),
    )
    meets(result.response, 0.5 * (1 + 0.7 * (1 + variation) / (2 * 0.3)), width=0.01)
    meets(result.p_wait, 0.7, width=0.01)


@pytest.mark.parametrize("entry", baselines.POLICIES.values(), ids=lambda entry: entry.name)
def test_exponential_requirements_on_the_calendar_agree_with_the_markov_clock(entry):
    policy = baselines.make(entry.name, **({"r": 2} if entry.name == "jbt" else {}))
    scenario = Scenario((Pool(2, 1.0, 2), Pool(2, 2.0, 4)), routers=2, load=0.9)
    run = {"customers": 8_000_000, "replications": 16}
    markov = simulate(scenario, policy, seed=9, **run)
    calendar = simulate(scenario, policy, seed=10, **run, workload=calendar_workload(scenario))
    for name in ("wait", "response", "p_wait", "p_block", "mean_number"):
        agrees(getattr(markov, name), getattr(calendar, name), width=0.025, what=name)
    for kind in ("pull", "remove", "probe"):
        agrees(markov.messages[kind], calendar.messages[kind], width=0.02, what=kind)
    for p in (0.9, 0.99):
        agrees(markov.wait_quantiles[p], calendar.wait_quantiles[p], width=0.03, what=f"quantile {p}")


def test_quantiles_of_the_wait_in_a_single_queue():
    """M/M/1: P(wait > t) = rho exp(-(mu - lambda) t)."""
    scenario = Scenario((Pool(1, 2.0),), load=0.8)
    for workload, customers in ((None, 20_000_000), (calendar_workload(scenario), 14_000_000)):
        result = simulate(
            scenario, baselines.make("random"), customers, replications=32, seed=11, workload=workload
        )
        for p in (0.5, 0.9, 0.99):
            meets(result.wait_quantiles[p], np.log(0.8 / (1 - p)) / 0.4, width=0.03, what=str(p))


def test_supermarket_probe_without_replacement_matches_its_policy():
    named = baselines.make("power-of-d", d=3)
    assert named.steps == (Probe(at_most=3),)
