"""Stability, messages and cost of a result."""

import math

import pytest

import baselines
from pull_env import Pool, Prices, Scenario, simulate
from pull_env.simulation.results import KINDS

SMALL = Scenario(
    (Pool(2, 1.0, 4), Pool(2, 2.0, 4)), routers=2, arrival_rate=4.8, prices=Prices(1.0, 0.05, 5.0)
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), [("pull", False), ("jiq", False), ("random", False), ("pull-weighted", True), ("balanced(2)", True)])  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_stability_on_two_speeds(name, stable, seed):
    """The slow pool saturates under a uniform fallback: (Lambda / n) P(router empty) > its rate (Stolyar's trap)."""
    result = simulate("two-speeds", baselines.make(name), seed=seed)
    assert result.stable is stable
    assert math.isfinite(result.wait.mean) is stable
    assert math.isfinite(result.cost.high) is stable
    assert all(math.isfinite(q.mean) is stable for q in result.wait_quantiles.values())
    if not stable:
        assert result.growth[1] > 0.3 > abs(result.growth[0])  # customers a time unit: the slow pool's


@pytest.mark.parametrize(("load", "stable"), [(0.4, True), (0.6, False)])
def test_stability_of_pull_with_one_router_and_rates_1_and_9(load, stable):
    """The critical load is .477."""
    scenario = Scenario((Pool(1, 1.0), Pool(1, 9.0)), load=load)
    assert simulate(scenario, baselines.make("pull"), 4_000_000, seed=6).stable is stable


@pytest.mark.parametrize("load", [1.0, 1.1])
def test_an_unlimited_system_at_full_load_is_never_stable(load):
    result = simulate(Scenario((Pool(2, 1.0),), load=load), baselines.make("jsq"), 20_000)
    assert not result.stable
    assert math.isnan(result.mean_number.mean)


def test_buffers_keep_an_overloaded_system_stable():
    result = simulate(Scenario((Pool(2, 1.0, 3),), load=2.0), baselines.make("jsq"), 200_000)
    assert result.stable
    assert result.p_block.mean > 0.45


def test_heavy_traffic_is_not_mistaken_for_instability():
    scenario = Scenario((Pool(2, 1.0),), load=0.97)
    assert all(simulate(scenario, baselines.make("jsq"), 500_000, seed=seed).stable for seed in range(20))


def test_messages_and_cost_of_a_probe():
    result = simulate(SMALL, baselines.make("power-of-d(3)"), 50_000)
    assert result.messages["probe"].mean == result.messages["total"].mean == 6.0
    assert set(result.messages) == {*KINDS, "total"}
    paid = result.wait.mean * (1 - result.p_block.mean) + 0.05 * 6 + 5.0 * result.p_block.mean
    assert result.cost.mean == pytest.approx(paid, rel=1e-3)
