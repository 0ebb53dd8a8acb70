"""Search: reservation waits against integration, and effects of prices."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import baselines
from pull_env import Policy, Pool, Prices, Scenario, Search, load_scenario, simulate
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.theory.exact import solve


def after(scenario, policy, customers, seed=0):
    """Return the arrays of a system after `customers` customers."""
    simulator = Simulator(scenario, policy.steps, policy.announce)
    simulator.reset(seed)
    simulator.run(encode(policy.steps, scenario), customers)
    return simulator.arrays


def histories(scenario, customers=3000):
    """Yield each pool's recent answers to each router, as waits, and the reservation."""
    for row in after(scenario, Policy("search", (Search(),)), customers).histories:
        for history, pool in zip(row, scenario.pools, strict=True):
            yield history["queues"][: history["count"]] / pool.rate, float(history["reservation"])


@pytest.mark.parametrize(
    "prices", [Prices(message=m) for m in (0.003, 0.05, 0.4)] + [Prices(2.0, 0.05)], ids=str
)
@pytest.mark.parametrize("load", [0.5, 0.95])
def test_the_reservation_wait_solves_its_equation(prices, load):
    """2 x message price = wait price x E[(s - W)+], the integral of P(W <= w) up to s."""
    scenario = Scenario((Pool(9, 1.5), Pool(7, 0.7), Pool(5, 0.2)), routers=3, load=load, prices=prices)
    found = list(histories(scenario))
    assert len(found) == 9
    assert len({reservation for _, reservation in found}) > 4
    for waits, s in found:
        assert len(waits) == 16
        gain, _ = quad(
            lambda w, waits=waits: float((waits <= w).mean()), 0.0, s, points=np.unique(waits), limit=200
        )
        assert prices.wait * gain == pytest.approx(2 * prices.message, rel=1e-6)


def test_a_single_answer_is_the_whole_distribution():
    scenario = Scenario((Pool(40, 2.0),), load=0.9, prices=Prices(message=0.05))
    for waits, s in histories(scenario, customers=1):  # all servers are idle: one answer is enough
        assert waits.tolist() == [0.0]
        assert s == pytest.approx(0.1)


def test_free_messages_find_the_best_and_infinitely_costly_ones_are_sent_once():
    pools, three = (Pool(6, 1.0),), Policy("three", (Search(at_most=3),))
    free = Scenario(pools, load=0.9, prices=Prices(message=0.0))
    assert simulate(free, three, 20_000).messages["probe"].mean > 2.5
    assert all(s == waits.min() for waits, s in histories(free))
    costly = Scenario(pools, load=0.9, prices=Prices(wait=0.0))
    assert simulate(costly, three, 20_000).messages["probe"].mean == 2.0
    assert all(np.isinf(s) for _, s in histories(costly))


def test_costlier_messages_are_fewer_and_waits_longer():
    results = [
        simulate(
            replace(load_scenario("two-speeds"), prices=Prices(message=price)),
            baselines.make("pandora"),
            200_000,
        )
        for price in (0.005, 0.05, 0.5)
    ]
    messages, waits = ([r.messages["probe"].mean for r in results], [r.wait.mean for r in results])
    assert messages[0] > 1.3 * messages[1] > 1.3 * 1.3 * messages[2]
    assert waits[0] < waits[1] < waits[2]


def test_it_probes_at_most_its_limit_and_no_server_twice():
    scenario = Scenario((Pool(2, 1.0, 2), Pool(1, 3.0, 2)), load=1.5, prices=Prices(message=0.0))
    policy = Policy("all", (Search(at_most=50),))
    simulator = Simulator(scenario, policy.steps, None)
    simulator.reset(0)
    for _ in range(300):
        simulator.run(encode(policy.steps, scenario), 1)
        probed = simulator.arrays.probed[: simulator.arrays.head["probed_count"][0]].tolist()
        assert 1 <= len(probed) == len(set(probed)) <= 3


def test_a_search_of_one_is_a_random_choice_by_rate_that_pays():
    scenario = Scenario((Pool(1, 1.0, 2), Pool(1, 2.0, 3)), load=0.9)
    found = simulate(scenario, Policy("one", (Search(at_most=1),)), 4_000_000, replications=16)
    known = solve(scenario, baselines.make("weighted"))
    assert abs(found.mean_number.mean - known.mean_number) < found.mean_number.half_width(0.999)
    assert abs(found.p_block.mean - known.p_block) < found.p_block.half_width(0.999)
    assert found.messages["probe"].mean == 2.0


def test_the_exact_chain_does_not_hold_it():
    with pytest.raises(ValueError, match="searches by earlier answers"):
        solve(Scenario((Pool(2, 1.0, 2),), load=0.9), baselines.make("pandora"))
