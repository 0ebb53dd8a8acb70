"""Feeds draw the same customers in any portions; traces are replayed or bootstrapped."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from pull_env import Trace
from pull_env.scenario.arrivals import Day, HotRouter
from pull_env.scenario.laws import Erlang, Exponential, Lognormal
from pull_env.simulation.workload import calendar_workload, workload_for
from tests.oracles.workloads import PLAIN, WORKLOADS, customers, near


@pytest.mark.parametrize("parts", WORKLOADS.values(), ids=WORKLOADS)
def test_the_same_customers_in_any_portions(parts):
    scenario = replace(PLAIN, **parts)
    whole = customers(scenario, 10_000, seed=5)
    for portion in (1, 100, 3000, 100_000):
        count = min(10_000, 500 * portion)
        for once, again in zip(whole, customers(scenario, count, 5, portion), strict=True):
            assert (once is None) == (again is None)
            assert once is None or (once[:count] == again).all()


def test_requirements_do_not_depend_on_arrivals_nor_arrivals_on_requirements():
    """Common random numbers between scenarios as well: customer k brings the same work."""
    plain = customers(replace(PLAIN, service=Lognormal(2.0)), 9000)
    other = customers(replace(PLAIN, service=Lognormal(2.0), arrivals=Day(5.0, 1.0)), 9000)
    assert (plain[1] == other[1]).all()
    assert (plain[0] == customers(replace(PLAIN, service=Erlang(2)), 9000)[0]).all()


@pytest.mark.parametrize("parts", WORKLOADS.values(), ids=WORKLOADS)
def test_a_copy_goes_on_alike(parts):
    feed = calendar_workload(replace(PLAIN, **parts))(np.random.SeedSequence(6))
    feed.draw(50)
    for other in (copy.deepcopy(feed), pickle.loads(pickle.dumps(feed))):
        again = copy.deepcopy(feed)
        for _ in range(3):
            for once, twice in zip(again.draw(4096), other.draw(4096), strict=True):
                assert (once is None) == (twice is None)
                assert once is None or (once == twice).all()


def test_only_what_is_not_markov_needs_a_feed():
    assert workload_for(PLAIN) is workload_for(replace(PLAIN, service=Exponential())) is None
    assert all(workload_for(replace(PLAIN, **parts)) for parts in list(WORKLOADS.values())[1:8])


# Traces


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "customers.csv"
    times, sizes = np.cumsum([0, 1, 2, 3, 4, 5, 6, 7]), range(1, 9)
    path.write_text("\n".join(["t,s", *(f"{t},{s}" for t, s in zip(times, sizes, strict=True))]))
    return Trace(str(path), "t", "s")


def test_a_trace_is_replayed_once(trace):
    feed = workload_for(replace(PLAIN, arrivals=trace))(np.random.SeedSequence(0))
    first, last, none = feed.draw(5), feed.draw(5), feed.draw(5)
    assert [part.gaps.size for part in (first, last, none)] == [5, 3, 0]
    np.testing.assert_allclose(np.concatenate([first.sizes, last.sizes]), np.arange(1, 9) / 4.5)
    assert first.routers is None


def test_blocks_of_a_trace_follow_one_another_without_end(trace):
    """Row k comes after a gap k and brings k + 1, in rows that follow one another in a circle."""
    scenario = replace(PLAIN, arrivals=replace(trace, block=3))
    gaps, sizes, *_ = customers(scenario, 300_000, feeds=workload_for)
    rows = np.rint(sizes * 4.5).astype(int) - 1
    assert ((rows[1::3] - rows[::3]) % 8 == 1).all()
    assert ((rows[2::3] - rows[1::3]) % 8 == 1).all()
    seconds = np.where(rows == 0, 4.0, rows)  # the mean gap for the first, which has none
    np.testing.assert_allclose(gaps, seconds / (4.0 * scenario.total_arrival_rate))
    for row in range(8):
        near((rows == row).reshape(-1, 3).mean(axis=1), 1 / 8, 0.03)
    assert scenario.replay is None


def test_a_recorded_customer_may_ask_a_hot_router(trace):
    feed = workload_for(replace(PLAIN, arrivals=trace, shares=HotRouter(1.0, 1e9)))(np.random.SeedSequence(0))
    assert len(set(feed.draw(100).routers)) == 1
    assert feed.draw(100).routers is None
