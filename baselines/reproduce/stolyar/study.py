"""Stolyar 2017: PULL in large systems, no waiting, one message per customer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from baselines.policies.registry import make
from baselines.reproduce.common.study import Row, Setup, Study, make_row
from baselines.reproduce.stolyar.figure import figure
from baselines.reproduce.stolyar.sections import FILLED, sections
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.results import Result
from pull_env.simulation.simulate import simulate
from pull_env.simulation.statistics import Estimate, estimate, nan_estimate
from pull_env.simulation.warmup import split_relaxation
from pull_env.theory.pull_fluid import pull_fluid
from pull_env.theory.pull_mean_field import PullLimit, pull_many_routers

SOURCE = (
    "A. L. Stolyar, Pull-based load distribution among heterogeneous parallel servers: the case of multiple "
    "routers, Queueing Systems 85 (2017), 31-65, arXiv:1512.07873."
)
ABOUT = (
    "An idle server sends one pull-message to a random router; a router sends a customer to a server whose "
    "message it holds, and at random if it holds none. The paper proves that, as the system grows at a fixed "
    "number R of routers and a load below 1, customers neither wait nor are blocked, whatever the pools and "
    "their buffers, at only one message per customer. It says nothing about finite systems: how large they "
    "must be, and how long convergence takes, is measured here."
)

HALVES = {  # rate and buffer of either half of the servers, and the load
    "finite": (((1.0, 3), (2.0, 1)), 0.9),
    "unlimited": (((0.5, None), (1.5, None)), 0.9),
    "finite, load 0.8": (((1.0, 3), (2.0, 1)), 0.8),
    "unlimited, load 0.8": (((1.0, None), (2.0, None)), 0.8),
}
WARMUP_TIMES = 200  # service times of the slowest servers, after which queues are forgotten
FAR = 1e6  # servers per router at which the mean field equals its limit to five digits


def system(name: str, n: int, routers: int) -> Scenario:
    """Return a system of two halves by its name in `HALVES`."""
    halves, load = HALVES[name]
    pools = tuple(Pool(n // 2, rate, buffer) for rate, buffer in halves)
    return Scenario(pools, routers=routers, load=load, name=name)


def equal_servers(load: float, n: int, routers: int) -> Scenario:
    """Return n servers of rate 1 without limit."""
    return Scenario((Pool(n),), routers=routers, load=load, name=f"equal servers, load {load:g}")


@dataclass(frozen=True)
class Sizes:
    """Sizes of systems and lengths of runs.

    Attributes:
        customers: Counted at a point, at least.
        stationary: n of the stationary points.
        transient: n and R of the larger ones.
        transient_customers: Counted there.
        fallback: n of the points with a fallback by rate.
        law: Load, largest n and R of the points of the 1/n law, and relaxation times to count there.
        growing: n where R grows with n.
        growing_customers: Counted there.
    """

    customers: int
    stationary: tuple[int, ...]
    transient: tuple[tuple[int, int], ...]
    transient_customers: int
    fallback: tuple[int, ...]
    law: tuple[tuple[float, int, int, int], ...]
    growing: tuple[int, ...]
    growing_customers: int


QUICK = Sizes(
    customers=1_000_000,
    stationary=(50, 200, 1000, 3000),
    transient=((100_000, 10),),
    transient_customers=5_000_000,
    fallback=(100,),
    law=((0.7, 500, 2, 1500), (0.9, 1500, 10, 1500)),
    growing=(100, 1000),
    growing_customers=12_000_000,
)
FULL = Sizes(
    customers=4_000_000,
    stationary=(50, 100, 300, 1000, 3000, 10_000),
    transient=tuple(product((100_000, 1_000_000), (1, 2, 5, 10))),
    transient_customers=5_000_000,
    fallback=(50, 100, 300),
    law=(  # 1500 would leave an interval of 10 % at R = 2; their number limits n
        (0.5, 480, 2, 4500),
        (0.7, 1000, 2, 4500),
        (0.9, 3000, 2, 4500),
        (0.9, 3000, 5, 1500),
        (0.9, 3000, 10, 1500),
        (0.95, 12_000, 2, 4500),
    ),
    growing=(100, 1000, 10_000),
    growing_customers=12_000_000,
)


def tasks(setup: Setup) -> Iterator[Callable[[], Row]]:
    """Yield the measurements."""
    return measurements(setup, QUICK if setup.quick else FULL)


def measurements(setup: Setup, sizes: Sizes) -> Iterator[Callable[[], Row]]:
    """Yield the measurements; `sections` says what each experiment is for."""
    for name in ("finite", "unlimited"):
        for n, routers in product(sizes.stationary, (1, 2, 5, 10)):
            yield partial(stationary, setup, "size", system(name, n, routers), sizes.customers, 30)
        for n, routers in sizes.transient:
            yield partial(transient, setup, system(name, n, routers), sizes.transient_customers)
    for n in sizes.fallback:
        yield partial(
            stationary, setup, "fallback", system("unlimited", n, 10), sizes.customers, 30, "pull-weighted"
        )
    for load, most, routers, spans in sizes.law:
        for n in (most // 4, most):
            yield partial(stationary, setup, "law", equal_servers(load, n, routers), sizes.customers, spans)
    for n in sizes.growing:
        for name in ("finite, load 0.8", "unlimited, load 0.8"):
            yield partial(
                stationary, setup, "growing R", system(name, n, n // 10), sizes.growing_customers, 0
            )
        yield partial(
            stationary, setup, "growing R", equal_servers(0.9, n, n // 10), sizes.growing_customers, 0
        )


def stationary(
    setup: Setup, experiment: str, scenario: Scenario, customers: int, spans: float, policy: str = "pull"
) -> Row:
    """Measure the stationary state, over enough relaxation times of the split.

    At least `customers` customers and `spans` relaxation times are counted. The warm-up is five relaxation
    times (none if R grows with n, where routers relax fast) and `WARMUP_TIMES` service times of the slowest
    servers.
    """
    split = split_relaxation(scenario) * scenario.total_arrival_rate if scenario.routers > 1 else 0.0
    warmup = math.ceil(service_times(scenario, WARMUP_TIMES) + (5 * split if spans else 0.0))
    counted = max(customers, math.ceil(spans * split))
    return point(setup, experiment, scenario, policy, counted, warmup, 8, counted / split if split else None)


def transient(setup: Setup, scenario: Scenario, customers: int) -> Row:
    """Measure a system too large to become stationary, from an even split."""
    warmup = math.ceil(service_times(scenario, FILLED))
    split = split_relaxation(scenario) * scenario.total_arrival_rate
    spans = (warmup + customers / 2) / split if scenario.routers > 1 else None
    return point(setup, "watched", scenario, "pull", customers, warmup, 3, spans)


def service_times(scenario: Scenario, count: float) -> float:
    """Return the arrivals in `count` mean service times of the slowest servers."""
    return count * scenario.total_arrival_rate / min(pool.rate for pool in scenario.pools)


def point(
    setup: Setup,
    experiment: str,
    scenario: Scenario,
    name: str,
    customers: int,
    warmup: int,
    replications: int,
    spans: float | None,
) -> Row:
    """Simulate a point; return its row with the values of theory."""
    policy = make(name)
    result = simulate(
        scenario,
        policy,
        customers,
        seed=setup.seed,
        replications=replications,
        warmup=warmup,
        workers=setup.workers,
    )
    where = {"experiment": experiment, "n": scenario.servers, "R": scenario.routers, "spans": spans}
    extra: dict[str, Estimate | float] = {"late": late(result), "empty": empty(result), **theory(scenario)}
    return make_row(setup, scenario, policy, result, where, extra)


def late(result: Result) -> Estimate:
    """Return P(a customer waits or is blocked)."""
    if not result.stable:
        return nan_estimate(result.replications)
    wait, block = np.array(result.p_wait.samples), np.array(result.p_block.samples)
    return estimate(wait * (1 - block) + block)


def empty(result: Result) -> Estimate:
    """Return P(the customer's router holds no message).

    The random server is then busy, full, or idle; in the last case its message is withdrawn from another
    router.
    """
    if not result.stable:
        return nan_estimate(result.replications)
    return estimate(np.add(late(result).samples, result.messages["remove"].samples))


def theory(scenario: Scenario) -> dict[str, float]:
    """Return the limits for a system: fixed R, its 1/n law, and fixed n / R."""
    pools, load, n, routers = scenario.pools, scenario.nominal_load, scenario.servers, scenario.routers
    fluid, far = pull_fluid(pools, load), pull_many_routers(pools, load, FAR)
    limits = {f"fluid busy {j}": busy for j, busy in enumerate(fluid.busy)}
    limits |= {"fluid response": fluid.response, "c": far.q0 * FAR * (1 - load)}
    limits["law late"] = late_share(far) * FAR * (routers - 1) / n
    try:
        limit = pull_many_routers(pools, load, n / routers)
    except ValueError:  # the slowest servers are overloaded
        return limits
    limits |= {"field q0": limit.q0, "field response": limit.response, "field late": late_share(limit)}
    return limits | {"field p_wait": limit.p_wait, "field p_block": limit.p_block}


def late_share(limit: PullLimit) -> float:
    """Return P(a customer waits or is blocked) in a limit."""
    return limit.p_wait * (1 - limit.p_block) + limit.p_block


STUDY = Study("stolyar", "PULL with several routers (Stolyar 2017)", SOURCE, ABOUT, tasks, sections, figure)
