"""PULL with few routers and join-below-threshold: known digits, and limits that must coincide."""

import numpy as np
import pytest

from pull_env import Pool
from pull_env.theory import pull_fluid as f
from pull_env.theory.formulas import mm1_response
from pull_env.theory.pull_mean_field import pull_many_routers

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
    found = f.pull_fluid(pools, load)
    assert found.busy == pytest.approx(busy, abs=6e-7)
    assert found.response == pytest.approx(response, abs=6e-7)
    assert f.fast_first_response(pools, load) == pytest.approx(least, abs=6e-7)
    assert [1 / (1 + p.rate * found.idle_period) for p in pools] == pytest.approx(found.busy)
    near = pull_many_routers(pools, load, 1e5)  # few routers are the end of many
    assert near.response == pytest.approx(response, rel=2e-3)
    assert near.idle_period == pytest.approx(found.idle_period, rel=2e-2)


@pytest.mark.parametrize("load", [0.001, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("r", [1, 2, 3, 40])
def test_threshold_of_many_servers(load, r):
    assert f.pull_fluid([Pool(1, 2.0)], load, r).response == pytest.approx(f.jbt_response(load, r, 2.0))
    unequal = f.pull_fluid((Pool(1, 100.0), Pool(7, 0.01)), load, r)
    served = (100.0 * unequal.busy[0] + 0.07 * unequal.busy[1]) / 8
    assert served == pytest.approx(load * 100.07 / 8, rel=1e-9)


@pytest.mark.parametrize(("r", "response"), [(1, 1.0), (2, 1.717624), (3, 2.324459)])
def test_join_below_threshold_of_many_servers(r, response):
    distribution = f.jbt_distribution(0.9, r)
    assert distribution.sum() == pytest.approx(1.0)
    assert distribution[0] == pytest.approx(0.1)
    assert f.jbt_response(0.9, r) == pytest.approx(response, abs=5e-7)
    assert f.jbt_response(0.9, r, 2.0) == pytest.approx(response / 2, abs=5e-7)


def test_no_threshold_is_random_routing():
    assert f.jbt_response(0.9, 1_000) == pytest.approx(mm1_response(0.9))
    assert f.jbt_response(1 - 1e-9, 3) == pytest.approx(3.0, rel=1e-2)


@pytest.mark.parametrize(("call", "named"), [
    (lambda: f.pull_fluid([Pool(1)], 1.0), "load"),
    (lambda: f.pull_fluid([Pool(1, 1.0, 2)], 0.5, 3), "threshold"),
    (lambda: f.fast_first_response([Pool(1)], 1.0), "load"),
    (lambda: f.jbt_distribution(0.5, True), "threshold"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()


def test_laws_are_arrays_of_floats():
    assert f.jbt_distribution(0.5, 2).dtype == np.float64
