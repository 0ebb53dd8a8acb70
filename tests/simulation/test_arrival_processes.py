"""Every arrival process has the rate, variance, phases and routers that it declares."""

from dataclasses import replace

import numpy as np
import pytest

from pull_env.scenario.arrivals import Batches, Day, HotRouter, Modulated
from pull_env.simulation.statistics import estimate
from pull_env.simulation.warmup import dispersion
from tests.oracles.workloads import ARRIVALS, CYCLE, PLAIN, customers, near


def replicated(scenario, count, statistic, runs=64):
    return [statistic(customers(scenario, count, seed)) for seed in range(runs)]


@pytest.mark.parametrize("kind", ARRIVALS.values(), ids=ARRIVALS)
@pytest.mark.parametrize("load", [0.8, 1.3])
def test_the_mean_rate_is_the_scenarios(kind, load):
    scenario = replace(PLAIN, load=load, arrivals=kind)
    until = 10_000 / scenario.total_arrival_rate
    near(replicated(scenario, 20_000, lambda c: (np.cumsum(c[0]) <= until).sum()), 10_000, 0.1)


def counts(gaps, length):
    """Arrivals in each full interval of `length`."""
    times = np.cumsum(gaps)
    return np.bincount((times / length).astype(int))[: int(times[-1] / length)]


@pytest.mark.parametrize("name", ["batches", "fixed batches", "modulated", "bursts", "renewal"])
def test_the_dispersion_of_arrivals_over_long_times(name):
    """Variance by mean of the number in 100 time units, some thirty relaxation times: within 3 % of the limit."""
    scenario = replace(PLAIN, arrivals=ARRIVALS[name])
    found = replicated(scenario, 80_000, lambda c: np.var(n := counts(c[0], 100.0), ddof=1) / n.mean())
    half = estimate(np.array(found)).half_width(0.999)
    assert half < 0.08 * np.mean(found)
    assert abs(np.mean(found) - dispersion(scenario)) < half + 0.03 * dispersion(scenario)


def test_phases_have_their_rates_and_shares_of_time():
    """Customers see a phase in proportion to its share of time and its rate; none comes at rate 0."""
    scenario = replace(PLAIN, arrivals=CYCLE)
    chance = CYCLE.time_shares * np.array(CYCLE.rates)
    chance /= chance.sum()
    for phase in (1, 2):
        found = replicated(scenario, 20_000, lambda c, k=phase: np.mean(c[3] == k / 2))
        near(found, chance[phase], 0.03)
    assert not any(0.0 in customers(scenario, 20_000, seed)[3] for seed in range(3))


def test_gaps_within_a_phase_are_exponential():
    """Phases without and with customers: the gaps within the latter are cut off by its end, too."""
    scenario = replace(PLAIN, arrivals=Modulated((0.0, 1.0), (1000.0, 1.0)))
    half = np.log(2.0) / (8.0 * 1001.0 + 1.0)
    near(replicated(scenario, 20_000, lambda c: np.mean(c[0][c[0] < 1.0] > half)), 0.5, 0.01)


def test_a_day_has_the_rate_of_its_sine():
    """From the phase alone: customers come in proportion to 1 + swing x sine, the sine being that of a day."""
    scenario = replace(PLAIN, arrivals=Day(7.0, 0.9))
    near(replicated(scenario, 20_000, lambda c: np.mean(2 * c[3] - 1)), 0.9 / 2, 0.02)
    gaps, _, _, phases = customers(scenario, 20_000)
    times = np.cumsum(gaps)
    waves = np.stack([np.sin(times * 2 * np.pi / 7.0), np.cos(times * 2 * np.pi / 7.0)], axis=1)
    fitted = waves @ np.linalg.lstsq(waves, 2 * phases - 1, rcond=None)[0]
    np.testing.assert_allclose(fitted, 2 * phases - 1, atol=1e-9)


def test_batches_ask_one_router():
    gaps, _, routers, _ = customers(replace(PLAIN, arrivals=Batches(6.0)), 50_000)
    first = gaps > 0.0
    assert (routers[1:] == routers[:-1])[~first[1:]].all()
    sizes = np.diff(np.flatnonzero(first))
    near(sizes, 6.0, 0.05)
    near(sizes == 1, 1 / 6, 0.1)
    for router in range(3):
        near(routers[first] == router, 1 / 3, 0.07)
    fixed, *_ = customers(replace(PLAIN, arrivals=Batches(5, "fixed")), 5000)
    assert (np.flatnonzero(fixed) == np.arange(0, 5000, 5)).all()


def test_batches_keep_the_shares_of_routers():
    scenario = replace(PLAIN, arrivals=Batches(2.0), shares=(0.7, 0.3, 0.0))
    gaps, _, routers, _ = customers(scenario, 50_000)
    near(routers[gaps > 0.0] == 0, 0.7, 0.03)
    assert 2 not in routers


def test_a_hot_router_moves():
    """Two customers ask the same of three routers by chance, and more often if the hot one has not moved.

    That it is the same after a time t has probability 1/3 + 2/3 exp(-1.5 t / 20), and t has a gamma law.
    """
    scenario = replace(PLAIN, shares=HotRouter(0.7, every=20.0))
    same = 0.7**2 + 2 * 0.15**2 - 1 / 3
    for lag, width in ((1, 0.02), (80, 0.02), (320, 0.02)):
        exact = 1 / 3 + same * (1 + 0.075 / 8) ** -lag
        near(replicated(scenario, 20_000, lambda c, k=lag: np.mean(c[2][k:] == c[2][:-k])), exact, width)
    for router in range(3):
        near(replicated(scenario, 20_000, lambda c, r=router: np.mean(c[2] == r)), 1 / 3, 0.1)


def test_everybody_may_ask_the_hot_router():
    _, _, routers, _ = customers(replace(PLAIN, routers=2, shares=HotRouter(1.0, every=5.0)), 5000)
    assert np.mean(routers[1:] != routers[:-1]) < 0.05
    assert set(routers) == {0, 1}
