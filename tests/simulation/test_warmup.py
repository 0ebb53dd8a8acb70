"""The warm-up covers five relaxation times."""

import math
from dataclasses import replace

import pytest

import baselines
from pull_env import Faults, Pool, Scenario
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter
from pull_env.scenario.laws import Deterministic, Exponential, Hyperexponential, Pareto
from pull_env.simulation.warmup import dispersion, phase_relaxation, variability, warmup_customers
from tests.oracles.workloads import PLAIN


def test_warmup_of_the_plain_system_is_as_before():
    assert (variability(PLAIN), phase_relaxation(PLAIN), dispersion(PLAIN)) == (1.0, 0.0, 1.0)
    assert warmup_customers(PLAIN, None) == warmup_customers(replace(PLAIN, service=Exponential()), None)


def test_warmup_grows_with_variance_and_phases():
    plain = warmup_customers(PLAIN, None)
    assert warmup_customers(replace(PLAIN, service=Deterministic()), None) == plain
    assert warmup_customers(replace(PLAIN, service=Hyperexponential(9.0)), None) == pytest.approx(
        5 * plain, rel=1e-3
    )
    assert warmup_customers(replace(PLAIN, service=Pareto(1.5)), None) == pytest.approx(
        50.5 * plain, rel=1e-3
    )
    assert phase_relaxation(replace(PLAIN, faults=Faults(up=30.0, down=20.0))) == pytest.approx(12.0)
    assert phase_relaxation(replace(PLAIN, faults=Faults(normal=9.0, slow=9.0, restart=1e9))) == 4.5
    assert warmup_customers(replace(PLAIN, arrivals=Batches(21, "fixed")), None) == pytest.approx(
        2 * plain, rel=1e-3
    )
    day = replace(PLAIN, arrivals=Day(1e4, 0.5))
    assert warmup_customers(day, None) == pytest.approx(1e4 * day.total_arrival_rate)
    hot = replace(PLAIN, shares=HotRouter(0.5, every=1e4))
    assert warmup_customers(hot, None) == pytest.approx(5e4 * hot.total_arrival_rate)
    bursts = replace(PLAIN, arrivals=Bursts(0.9, length=1e4, share=0.5))
    assert phase_relaxation(bursts) == pytest.approx(5e3)
    assert warmup_customers(bursts, None) >= 2.5e4 * bursts.total_arrival_rate


def test_warm_up_grows_with_relaxation():
    """M/M/1 at load .9 relaxes in 1 / (1 - sqrt .9)^2 = 380 service times; five of them at 0.9 customers each."""
    single = Scenario((Pool(1, 1.0),), load=0.9)
    assert warmup_customers(single, baselines.make("random")) == math.ceil(
        5 * 0.9 / (1 - math.sqrt(0.9)) ** 2
    )
    large = Scenario((Pool(1_000_000, 1.0),), load=0.5, routers=2)  # the split of messages is slower here
    split = 4 * 1e6 * 0.25 / (math.pi**2 * 0.5)
    assert warmup_customers(large, baselines.make("pull")) == math.ceil(5 * split * 5e5)
    assert (
        warmup_customers(large, baselines.make("random"))
        < warmup_customers(large, baselines.make("pull")) / 1000
    )
