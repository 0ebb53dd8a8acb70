"""Chen and Ye 2012: balanced routing is heavy-traffic optimal for any c >= 2."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from baselines.policies.registry import make
from baselines.reproduce.chen_ye.figure import figure
from baselines.reproduce.chen_ye.large import LEAST
from baselines.reproduce.chen_ye.sections import sections
from baselines.reproduce.common.heavy_traffic import REPLICATIONS, SNAPSHOTS, Run, run_at, scaled_number
from baselines.reproduce.common.study import Row, Setup, Study, make_row
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.results import Counts, Recorder, Result, summarise
from pull_env.simulation.simulate import BATCHES
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.statistics import Array, Estimate, Floats, estimate
from pull_env.theory.exact import solve
from pull_env.theory.supermarket import balanced_response, balanced_tail

SOURCE = (
    "H. Chen, H.-Q. Ye, Asymptotic optimality of balanced routing, Operations Research 60 (2012), 163-179; "
    "the tail in large systems by N. Vvedenskaya, R. Dobrushin, F. Karpelevich (1996) and M. Mitzenmacher "
    "(2001)."
)
ABOUT = (
    "K servers of different rates. Balanced routing draws c of them in proportion to their rates, and "
    "sends the customer to the shortest queue of these. The paper proves that as rho -> 1 the total number "
    "of customers approaches that of all servers pooled into one, (1 - rho) E[N] -> 1, the least possible, "
    "for every c from 2 on, and that the work is then spread evenly. c = 1 gives K independent M/M/1 queues, "
    "with K times as many customers."
)
HEAVY = {2: (Pool(1, 1.0), Pool(1, 2.0)), 4: (Pool(2, 0.5), Pool(2, 1.5)), 10: (Pool(5, 0.5), Pool(5, 1.5))}
CHOICES = (1, 2, 3, 5)
HIGHEST_BLIND = 0.995  # load of c = 1: its slow servers relax up to 20 times slower than a pooled one
LARGE_LOAD = 0.8
SETTLE = {
    1: 450.0,
    2: 40.0,
}  # time units from an empty large system: five relaxation times of M/M/1; of c >= 2


@dataclass(frozen=True)
class Sizes:
    """How much to measure.

    Attributes:
        few: Each K.
        relaxations: By load, counted relaxation times of the pooled server, over all replications.
        solved: The highest load at which chains are solved.
        large: By n, customers to count, over all replications.
    """

    few: tuple[int, ...]
    relaxations: Mapping[float, float]
    solved: float
    large: Mapping[int, int]


QUICK = Sizes(
    (2, 4), {0.8: 600, 0.9: 600, 0.95: 1000, 0.98: 600, 0.99: 200}, 0.9, {100: 1_000_000, 2000: 3_000_000}
)
FULL = Sizes(
    (2, 10),
    {0.8: 2000, 0.9: 2000, 0.95: 2000, 0.98: 1000, 0.99: 800, 0.995: 400, 0.998: 80},
    0.95,
    {100: 20_000_000, 1000: 20_000_000, 10_000: 20_000_000, 100_000: 40_000_000},
)


def tasks(setup: Setup) -> Iterator[Callable[[], Row]]:
    """Yield the measurements."""
    return measurements(setup, QUICK if setup.quick else FULL)


def measurements(setup: Setup, sizes: Sizes) -> Iterator[Callable[[], Row]]:
    """Yield measurements: few servers at loads near 1, many at one load."""
    for servers in sizes.few:
        for c in sorted({*CHOICES, servers}):
            for index, load in enumerate(sizes.relaxations):
                if c > 1 or load <= HIGHEST_BLIND:
                    scenario = Scenario(HEAVY[servers], load=load, name=f"{servers} unequal servers")
                    yield partial(heavy, setup, sizes, scenario, c, setup.seed + index)
    for n, customers in sizes.large.items():
        for c in (
            CHOICES if n == min(sizes.large) else CHOICES[1:]
        ):  # c = 1, M/M/1 at every n, converges slowly
            yield partial(large, setup, n, c, customers)


def heavy(setup: Setup, sizes: Sizes, scenario: Scenario, c: int, seed: int) -> Row:
    """Measure few servers at a load near 1, and how even the queues are."""
    slow = scenario.capacity / min(
        pool.rate for pool in scenario.pools
    )  # a single server, against the pooled
    load = scenario.nominal_load
    run = run_at(load, seed, sizes.relaxations[load], 10 if c > 1 else math.ceil(5 * slow), setup.workers)
    result, observed, by_pool = simulate_observed(scenario, c, run, spreads)
    shares = by_pool / by_pool.sum(axis=1, keepdims=True)  # of the customers, (replications, J)
    sizes_of = np.array([pool.size for pool in scenario.pools]) / scenario.servers
    mean = scaled_number(result, run)
    extra: dict[str, Estimate | float | None] = {
        "scaled": mean,
        "spread": estimate(observed[:, 0] * (scenario.servers * (1.0 - load) / mean.mean)),
        "work spread": estimate(observed[:, 1] * (scenario.servers * (1.0 - load) / mean.mean)),
        **{f"pool {j}": estimate(shares[:, j] / part) for j, part in enumerate(sizes_of)},
        "exact": exact(scenario, c, sizes.solved),
    }
    where = {"experiment": "heavy", "K": scenario.servers, "c": c, "load": load}
    return make_row(setup, scenario, make("balanced", c=c), result, where, extra)


def spreads(queues: Array, generator: np.random.Generator) -> list[float]:
    """Return the spread of queues and of work, in mean service requirements.

    Routing by queue lengths is independent of service requirements: given the queues, the work at one of q
    customers is a sum of q exponential variables.
    """
    return [float(np.ptp(queues)), float(np.ptp(generator.standard_gamma(queues)))]


def exact(scenario: Scenario, c: int, solved: float) -> float | None:
    """Return (1 - rho) E[N] where known: c = 1, and two servers up to `solved`."""
    load = scenario.nominal_load
    if c == 1:
        return scenario.servers * load
    if scenario.servers > 2 or load > solved:
        return None
    return (1.0 - load) * solve(scenario, make("balanced", c=c)).mean_number


def large(setup: Setup, n: int, c: int, customers: int) -> Row:
    """Measure many servers, half at rate 1, half at rate 2, with queue tails."""
    scenario = Scenario(
        (Pool(n // 2, 1.0), Pool(n // 2, 2.0)), load=LARGE_LOAD, name=f"{n} servers in two halves"
    )
    warmup = math.ceil(SETTLE[min(c, 2)] * scenario.total_arrival_rate)
    run = Run(LARGE_LOAD, customers, warmup, setup.seed, setup.workers)
    tail = limit_tail(c)
    levels = tail.size - 1

    def observe(queues: Array, _: np.random.Generator) -> list[float]:
        return [float((half > k).mean()) for half in np.split(queues, 2) for k in range(levels)]

    result, observed, _ = simulate_observed(scenario, c, run, observe)
    extra: dict[str, Estimate | float] = {"limit response": balanced_response(LARGE_LOAD, c, 1.5)}
    for k in range(1, levels + 1):
        slow, fast = observed[:, k - 1], observed[:, levels + k - 1]
        extra |= {f"pool 0 u_{k}": estimate(slow), f"pool 1 u_{k}": estimate(fast)}
        extra |= {f"difference u_{k}": estimate(fast - slow), f"limit u_{k}": float(tail[k])}
    where = {"experiment": "large", "n": n, "c": c, "load": LARGE_LOAD, "levels": levels}
    return make_row(setup, scenario, make("balanced", c=c), result, where, extra)


def limit_tail(c: int) -> Floats:
    """Return u_0, u_1, ... as n grows, down to LEAST, and eight at most."""
    tail = balanced_tail(LARGE_LOAD, c, 8)
    return tail[tail >= LEAST]


def simulate_observed(
    scenario: Scenario, c: int, run: Run, observe: Callable[[Array, np.random.Generator], Sequence[float]]
) -> tuple[Result, Floats, Floats]:
    """Simulate balanced routing, and record the queues before some arrivals.

    Args:
        scenario: The system.
        c: Servers drawn.
        run: How long.
        observe: Given the customers at each server, (n,), and a generator, returns values to average.

    Returns:
        The result; the means of the values, (replications, values), as arrivals see time averages; and
        the mean number of customers in each pool, (replications, J).
    """
    started = time.perf_counter()
    steps = make("balanced", c=c).steps
    chain, step = encode(steps, scenario), math.ceil(run.customers / (REPLICATIONS * BATCHES * SNAPSHOTS))

    def replicate(replication: int) -> tuple[Counts, Floats]:
        simulator = Simulator(scenario, steps, None)
        simulator.reset(run.seed, replication)
        simulator.run(chain, run.warmup)
        recorder, observed = Recorder(simulator), []
        generator = np.random.default_rng((run.seed, replication))
        for _ in range(BATCHES):
            for _ in range(SNAPSHOTS):
                simulator.run(chain, step)
                observed.append(observe(simulator.arrays.servers["queue"], generator))
            recorder.end_batch()
        return recorder.counts(), np.mean(observed, axis=0)

    threads = min(run.workers or os.cpu_count() or 1, REPLICATIONS)
    with ThreadPoolExecutor(threads) as pool:
        replications = list(pool.map(replicate, range(REPLICATIONS)))
    counts = [recorded for recorded, _ in replications]
    seconds = time.perf_counter() - started
    result = summarise(scenario, counts, seed=run.seed, warmup=run.warmup, seconds=seconds)
    areas = np.stack([recorded.pools["area"][-1] - recorded.pools["area"][0] for recorded in counts])
    elapsed = np.array([recorded.head["now"][-1] - recorded.head["now"][0] for recorded in counts])
    return result, np.stack([observed for _, observed in replications]), areas / elapsed[:, None]


STUDY = Study(
    "chen-ye",
    "Balanced routing in heavy traffic and in large systems (Chen and Ye 2012)",
    SOURCE,
    ABOUT,
    tasks,
    sections,
    figure,
)
