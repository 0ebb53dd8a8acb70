"""Pooling bounds: known digits, one queue as the special case, and chains solved directly."""

import math

import numpy as np
import pytest

from pull_env import Pool, Scenario
from pull_env.scenario.arrivals import Batches, HotRouter, Trace
from pull_env.scenario.faults import Faults, News
from pull_env.scenario.laws import Deterministic, Exponential
from pull_env.theory import formulas
from pull_env.theory.bounds import pooling_bounds


def distribution(scenario, top):
    """Return the law of the chain cut at `top`, done by hand."""
    rates = sorted((p.rate for p in scenario.pools for _ in range(p.size)), reverse=True)
    weights = [1.0]
    for k in range(1, top + 1):
        weights.append(weights[-1] * scenario.total_arrival_rate / sum(rates[:k]))
    return np.array(weights) / sum(weights)


def test_response_of_two_speeds():
    scenario = Scenario((Pool(10, 1.0), Pool(10, 2.0)), arrival_rate=24.0)
    found = pooling_bounds(scenario)
    assert found.response == pytest.approx(0.62696, abs=5e-6)
    chain, k = distribution(scenario, 400), np.arange(401)
    assert found.mean_number == pytest.approx(chain @ k, rel=1e-10)
    assert found.wait == pytest.approx(chain @ np.maximum(k - 20, 0) / 24, rel=1e-10)
    assert found.p_block == 0.0


def test_blocking():
    scenario = Scenario((Pool(1, 1.0, 5), Pool(1, 2.0, 5)), arrival_rate=2.4)
    found = pooling_bounds(scenario)
    assert found.p_block == pytest.approx(0.0253410, abs=5e-8)
    assert found.p_block == pytest.approx(distribution(scenario, 10)[-1], rel=1e-12)
    assert (found.wait, found.response, found.mean_number) == (0.0, 0.5, 0.0)


@pytest.mark.parametrize("load", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("buffer", [1, 4])
def test_blocking_at_any_load(load, buffer):
    scenario = Scenario((Pool(2, 1.0, buffer), Pool(3, 2.0, 2)), load=load)
    assert pooling_bounds(scenario).p_block == pytest.approx(
        distribution(scenario, 2 * buffer + 6)[-1], rel=1e-12
    )


def test_equal_servers_are_one_queue():
    found = pooling_bounds(Scenario((Pool(3, 1.0),), load=0.8))
    assert found.wait == pytest.approx(formulas.mmc_wait(3, 2.4), rel=1e-13)
    assert found.response == pytest.approx(formulas.mmc_response(3, 2.4), rel=1e-13)
    loss = pooling_bounds(Scenario((Pool(30, 1.0, 1),), load=0.9)).p_block
    assert loss == pytest.approx(formulas.erlang_b(30, 27.0), rel=1e-12)


def test_large_systems():
    found = pooling_bounds(Scenario((Pool(500_000, 1.0), Pool(500_000, 2.0)), load=0.9))
    assert found.response == pytest.approx(0.629630, abs=1e-6)  # the fast-first bound
    assert found.wait < 1e-12
    assert pooling_bounds(Scenario((Pool(1000, 1.0, 10**6),), load=1.5)).p_block == pytest.approx(1 / 3)
    assert pooling_bounds(Scenario((Pool(1000, 1.0, 10**6),), load=0.9)).p_block == 0.0


def test_very_long_buffers():
    pools = (Pool(1000, 1.0, 2**31 - 1), Pool(1000, 9.0, 2**31 - 1))
    assert pooling_bounds(Scenario(pools, load=2.0)).p_block == pytest.approx(0.5, rel=1e-12)
    assert pooling_bounds(Scenario(pools, load=0.5)).p_block == 0.0


def test_some_servers_without_limit():
    pools = (Pool(1, 1.0), Pool(1, 3.0, 2))
    assert pooling_bounds(Scenario(pools, load=0.9)).p_block == 0.0
    assert pooling_bounds(Scenario(pools, load=2.0)).p_block == pytest.approx(0.5)


def test_unstable():
    found = pooling_bounds(Scenario((Pool(2, 1.0),), load=1.0))
    assert found.response == found.wait == found.mean_number == math.inf


HALVES = (Pool(10, 1.0), Pool(10, 2.0))
LIMITED = (Pool(10, 1.0, 2), Pool(10, 2.0, 1))


@pytest.mark.parametrize("pools", [HALVES, LIMITED], ids=["unlimited", "limited"])
@pytest.mark.parametrize(
    "parts",
    [
        {"shares": HotRouter(0.5, 1.0)},
        {"news": News(0.2)},
        {"service": Exponential()},
        {"faults": Faults(normal=10.0, slow=1.0)},
        {"faults": Faults(restart=10.0)},
    ],
    ids=str,
)
def test_what_only_delays_changes_no_bound(pools, parts):
    scenario = Scenario(pools, load=0.9, routers=2, **parts)
    assert pooling_bounds(scenario) == pooling_bounds(Scenario(pools, load=0.9))


def test_other_arrivals_and_service_leave_the_fastest_server():
    for parts in ({"arrivals": Batches(5.0)}, {"service": Deterministic()}):
        found = pooling_bounds(Scenario(HALVES, load=0.9, **parts))
        assert (found.wait, found.response, found.p_block) == (0.0, 0.5, 0.0)
        assert found.mean_number == pytest.approx(0.9 * 30 / 2)
        assert pooling_bounds(Scenario(LIMITED, load=1.25, **parts)).p_block == pytest.approx(0.2)
    # Constant service waits half as long as exponential service: the chain would be no bound.
    assert formulas.mg1_wait(0.9, 1.0, 0.0) < pooling_bounds(Scenario((Pool(1),), load=0.9)).wait
    assert pooling_bounds(Scenario((Pool(1),), load=0.9, service=Deterministic())).wait == 0.0


def test_failures_block_and_cut_service_short():
    failing = Scenario(HALVES, load=0.9, faults=Faults(up=9.0, down=1.0))
    assert pooling_bounds(failing).response == 0.5
    assert pooling_bounds(failing).wait == 0.0  # customers are blocked, which spares the others
    lost = Scenario(HALVES, load=0.9, faults=Faults(up=9.0, down=1.0, customers="lost"))
    assert pooling_bounds(lost).response == 0.0
    faster = Scenario(HALVES, load=1.2, faults=Faults(normal=1.0, slow=1.0, factor=2.0))
    assert pooling_bounds(faster).response >= 0.25
    assert pooling_bounds(faster).response < math.inf


def test_a_trace_brings_its_own_requirements():
    found = pooling_bounds(Scenario(HALVES, load=0.9, arrivals=Trace("a.csv", "time", "size")))
    assert (found.wait, found.response, found.p_block, found.mean_number) == (0.0, 0.0, 0.0, 0.0)
