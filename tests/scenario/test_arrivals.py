"""Arrival processes as data: round trips, and a message for every bad value."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pull_env import Pool, Scenario
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal, Trace
from pull_env.scenario.laws import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Pareto,
    Weibull,
)
from tests.scenario.conftest import raises

POOLS = (Pool(3, 2.0), Pool(2, 0.5))


POSITIVE = "it must be a positive finite number"


bounded = st.floats(1e-3, 1e3)


laws = st.one_of(
    st.just(Exponential()),
    st.just(Deterministic()),
    st.builds(Erlang, st.integers(1, 100)),
    st.builds(Hyperexponential, st.floats(1.001, 1e3)),
    st.builds(Lognormal, bounded),
    st.builds(Pareto, st.floats(1.001, 10)),
    st.builds(Pareto, st.floats(0.1, 10), st.floats(1.001, 1e6)),
    st.builds(Weibull, st.floats(0.1, 10)),
    st.builds(Empirical, st.just("/data/sizes.csv"), st.just("size")),
)


@st.composite
def modulated(draw):
    phases = draw(st.integers(1, 4))
    weights = st.lists(st.integers(1, 9), min_size=phases, max_size=phases)
    rows = st.lists(weights, min_size=phases, max_size=phases)
    moves = draw(st.none() | rows.map(lambda m: tuple(tuple(x / sum(row) for x in row) for row in m)))
    numbers = st.lists(bounded, min_size=phases, max_size=phases).map(tuple)
    return Modulated(draw(numbers), draw(numbers), moves)


arrivals = st.one_of(
    st.builds(Batches, st.floats(1, 100)),
    st.builds(Batches, st.integers(1, 100), st.just("fixed")),
    modulated(),
    st.builds(Bursts, st.floats(0.81, 1.6), bounded, st.floats(0.1, 0.45)),
    st.builds(Day, bounded, st.floats(0, 1)),
    st.builds(Renewal, laws),
)


@st.composite
def workloads(draw):
    """Draw a scenario with every kind of workload but a trace."""
    return Scenario(
        POOLS,
        routers=3,
        load=0.8,
        shares=draw(st.none() | st.builds(HotRouter, st.floats(0.01, 1), bounded)),
        arrivals=draw(st.none() | arrivals),
        service=draw(st.none() | laws),
    )


@given(workloads())
def test_round_trip(scenario):
    through = json.loads(json.dumps(scenario.to_dict(), allow_nan=False))
    assert through == scenario.to_dict()
    assert Scenario.from_dict(through) == scenario
    assert Scenario.from_dict(through).digest == scenario.digest
    assert hash(Scenario.from_dict(through)) == hash(scenario)


def test_stationary_distribution_of_phases():
    """Three phases in turn spend time in proportion to their lengths; a fourth one to which none returns, none."""
    chain = Modulated((1, 2, 3), (1, 2, 5))
    np.testing.assert_allclose(chain.time_shares, [1 / 8, 2 / 8, 5 / 8], atol=1e-12)
    left = Modulated((9, 1, 2), (1, 2, 5), ((0, 1, 0), (0, 0, 1), (0, 1, 0)))
    np.testing.assert_allclose(left.time_shares, [0, 2 / 7, 5 / 7], atol=1e-12)
    phases = Bursts(1.6, 3.0, 0.25).phases(0.8)
    assert phases.mean_rate == pytest.approx(0.8, rel=1e-12)
    assert phases.rates == pytest.approx((1.6 / 3, 1.6))
    assert phases.lengths == pytest.approx((9.0, 3.0))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Trace("a", "t", "s", block=0), "block is 0: it must be a whole number .*"),
        (lambda: Trace("a", "t", "s", bad_rows="drop"), "bad_rows is 'drop': it must be skip"),
        (lambda: Batches(0.5), "size is 0.5: it must be a number from 1 to 1000000"),
        (lambda: Batches(2.5, "fixed"), "size is 2.5: it must be a whole number .*"),
        (lambda: Batches(2, "poisson"), "law is 'poisson': it must be one of geometric, fixed"),
        (lambda: Modulated((1, -1), (1, 1)), r"rates\[1\] is -1: it must be a finite number of 0 or more"),
        (lambda: Modulated((0, 0), (1, 1)), r"rates is \(0.0, 0.0\): it must be a list with a positive number"),
        (lambda: Modulated((1, 2), (1, 0)), rf"lengths\[1\] is 0: {POSITIVE}"),
        (lambda: Modulated((1, 2), (1,)), "lengths has 1 numbers: it must have 2, as rates"),
        (lambda: Modulated((1, 2), (1, 1), ((1, 0),)), "moves has 1 rows: it must have 2, as rates"),
        (lambda: Modulated((1, 2), (1, 1), ((1, 0), (1,))), r"moves\[1\] has 1 numbers: .* 2, as rates"),
        (lambda: Modulated((1, 2), (1, 1), ((1, 0), (1, 1))), r"moves\[1\] sum to 2.0: they must sum to 1"),
        (lambda: Modulated((1, 2), (1, 1), ((1, 0), (0, 1))), "moves is .*: it must be such that all phases .*"),
        (lambda: Modulated((0, 2), (1, 1), ((1, 0), (1, 0))), "rates is .*: it must be positive in a recurrent phase"),
        (lambda: Bursts(0, 1), f"peak is 0: {POSITIVE}"),
        (lambda: Bursts(2, -1), f"length is -1: {POSITIVE}"),
        (lambda: Bursts(2, 1, share=1), "share is 1: it must be a number above 0 and below 1"),
        (lambda: Day(1, 1.5), "swing is 1.5: it must be a number from 0 to 1"),
        (lambda: Day(0, 1), f"period is 0: {POSITIVE}"),
        (lambda: Renewal("erlang"), "gaps is 'erlang': it must be a distribution: Exponential, .*, Empirical"),
        (lambda: HotRouter(0, 1), "share is 0: it must be a number above 0 and at most 1"),
        (lambda: HotRouter(1.5, 1), "share is 1.5: it must be a number above 0 and at most 1"),
        (lambda: HotRouter(0.5, 0), f"every is 0: {POSITIVE}"),
    ],
)  # fmt: skip
def test_bad_values(build, sentence):
    with raises(sentence):
        build()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"service": 4}, "service is 4: it must be a distribution: Exponential, .*"),
        ({"service": Erlang(2), "arrivals": Trace("a", "t", "s")}, "service is .*: it must be left out: a trace .*"),
        ({"shares": HotRouter(0.5, 1.0), "routers": 1}, "routers is 1: it must be at least 2 for shares of a hot router"),
        ({"arrivals": Bursts(0.7, 1.0)}, "peak is 0.7: it must be above the load, 0.8, and at most 8, all .*"),
        ({"arrivals": Bursts(1.7, 1.0, 0.5)}, "peak is 1.7: it must be above the load, 0.8, and at most 1.6, .*"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(values, sentence):
    with raises(sentence):
        Scenario(**{"pools": POOLS, "routers": 2, "load": 0.8, **values})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"arrivals": {"kind": "burst"}}, r"arrivals.kind is 'burst': did you mean 'bursts'\? It must be one of batches, .*"),
        ({"arrivals": {"kind": "bursts", "peek": 2}}, r"arrivals.peek is not a known key: did you mean 'peak'\? It must be one of .*"),
        ({"arrivals": {"kind": "renewal"}}, "arrivals.gaps is missing: it must be given"),
        ({"arrivals": {"kind": "renewal", "gaps": {"law": "x"}}}, "arrivals.gaps.law is 'x': it must be one of .*"),
        ({"arrivals": {"kind": "renewal", "gaps": {"law": "weibull", "shape": 0}}}, "arrivals.gaps.shape is 0: .*"),
        ({"shares": {"share": 0.5}}, "shares.every is missing: it must be given"),
        ({"shares": {"share": 2, "every": 1}}, "shares.share is 2: it must be a number above 0 and at most 1"),
    ],
)  # fmt: skip
def test_bad_tables(content, sentence):
    with raises(sentence):
        Scenario.from_dict({"pools": [{"size": 1}], "routers": 2, "load": 0.8, **content})
