"""Limits of large systems: the digits of theory.md, conservation, and agreement of limits that must coincide."""

import numpy as np
import pytest

import baselines
from pull_env import Pool, Scenario, Send
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.theory import formulas
from pull_env.theory import mean_field as m

HALVES = (Pool(5, 1.0), Pool(5, 2.0))
MIXED = (Pool(2, 3.0), Pool(3, 1.5, 5), Pool(5, 0.9, 2))
LIMITED = (Pool(5, 1.0, 3), Pool(5, 2.0, 1))

PULL = [  # pools, load, r; q0, E[T], P(wait), P(block)
    ((Pool(1),), 0.9, 10, 0.481720, 1.765375, 0.433548, 0.0),
    ((Pool(1),), 0.9, 100, 0.084351, 1.082153, 0.075916, 0.0),
    ((Pool(1),), 0.5, 10, 0.132504, 1.070953, 0.066252, 0.0),
    (HALVES, 0.8, 10, 0.333578, 1.012191, 0.274470, 0.0),
    (LIMITED, 0.8, 10, 0.259352, 0.834554, 0.112926, 0.093644),
    (MIXED, 0.9, 20, 0.298989, 0.897024, 0.233262, 0.043659),
]


def mean_rate(pools):
    return sum(p.size * p.rate for p in pools) / sum(p.size for p in pools)


def shares(pools):
    return np.array([p.size for p in pools]) / sum(p.size for p in pools)


@pytest.mark.parametrize("case", PULL, ids=str)
def test_pull_with_many_routers(case):
    pools, load, r, q0, response, p_wait, p_block = case
    found = m.pull_many_routers(pools, load, r)
    assert (found.q0, found.response) == pytest.approx((q0, response), abs=6e-7)
    assert (found.p_wait, found.p_block) == pytest.approx((p_wait, p_block), abs=6e-7)
    arrival = load * mean_rate(pools)
    served = sum(b * p.rate * x for b, p, x in zip(shares(pools), pools, found.busy, strict=True))
    assert served == pytest.approx(arrival * (1 - found.p_block), rel=1e-9)
    assert found.pull == pytest.approx(1 - found.q0 + found.remove, rel=1e-9)  # sent = taken + withdrawn
    for pool, tail in zip(pools, found.tails, strict=True):
        assert tail[0] == pytest.approx(1.0)
        assert (tail.size == pool.buffer + 1) if pool.buffer else (tail[-1] < 1e-12)
        assert tail[1] == pytest.approx(
            1 - found.idle_period / (found.idle_period + tail[1] / (1 - tail[1]) * found.idle_period)
        )


@pytest.mark.parametrize(
    ("load", "r"), [(0.9, 10), (0.9, 100), (0.5, 10), (0.99, 1e5), (0.5, 1e6), (0.5, 1e-3), (0.999, 7.5)]
)
def test_equal_servers_by_one_equation(load, r):
    general, special = m.pull_many_routers([Pool(1, 2.0)], load, r), m.pull_equal_servers(load, r, 2.0)
    for name in ("q0", "idle_period", "response", "p_wait", "pull", "remove"):
        assert getattr(general, name) == pytest.approx(getattr(special, name), rel=1e-6), name
    assert special.response == pytest.approx(1 / (1 - load * special.q0) / 2, rel=1e-9)


@pytest.mark.parametrize("r", [0.5, 10.0, 300.0])
def test_messages_held_solve_their_chain(r):
    """The law of the messages at a router, built up term by term, sums to 1 and has the mean of the idle servers."""
    load = 0.8
    found = m.pull_equal_servers(load, r)
    b, law = r * load * (1 - load * found.q0), [found.q0]
    for i in range(1, 20_000):
        law.append(law[-1] * b / (r * load + i * load * found.q0))
    assert sum(law) == pytest.approx(1.0, rel=1e-9)
    assert np.arange(20_000) @ law == pytest.approx(r * (1 - load), rel=1e-8)


def test_few_servers_a_router_is_random_routing():
    found = m.pull_equal_servers(0.8, 1e-6)
    assert found.response == pytest.approx(5.0, rel=1e-4)


def test_empty_routers_vanish_as_one_over_n():
    scaled = {load: m.pull_equal_servers(load, 1e6).q0 * 1e6 * (1 - load) for load in (0.5, 0.7, 0.9, 0.95)}
    for load, c in {0.5: 0.749, 0.7: 0.818, 0.9: 0.920, 0.95: 0.956}.items():
        assert scaled[load] == pytest.approx(c, abs=6e-4)


def test_slow_servers_saturate():
    pools = (Pool(50, 0.5), Pool(50, 1.5))
    with pytest.raises(ValueError, match="saturates"):
        m.pull_many_routers(pools, 0.9, 10)
    assert 0.8 * m.pull_many_routers(pools, 0.8, 10).q0 < 0.5
    assert m.pull_many_routers((Pool(50, 0.5, 50), Pool(50, 1.5)), 0.9, 10).p_block > 0.0


def test_long_buffers_are_as_good_as_none():
    for pools in ((Pool(1, 1.0, 2**31 - 1),), (Pool(1, 1.0, 10**6), Pool(1, 2.0))):
        free = [Pool(p.size, p.rate) for p in pools]
        found, without = m.pull_many_routers(pools, 0.8, 10), m.pull_many_routers(free, 0.8, 10)
        assert found.response == pytest.approx(without.response)
        assert found.p_block < 1e-12
    crowded = m.pull_many_routers((Pool(50, 0.5, 20_000), Pool(50, 1.5, 20_000)), 0.9, 10)
    assert crowded.busy[0] == pytest.approx(1.0)
    assert crowded.tails[0][10_000] == pytest.approx(1.0)  # the slow ones fill up to their buffers
    assert 0.5 * 0.5 + 0.5 * 1.5 * crowded.busy[1] == pytest.approx(0.9 * (1 - crowded.p_block))


FLUID = [  # sizes, rates, load; busy share by pool, E[T], fast-first bound
    ((5, 5), (1.0, 2.0), 0.8, (0.867619, 0.766190), 0.680754, 0.583333),
    ((5, 5), (1.0, 2.0), 0.9, (0.937014, 0.881493), 0.673521, 0.629630),
    ((8, 2), (1.0, 10.0), 0.7, (0.938606, 0.604558), 0.444794, 0.1),
    ((2, 3, 5), (3.0, 1.5, 0.9), 0.9, (0.849139, 0.918416, 0.949398), 0.681520, 0.617284),
]


@pytest.mark.parametrize("case", FLUID, ids=str)
def test_pull_with_few_routers(case):
    sizes, rates, load, busy, response, least = case
    pools = [Pool(*kind) for kind in zip(sizes, rates, strict=True)]
    found = m.pull_fluid(pools, load)
    assert found.busy == pytest.approx(busy, abs=6e-7)
    assert found.response == pytest.approx(response, abs=6e-7)
    assert m.fast_first_response(pools, load) == pytest.approx(least, abs=6e-7)
    assert [1 / (1 + p.rate * found.idle_period) for p in pools] == pytest.approx(found.busy)
    near = m.pull_many_routers(pools, load, 1e5)  # few routers are the end of many
    assert near.response == pytest.approx(response, rel=2e-3)
    assert near.idle_period == pytest.approx(found.idle_period, rel=2e-2)


@pytest.mark.parametrize("load", [0.001, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("r", [1, 2, 3, 40])
def test_threshold_of_many_servers(load, r):
    assert m.pull_fluid([Pool(1, 2.0)], load, r).response == pytest.approx(
        formulas.jbt_response(load, r, 2.0)
    )
    unequal = m.pull_fluid((Pool(1, 100.0), Pool(7, 0.01)), load, r)
    served = (100.0 * unequal.busy[0] + 0.07 * unequal.busy[1]) / 8
    assert served == pytest.approx(load * 100.07 / 8, rel=1e-9)


@pytest.mark.parametrize(
    ("load", "d"), [(0.9, 2), (0.9, 3), (0.9, 5), (0.9, 10), (0.99, 2), (0.999, 100), (0.9, 1)]
)
def test_uniform_choices_of_equal_servers_are_the_supermarket_model(load, d):
    found = m.choices_limit([Pool(1, 2.0)], load, d)
    assert found.response == pytest.approx(formulas.supermarket_response(load, d, 2.0), rel=1e-9)
    assert found.tails[0][:8] == pytest.approx(formulas.supermarket_tail(load, d, 7), abs=1e-10)
    assert found.p_wait == pytest.approx(load**d)


@pytest.mark.parametrize("c", [1, 2, 3, 5])
def test_choices_by_rate_have_equal_tails(c):
    found = m.choices_limit(HALVES, 0.8, c, weights="rate")
    assert found.response == pytest.approx({1: 3.333333, 2: 1.298242, 3: 1.053924, 5: 0.885945}[c], abs=5e-7)
    for tail in found.tails:
        assert tail[:8] == pytest.approx(formulas.balanced_tail(0.8, c, 7), abs=1e-10)


@pytest.mark.parametrize("pools", [HALVES, LIMITED, MIXED], ids=str)
@pytest.mark.parametrize("weights", ["uniform", "rate", (1.0, 3.0, 0.5)])
def test_trajectories_come_to_rest_and_conserve_customers(pools, weights):
    weights = weights[: len(pools)] if isinstance(weights, tuple) else weights
    times = np.concatenate([np.linspace(0.0, 2.0, 101), [250.0]])
    path = m.choices_trajectory(pools, 0.8, 2, times, weights=weights)
    rest = m.choices_limit(pools, 0.8, 2, weights=weights)
    for tail, end in zip(path.tails, rest.tails, strict=True):
        reach = min(end.size, tail.shape[1])
        assert tail[-1, :reach] == pytest.approx(end[:reach], abs=1e-7)
        assert np.all(np.diff(tail, axis=1) < 1e-9)
    assert path.p_block[-1] == pytest.approx(rest.p_block, abs=1e-7)
    arrival, rates = 0.8 * mean_rate(pools), np.array([p.rate for p in pools])
    assert path.mean_number[-1] == pytest.approx(arrival * (1 - rest.p_block) * rest.response, rel=1e-6)
    busy = np.array([tail[:-1, 1] for tail in path.tails])
    flow = arrival * (1 - path.p_block[:-1]) - (shares(pools) * rates) @ busy
    gained = np.sum((flow[1:] + flow[:-1]) / 2 * np.diff(times[:-1]))
    assert gained == pytest.approx(path.mean_number[-2], abs=1e-4)


@pytest.mark.parametrize(("name", "d", "weights"), [("balanced", 2, "rate"), ("power-of-d", 3, "uniform")])
@pytest.mark.parametrize("limits", [(None, None), (3, 2)])
@pytest.mark.parametrize("blind", [0, 300_000])
def test_trajectories_meet_large_systems_within_a_percent(name, d, weights, limits, blind):
    """With n = 100,000, from empty or from where blind sending led: customers in all pools, and busy servers of
    each, at ten moments.
    """
    pools = (Pool(50_000, 1.0, limits[0]), Pool(50_000, 2.0, limits[1]))
    scenario, policy = Scenario(pools, load=0.9), baselines.make(f"{name}({d})")
    simulator, chain = Simulator(scenario, policy.steps, policy.announce), encode(policy.steps, scenario)
    simulator.reset(7)
    simulator.run(encode((Send(),), scenario), blind)
    head, queues = simulator.arrays.head[0], simulator.arrays.servers["queue"].reshape(2, -1)
    start = [[(queue >= k).mean() for k in range(queue.max() + 1)] for queue in queues]
    times, number, busy = [float(head["now"] * head["time_step"])], [], []
    for _ in range(10):
        simulator.run(chain, 60_000)
        head = simulator.arrays.head[0]
        times.append(float(head["now"] * head["time_step"]))
        number.append(queues.sum() / 100_000)
        busy.append(tuple((queues > 0).mean(axis=1)))
    path = m.choices_trajectory(pools, 0.9, d, np.array(times) - times[0], weights=weights, start=start)
    assert number == pytest.approx(path.mean_number[1:], rel=0.01)
    for j in range(2):
        assert [b[j] for b in busy] == pytest.approx(path.tails[j][1:, 1], rel=0.01)


def test_trajectory_of_a_single_choice():
    """Without arrivals to speak of, a queue of one empties as exp(-t)."""
    path = m.choices_trajectory([Pool(1)], 1e-12, 1, [0.0, 1.0, 2.0], start=[[1.0, 1.0]])
    assert path.tails[0][:, 1] == pytest.approx(np.exp(-path.times), rel=1e-6)
    assert path.times.tolist() == [0.0, 1.0, 2.0]


def test_a_pool_never_drawn_stays_empty():
    found = m.choices_limit(HALVES, 0.4, 2, weights=(0.0, 1.0))
    assert found.busy == pytest.approx((0.0, 0.6))
    assert found.response == pytest.approx(formulas.supermarket_response(0.6, 2, 2.0))


def test_full_servers_block():
    """Two choices, no waiting rooms: a customer is blocked if both are busy."""
    found = m.choices_limit([Pool(1, 1.0, 1)], 1.5, 2)
    busy = found.busy[0]
    assert found.p_block == pytest.approx(busy**2)
    assert busy == pytest.approx(1.5 * (1 - busy**2))
    assert found.response == pytest.approx(1.0)


@pytest.mark.parametrize(("call", "named"), [
    (lambda: m.pull_many_routers([Pool(1)], 1.0, 10), "load"),
    (lambda: m.pull_many_routers([Pool(1)], 0.5, 0), "servers_per_router"),
    (lambda: m.pull_many_routers([], 0.5, 1), "pools"),
    (lambda: m.pull_fluid([Pool(1)], 1.0), "load"),
    (lambda: m.pull_fluid([Pool(1, 1.0, 2)], 0.5, 3), "threshold"),
    (lambda: m.fast_first_response([Pool(1)], 1.0), "load"),
    (lambda: m.choices_limit([Pool(1)], 0.5, 0), "choices"),
    (lambda: m.choices_limit([Pool(1)], 0.5, 2, weights=(1.0, 2.0)), "weights"),
    (lambda: m.choices_limit((Pool(1, 0.1), Pool(1, 1.9)), 0.9, 2), "load"),
    (lambda: m.choices_trajectory([Pool(1)], 0.5, 2, [0.0, 1.0], start=[[1.0, 0.2, 0.5]]), "start"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
