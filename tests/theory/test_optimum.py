"""The optimal router: the known value, the form of its table, and that nothing beats it."""

import dataclasses
from itertools import pairwise, product

import pytest

import baselines
from pull_env import Pool, Prices, Scenario, simulate
from pull_env.theory.exact import solve
from pull_env.theory.exact.solver import solve_with_cuts
from pull_env.theory.exact.states import Outcome, build_system
from pull_env.theory.optimum import optimise
from tests.oracles.exactness import meets

UNLIMITED = Scenario((Pool(1, 1.0), Pool(1, 2.0)), arrival_rate=2.4, prices=Prices(1.0, 0.05, 0.0))
FULL_INFORMATION = ("jsq", "jfsq", "sed")


@pytest.fixture(scope="module")
def best():
    return optimise(UNLIMITED)


def test_two_unequal_servers(best):
    assert best.exact.mean_number == pytest.approx(4.656470, abs=1e-6)
    assert best.exact.cost == best.exact.wait
    for name in FULL_INFORMATION:
        assert solve(UNLIMITED, baselines.make(name)).mean_number > best.exact.mean_number + 0.05


def test_the_table_switches_once_and_the_more_customers_the_later(best):
    """With q slow customers the slow server (0) is chosen from curve[q] fast ones on, and curve rises."""
    curve = []
    for slow in range(15):
        row = [best.table[slow, fast] for fast in range(45)]
        assert row == sorted(row, reverse=True), "fast first, then slow"
        curve.append(row.count(1))
    assert all(before <= after for before, after in pairwise(curve))
    assert curve[:6] == [
        1,
        3,
        4,
        6,
        8,
        10,
    ]  # sed, (q + 1) / rate, switches at 1, 3, 5, 7: less for the fast one
    assert all(best.table[0, fast] == 0 for fast in range(1, 45)), (
        "an idle server is used if the other is not"
    )


def test_table_of_small_buffers_beats_every_other_table():
    scenario = Scenario((Pool(1, 1.0, 1), Pool(1, 2.0, 2)), arrival_rate=2.0, prices=Prices(1.0, 0.0, 3.0))
    states = list(product(range(2), range(3)))

    def cost(table):
        def route(system, state, router):
            return [Outcome(1.0, table[tuple(s.queue for s in state.servers)], 0, state)]

        return solve_with_cuts(scenario, lambda cut: build_system(scenario, cut, route), "a table", 100).cost

    costs = [cost(dict(zip(states, choice, strict=True))) for choice in product((0, 1), repeat=6)]
    assert optimise(scenario).exact.cost == pytest.approx(min(costs), abs=1e-12)


@pytest.mark.parametrize("block", [0.5, 2.0, 20.0])
def test_no_policy_beats_it(block):
    scenario = Scenario(
        (Pool(2, 1.0, 2), Pool(2, 2.5, 3)), routers=2, load=1.1, prices=Prices(1.0, 0.0, block)
    )
    least = optimise(scenario).exact.cost
    for name, entry in baselines.POLICIES.items():
        required = {k: 2 for k, p in entry.arguments.items() if p.default is p.empty}
        policy = baselines.make(name, **required)
        if name in (
            "round-robin",
            "weighted-round-robin",
            "jiq",
            "power-of-d-memory",
            "lsq",
            "lwl",
            "pandora",
        ):
            continue  # large chains, or none
        assert solve(scenario, policy).cost >= least - 1e-10, name


def test_of_equal_servers_the_shortest_queue_is_best():
    scenario = Scenario((Pool(3, 1.0, 4),), load=0.8, prices=Prices(1.0, 0.0, 100.0))
    best = optimise(scenario)
    assert best.exact.cost == pytest.approx(solve(scenario, baselines.make("jsq")).cost, rel=1e-10)
    assert all(queues[server] == queues[0] for queues, server in best.table.items())


def test_information_may_have_a_price():
    scenario = Scenario((Pool(2, 1.0, 2), Pool(1, 2.0, 2)), load=0.9, prices=Prices(1.0, 0.25, 5.0))
    free, paid = optimise(scenario), optimise(scenario, free_information=False)
    assert paid.table == free.table
    assert paid.exact.messages["probe"] == pytest.approx(6.0)
    assert paid.exact.cost == pytest.approx(free.exact.cost + 0.25 * 6)


def test_server_finds_the_one_meant_in_any_order():
    best = optimise(Scenario((Pool(2, 1.0, 3), Pool(1, 2.0, 3)), load=0.9))
    for queues in product(range(4), repeat=3):
        ordered = (*sorted(queues[:2]), queues[2])
        server, meant = best.server(queues), best.table[ordered]
        assert (queues[server], server == 2) == (ordered[meant], meant == 2)


@pytest.mark.slow
@pytest.mark.parametrize("free", [True, False])
def test_the_optimum_can_be_simulated(free):
    scenario = Scenario(
        (Pool(2, 1.0, 4), Pool(1, 2.5, 6)), routers=3, load=0.9, prices=Prices(1.0, 0.05, 8.0)
    )
    best = optimise(scenario, free_information=free)
    assert solve(scenario, best.policy()).cost == pytest.approx(best.exact.cost, abs=1e-10)
    found = simulate(scenario, best.policy(), 20_000_000, replications=32, seed=2)
    for name in ("mean_number", "response", "p_block", "cost"):
        meets(getattr(found, name), getattr(best.exact, name), width=0.01, what=name)


@pytest.mark.slow
def test_the_optimum_of_two_unlimited_servers_can_be_simulated(best):
    found = simulate(UNLIMITED, best.policy(), 40_000_000, replications=64, seed=1)
    meets(found.mean_number, 4.656470)


def test_a_lookup_of_too_many_servers_is_refused():
    best = optimise(Scenario((Pool(10, 1.0, 4),), load=0.9))
    with pytest.raises(ValueError, match="10,000,000,000 entries"):
        dataclasses.replace(best, exact=dataclasses.replace(best.exact, cut=(9,))).policy()


def test_a_table_that_would_be_too_large_is_refused():
    with pytest.raises(ValueError, match="more than 500 states"):
        optimise(Scenario((Pool(4, 1.0, 9),), load=0.9), most_states=500)
    with pytest.raises(ValueError, match="no limits"):
        optimise(Scenario((Pool(2),), load=1.2))
