"""What the feeds give: means and variances of every law, times of every process, and the same in any portions."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from pull_env import Faults, Pool, Scenario, Trace
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
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
from pull_env.simulation.statistics import estimate
from pull_env.simulation.warmup import dispersion, phase_relaxation, variability, warmup_customers
from pull_env.simulation.workload import calendar_workload, workload_for

PLAIN = Scenario((Pool(10),), routers=3, load=0.8)
CYCLE = Modulated((0.0, 1.0, 4.0), (1.0, 3.0, 0.5), ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0)))
LAWS = {
    "exponential": Exponential(),
    "deterministic": Deterministic(),
    "erlang": Erlang(3),
    "hyperexponential": Hyperexponential(4.0),
    "lognormal": Lognormal(2.0),
    "pareto": Pareto(4.5),
    "bounded pareto": Pareto(1.2, bound=100.0),
    "bounded pareto, shape 1": Pareto(1.0, bound=50.0),
    "bounded pareto, shape 2": Pareto(2.0, bound=50.0),
    "weibull": Weibull(0.7),
}
ARRIVALS = {
    "poisson": None,
    "batches": Batches(3.5),
    "fixed batches": Batches(5, "fixed"),
    "modulated": CYCLE,
    "bursts": Bursts(1.6, 3.0, 0.25),
    "day": Day(7.0, 0.9),
    "full swing": Day(500.0, 1.0),
    "renewal": Renewal(Lognormal(2.0)),
}


def customers(scenario, count, seed=0, portion=4096, feeds=calendar_workload):
    """The first `count` customers of a feed, asked for in portions."""
    feed, parts, have = feeds(scenario)(np.random.SeedSequence(seed)), [], 0
    while have < count:
        parts.append(feed.draw(portion))
        assert 0 < parts[-1].gaps.size <= portion
        have += parts[-1].gaps.size
    columns = zip(*parts, strict=True)
    return [None if column[0] is None else np.concatenate(column)[:count] for column in columns]


def near(samples, exact, width):
    """Fail unless the 99.9 % interval of the mean of independent samples holds `exact`, and is narrow."""
    found = estimate(np.asarray(samples, float))
    half = found.half_width(0.999)
    assert half <= width * max(abs(exact), 1e-9), f"half-width {half} of {exact}"
    assert abs(found.mean - exact) <= half, f"{found.mean} +- {half}, exact {exact}"


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_law_has_mean_one_and_its_variance(law):
    values = law.draw(np.random.default_rng(1), 2_000_000)
    assert (values >= 0.0).all()
    if law.scv == 0.0:
        assert (values == 1.0).all()
        return
    near(values, 1.0, 0.01)
    near((values - 1.0) ** 2, law.scv, 0.2 if law == LAWS["pareto"] else 0.05)


def test_laws_are_those_that_they_say():
    """Points of the distribution functions, by the share of values below."""
    tails = {
        Erlang(2): lambda x: np.exp(-2 * x) * (1 + 2 * x),
        Hyperexponential(4.0): lambda x: sum(
            p * np.exp(-2 * p * x) for p in (0.5 + 0.5 * 0.6**0.5, 0.5 - 0.5 * 0.6**0.5)
        ),
        Pareto(1.5): lambda x: min(1.0, (1 / 3 / x) ** 1.5),
        Weibull(0.5): lambda x: np.exp(-((2 * x) ** 0.5)),
    }
    for law, tail in tails.items():
        values = law.draw(np.random.default_rng(2), 400_000)
        for x in (0.4, 1.0, 3.0):
            near(values > x, tail(x), 0.05)
    within = Pareto(1.2, bound=100.0).draw(np.random.default_rng(3), 400_000)
    assert 95.0 < within.max() / within.min() <= 100.0 * (1 + 1e-12)


def test_an_empirical_law_draws_the_values_of_a_file(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("note,work\na,1\nb,2\nc,9\n")
    law = Empirical(str(path), "work")
    values = law.draw(np.random.default_rng(4), 300_000)
    assert set(values) == {0.25, 0.5, 2.25}
    for value in (0.25, 0.5, 2.25):
        near(values == value, 1 / 3, 0.02)
    assert law.scv == pytest.approx((0.75**2 + 0.5**2 + 1.25**2) / 3)
    path.write_text("work\n1\n1\n")
    assert law.scv == 0.0
    path.write_text("work\n1\n0\n")
    with pytest.raises(
        ValueError, match=r"sizes\.csv, line 3: work is '0': it must be a positive finite number"
    ):
        law.scv  # noqa: B018


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


WORKLOADS = {
    **{name: {"arrivals": kind} for name, kind in ARRIVALS.items()},
    **{name: {"service": law} for name, law in LAWS.items()},
    "hot router": {"shares": HotRouter(0.6, 2.0)},
    "all": {"arrivals": Batches(3.0), "service": Pareto(1.5), "shares": HotRouter(0.6, 2.0)},
}


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


# Warm-up


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
