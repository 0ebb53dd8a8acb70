"""Scenarios of every kind of arrivals and service, and what their feeds draw."""

import numpy as np

from pull_env import Pool, Scenario
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
from pull_env.scenario.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Pareto,
    Weibull,
)
from pull_env.simulation.statistics import estimate
from pull_env.simulation.workload import calendar_workload

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
WORKLOADS = {
    **{name: {"arrivals": kind} for name, kind in ARRIVALS.items()},
    **{name: {"service": law} for name, law in LAWS.items()},
    "hot router": {"shares": HotRouter(0.6, 2.0)},
    "all": {"arrivals": Batches(3.0), "service": Pareto(1.5), "shares": HotRouter(0.6, 2.0)},
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
