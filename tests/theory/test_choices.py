"""Mean field of the shortest of d queues: closed forms, conservation, and large systems over time."""

import numpy as np
import pytest

import baselines
from pull_env import Pool, Scenario, Send
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.theory import choices as m
from pull_env.theory import supermarket

HALVES = (Pool(5, 1.0), Pool(5, 2.0))
MIXED = (Pool(2, 3.0), Pool(3, 1.5, 5), Pool(5, 0.9, 2))
LIMITED = (Pool(5, 1.0, 3), Pool(5, 2.0, 1))


def mean_rate(pools):
    return sum(p.size * p.rate for p in pools) / sum(p.size for p in pools)


def shares(pools):
    return np.array([p.size for p in pools]) / sum(p.size for p in pools)


@pytest.mark.parametrize(
    ("load", "d"), [(0.9, 2), (0.9, 3), (0.9, 5), (0.9, 10), (0.99, 2), (0.999, 100), (0.9, 1)]
)
def test_uniform_choices_of_equal_servers_are_the_supermarket_model(load, d):
    found = m.choices_limit([Pool(1, 2.0)], load, d)
    assert found.response == pytest.approx(supermarket.supermarket_response(load, d, 2.0), rel=1e-9)
    assert found.tails[0][:8] == pytest.approx(supermarket.supermarket_tail(load, d, 7), abs=1e-10)
    assert found.p_wait == pytest.approx(load**d)


@pytest.mark.parametrize("c", [1, 2, 3, 5])
def test_choices_by_rate_have_equal_tails(c):
    found = m.choices_limit(HALVES, 0.8, c, weights="rate")
    assert found.response == pytest.approx({1: 3.333333, 2: 1.298242, 3: 1.053924, 5: 0.885945}[c], abs=5e-7)
    for tail in found.tails:
        assert tail[:8] == pytest.approx(supermarket.balanced_tail(0.8, c, 7), abs=1e-10)


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
    assert found.response == pytest.approx(supermarket.supermarket_response(0.6, 2, 2.0))


def test_full_servers_block():
    """Two choices, no waiting rooms: a customer is blocked if both are busy."""
    found = m.choices_limit([Pool(1, 1.0, 1)], 1.5, 2)
    busy = found.busy[0]
    assert found.p_block == pytest.approx(busy**2)
    assert busy == pytest.approx(1.5 * (1 - busy**2))
    assert found.response == pytest.approx(1.0)


@pytest.mark.parametrize(("call", "named"), [
    (lambda: m.choices_limit([Pool(1)], 0.5, 0), "choices"),
    (lambda: m.choices_limit([Pool(1)], 0.5, 2, weights=(1.0, 2.0)), "weights"),
    (lambda: m.choices_limit((Pool(1, 0.1), Pool(1, 1.9)), 0.9, 2), "load"),
    (lambda: m.choices_trajectory([Pool(1)], 0.5, 2, [0.0, 1.0], start=[[1.0, 0.2, 0.5]]), "start"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
