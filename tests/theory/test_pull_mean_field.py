"""PULL with many routers: known digits, conservation, and the equations by other means."""

import numpy as np
import pytest

from pull_env import Pool
from pull_env.theory import pull_mean_field as m

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
    b, distribution = r * load * (1 - load * found.q0), [found.q0]
    for i in range(1, 20_000):
        distribution.append(distribution[-1] * b / (r * load + i * load * found.q0))
    assert sum(distribution) == pytest.approx(1.0, rel=1e-9)
    assert np.arange(20_000) @ distribution == pytest.approx(r * (1 - load), rel=1e-8)


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


@pytest.mark.parametrize(("call", "named"), [
    (lambda: m.pull_many_routers([Pool(1)], 1.0, 10), "load"),
    (lambda: m.pull_many_routers([Pool(1)], 0.5, 0), "servers_per_router"),
    (lambda: m.pull_many_routers([], 0.5, 1), "pools"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
