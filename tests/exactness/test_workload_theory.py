"""Workloads against theory: queues of general service, of modulated, renewal and batch arrivals, and PULL."""

import math

import numpy as np
import pytest

import baselines
from pull_env import Policy, Pool, Scenario, Send, load_scenario, simulate
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
from pull_env.scenario.laws import Deterministic, Erlang, Exponential, Hyperexponential, Lognormal, Pareto
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import calendar_workload
from pull_env.theory import exact, formulas, optimum, pull_mean_field
from pull_env.theory.prediction import lower_bounds, predict
from tests.oracles.exactness import combine, meets
from tests.oracles.workloads import LAWS

TWO = (Pool(2, 2.0), Pool(2, 1.0))
ONE = (Pool(1),)
RANDOM = Policy("random", (Send(),))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("name", ["random", "weighted"])
def test_pollaczek_khinchine(name, law):
    """Loads of the two kinds of servers: .375 and .75 by number, .5 and .5 by rate."""
    scenario = Scenario(TWO, load=0.5, service=law)
    customers = 1_000_000 if law.scv <= 1.0 else 4_000_000
    result = simulate(scenario, baselines.make(name), customers, seed=1, replications=16)
    arrivals, chances = ((0.75, 0.75), (0.5, 0.5)) if name == "random" else ((1.0, 0.5), (2 / 3, 1 / 3))
    waits = [a * (1 + law.scv) / (2 * r * (r - a)) for a, r in zip(arrivals, (2.0, 1.0), strict=True)]
    wait = math.fsum(c * w for c, w in zip(chances, waits, strict=True))
    meets(result.wait, wait, width=0.06)
    meets(
        result.p_wait, math.fsum(c * a / r for c, a, r in zip(chances, arrivals, (2, 1), strict=True)), 0.01
    )
    if law != Exponential():  # which the theory of Markov queues knows
        known = predict(scenario, baselines.make(name))
        assert known["wait"].value == pytest.approx(wait, rel=1e-12)
        assert (known["wait"].kind, "Pollaczek" in known["wait"].source) == ("exact", True)


def waits_of(scenario, policy, customers, seed):
    """The waits of customers, one by one, and the feed that the simulator had."""
    simulator = Simulator(scenario, policy.steps, policy.announce, workload=calendar_workload(scenario))
    simulator.reset(seed)
    chain, waits = encode(policy.steps, scenario), np.zeros(customers)
    for k in range(customers):
        simulator.run(chain, 1)
        waits[k] = simulator.arrays.head["wait"][0]
    feed = calendar_workload(scenario)(np.random.SeedSequence(seed, spawn_key=(0, 0)))
    return waits, feed.draw(customers)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("arrivals", [None, Batches(3.0), Bursts(1.5, 20.0), Day(50.0, 1.0)], ids=str)
def test_least_work_is_the_recursion_of_kiefer_and_wolfowitz(servers, arrivals):
    """G/G/n, customer by customer: the one who comes waits for the least work, and adds to it."""
    scenario = Scenario((Pool(servers, 1.5),), load=0.9, arrivals=arrivals, service=Lognormal(3.0))
    waits, fed = waits_of(scenario, baselines.make("lwl"), 2000, seed=2)
    work = np.zeros(servers)
    for gap, size, wait in zip(fed.gaps, fed.sizes, waits, strict=False):
        work = np.sort(np.maximum(work - gap, 0.0))
        assert wait == pytest.approx(work[0], abs=1e-9)
        work[0] += size / 1.5


@pytest.mark.slow
def test_least_work_on_equal_servers_is_one_queue():
    """M/M/3 by other means: renewal arrivals with exponential gaps."""
    scenario = Scenario((Pool(3),), load=0.8, arrivals=Renewal(Exponential()))
    result = simulate(scenario, baselines.make("lwl"), 7_000_000, seed=3, replications=16)
    meets(result.p_wait, formulas.erlang_c(3, 2.4), width=0.01)
    meets(result.wait, formulas.mmc_wait(3, 2.4), width=0.03)


def modulated_queue(arrivals, scenario):
    """E[N] and P(wait) of MMPP/M/1 with rate 1, by the matrix-geometric method (Neuts 1981).

    The rates of phases are scaled to the scenario's. R solves A + R B + R^2 = 0, where A is the matrix of
    arrivals, B of all else, and departures have rate 1.
    """
    rates = np.array(arrivals.rates) * scenario.total_arrival_rate / arrivals.mean_rate
    phases, moves = len(rates), arrivals.generator
    up, identity = np.diag(rates), np.eye(phases)
    within = moves - up - identity
    solution = np.zeros((phases, phases))
    for _ in range(100_000):
        last, solution = solution, -(up + solution @ solution) @ np.linalg.inv(within)
        if np.abs(solution - last).max() < 1e-14:
            break
    rest = np.linalg.inv(identity - solution)
    empty = np.vstack([(moves - up + solution).T, rest.sum(axis=1)])
    start = np.linalg.lstsq(empty, np.append(np.zeros(phases), 1.0), rcond=None)[0]
    number = float((start @ solution @ rest @ rest).sum())
    return number, 1.0 - float(start @ rates) / scenario.total_arrival_rate


@pytest.mark.slow
@pytest.mark.parametrize(
    "arrivals",
    [
        Modulated((0.5, 3.0), (10.0, 2.0)),
        Modulated((0.0, 1.0, 4.0), (1.0, 3.0, 0.5), ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0))),
        Bursts(1.4, 5.0, 0.2),
    ],
    ids=["two phases", "three phases", "bursts"],
)
def test_a_modulated_stream_at_one_server(arrivals):
    scenario = Scenario(ONE, load=0.6, arrivals=arrivals)
    phases = arrivals.phases(0.6) if isinstance(arrivals, Bursts) else arrivals
    number, waits = modulated_queue(phases, scenario)
    result = simulate(scenario, RANDOM, 2_000_000, seed=4, replications=16)
    meets(result.mean_number, number, width=0.05)
    meets(result.response, number / 0.6, width=0.05)
    meets(result.p_wait, waits, width=0.01)
    plain, _ = modulated_queue(Modulated((1.0, 1.0), (1.0, 2.0)), scenario)
    assert plain == pytest.approx(0.6 / 0.4, rel=1e-9)


@pytest.mark.slow
def test_independent_gaps_at_one_server():
    """GI/M/1: P(wait) is the root z of z = E[exp(-(1 - z) gap)], and E[wait] = z / (1 - z)."""
    gaps = {Erlang(4): formulas.round_robin_p_wait(4, 2.8), Deterministic(): 0.0, Hyperexponential(4.0): 0.0}
    p = 0.5 + 0.5 * math.sqrt(0.6)
    for _ in range(500):
        z, w = gaps[Deterministic()], gaps[Hyperexponential(4.0)]
        gaps[Deterministic()] = math.exp(-(1 - z) / 0.7)
        gaps[Hyperexponential(4.0)] = sum(
            q * 1.4 * q / (1.4 * q + 1 - w) for q in (p, 1 - p)
        )  # rates 2 q x .7 of the two laws
    for law, z in gaps.items():
        result = simulate(
            Scenario(ONE, load=0.7, arrivals=Renewal(law)), RANDOM, 3_000_000, seed=5, replications=16
        )
        meets(result.p_wait, z, width=0.01)
        meets(result.wait, z / (1 - z), width=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("batches", "second"), [(Batches(4.0), 7.0), (Batches(4, "fixed"), 4.0)])
def test_batches_at_one_server(batches, second):
    """M^X/M/1: E[N] = rho (1 + E[X^2] / E[X]) / (2 (1 - rho)), where `second` is E[X^2] / E[X]."""
    scenario = Scenario(ONE, load=0.6, arrivals=batches)
    result = simulate(scenario, RANDOM, 6_000_000, seed=6, replications=16)
    meets(result.mean_number, 0.6 * (1 + second) / 0.8, width=0.02)
    meets(result.response, (1 + second) / 0.8, width=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("law", [Erlang(2), Hyperexponential(4.0)], ids=["erlang", "hyperexponential"])
def test_pull_with_phases_of_service(law):
    """A busy server in a large system is M/PH/1 with the arrivals of routers without message, lambda q_0.

    Idle servers do not see the law of service, so that q_0 and P(wait) = lambda q_0 are those of exponential
    service; those who wait, wait as in M/G/1 when it is busy: (1 + scv) / (2 (1 - lambda q_0)).
    """
    scenario = Scenario((Pool(1000),), routers=100, load=0.8, service=law)
    run = {"replications": 16, "warmup": 80_000}  # a hundred service times
    result = simulate(scenario, baselines.make("pull"), 8_000_000, seed=7, **run)
    limit = pull_mean_field.pull_many_routers(scenario.pools, 0.8, 10.0)
    meets(result.p_wait, limit.p_wait, width=0.02)
    meets(result.wait, limit.p_wait * (1 + law.scv) / (2 * (1 - limit.p_wait)), width=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bursty", "hot-spot-moves", "batches"])
def test_flow_and_little_on_the_presets(name):
    """E[N] = Lambda E[response], and messages of PULL: each that is sent is taken or withdrawn."""
    scenario = load_scenario(name)
    result = simulate(scenario, baselines.make("pull-weighted"), 1_600_000, seed=8, replications=16)
    assert result.stable
    meets(combine(lambda p, w: p + w, result.messages["pull"], result.p_wait), 1.0, width=0.002)
    rate = scenario.total_arrival_rate
    ratio = combine(lambda number, response: number / response / rate, result.mean_number, result.response)
    meets(ratio, 1.0, width=0.15)


@pytest.mark.parametrize(
    "parts",
    [{"arrivals": Batches(2.0)}, {"service": Erlang(2)}, {"shares": HotRouter(0.5, 1.0), "routers": 2}],
    ids=["arrivals", "service", "shares"],
)
def test_theory_of_markov_systems_claims_nothing_else(parts):
    finite = Scenario((Pool(2, 1.0, 2), Pool(1, 2.0, 2)), load=0.5, **parts)
    for name in ("pull", "jsq", "lwl", "balanced(2)", "round-robin", "random", "weighted"):
        assert predict(finite, baselines.make(name)) is None
    for name in ("pull", "jsq", "lwl", "balanced(2)", "round-robin"):
        assert predict(Scenario((Pool(2),), load=0.5, **parts), baselines.make(name)) is None
    least = lower_bounds(finite)
    assert (least["wait"].value, least["response"].value) == (0.0, 0.5)
    assert (least["p_block"].value > 0.0) == (
        "shares" in parts
    )  # which do not matter to servers pooled into one
    with pytest.raises(ValueError, match="is not Markov: a chain cannot describe it"):
        exact.solve(finite, baselines.make("jsq"))
    with pytest.raises(ValueError, match="is not Markov: a chain cannot describe it"):
        optimum.optimise(finite)


def test_theory_claims_no_infinite_mean():
    assert predict(Scenario((Pool(2),), load=0.5, service=Pareto(1.8)), RANDOM) is None


@pytest.mark.parametrize("scenario", ["heavy-tailed", "bursty"])
def test_huge_requirements_and_bursts_are_not_mistaken_for_growth(scenario):
    """Blind by rate the load is .7; by number that of the slow servers is 1.4."""
    for seed in range(6):
        run = {"seed": seed, "replications": 4, "warmup": 20_000}
        assert simulate(scenario, baselines.make("weighted"), 60_000, **run).stable
    for replications in (1, 4, 8):
        assert not simulate(scenario, RANDOM, 200_000, seed=1, replications=replications, warmup=0).stable
