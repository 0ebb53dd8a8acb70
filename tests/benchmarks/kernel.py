"""Print ns per customer for every policy and size of system, beside a loop of plain SimPy on the same work.

    python tests/benchmarks/kernel.py [--policy NAME] [--customers N]

One thread; a run is warmed up before it is timed, and the middle of five timings is printed, with their spread: these are
times of this machine at this moment, and comparisons hold within one run only.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import baselines
from pull_env import Pool, Scenario
from pull_env.system import Simulator, encode

SIZES = (100, 10_000, 1_000_000)
DEFAULTS = {"jbt": {"r": 2}}


def system(n: int) -> Scenario:
    """Return n servers of two speeds and ten routers, at a load of .8."""
    return Scenario((Pool(n // 2, 1.25), Pool(n // 2, 0.75)), routers=10, load=0.8)


def time_kernel(name: str, n: int, customers: int) -> list[float]:
    """Return five timings of `customers` customers, in ns a customer."""
    scenario, policy = system(n), baselines.make(name, **DEFAULTS.get(name, {}))
    chain = encode(policy.steps, scenario)
    simulator = Simulator(scenario, policy.steps, policy.announce)
    simulator.reset(0)
    simulator.run(chain, max(customers, 3 * n))
    timings = []
    for _ in range(5):
        start = time.perf_counter()
        simulator.run(chain, customers)
        timings.append((time.perf_counter() - start) / customers * 1e9)
    return timings


def time_simpy(n: int, customers: int) -> float:
    """Return ns a customer of `power-of-d(2)` written the usual way: a process a customer, a resource a server."""
    import simpy

    scenario = system(n)
    rates = [pool.rate for pool in scenario.pools for _ in range(pool.size)]
    draw = random.Random(0)
    env = simpy.Environment()
    servers = [simpy.Resource(env) for _ in rates]
    length = [0] * n

    def customer(k):
        length[k] += 1
        with servers[k].request() as request:
            yield request
            yield env.timeout(draw.expovariate(rates[k]))
        length[k] -= 1

    def arrivals():
        for _ in range(customers):
            yield env.timeout(draw.expovariate(scenario.total_arrival_rate))
            env.process(customer(min(draw.sample(range(n), 2), key=length.__getitem__)))

    env.process(arrivals())
    start = time.perf_counter()
    env.run()
    return (time.perf_counter() - start) / customers * 1e9


def main() -> None:
    """Time what the arguments ask for, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", action="append", help="a policy's name; again for more (default: all)")
    parser.add_argument(
        "--customers", type=int, default=1_000_000, help="customers a timing (default: 1,000,000)"
    )
    options = parser.parse_args()
    names = options.policy or list(baselines.POLICIES)
    print(f"{'ns a customer':24}" + "".join(f"{f'n = {n:,}':>26}" for n in SIZES))
    for name in names:
        cells = []
        for n in SIZES:
            timings = time_kernel(name, n, options.customers)
            cells.append(f"{statistics.median(timings):9.0f} ({min(timings):.0f} to {max(timings):.0f})")
        print(f"{name:24}" + "".join(f"{cell:>26}" for cell in cells), flush=True)
    simpy_ns = [time_simpy(n, 20_000) for n in SIZES[:2]]
    print(f"{'SimPy, power-of-d(2)':24}" + "".join(f"{ns:>26,.0f}" for ns in simpy_ns))


if __name__ == "__main__":
    main()
