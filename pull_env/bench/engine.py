"""Customers a second of the simulator: by policy and number of servers, by routers, by threads."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pull_env.bench.timing import Measurement, throughput
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.policy_runner import PolicyRunner

CUSTOMERS = "customers a second"
ROUTERS = (1, 10, 100, 1000)
ROUTERS_SERVERS = 10_000
PATIENCE = 10.0  # seconds of warm-up: `lwl` looks at every server, and would take hours at a million
BLOCKS = 10  # in a timing, at least


def system(n: int, routers: int = 10) -> Scenario:
    """Return n servers, at least 2, of two speeds, at a load of .8.

    It is too much for the slow ones if servers are chosen blindly: under `random` their queues grow.
    """
    return Scenario((Pool(n - n // 2, 1.25), Pool(n // 2, 0.75)), routers=routers, load=0.8)


class Running:
    """A simulator in motion, warm: calling it places `customers` customers.

    Attributes:
        customers: So many take about a tenth of a timing.
        warmup: Customers placed so far: three a server, or as many as `PATIENCE` allows.
    """

    def __init__(self, scenario: Scenario, policy: Policy, seconds: float, episode: int = 0) -> None:
        """Start from an empty system, and warm up.

        Args:
            scenario: The system.
            policy: What its routers follow.
            seconds: Length of a timing.
            episode: Of the seed 0: simulators side by side have streams of their own.
        """
        self._runner = PolicyRunner(scenario, policy)
        self._runner.reset(0, episode)
        self.customers = self.warmup = 1
        self()  # loads the kernels, or compiles them
        patient, short = time.perf_counter() + PATIENCE, True
        while short or (self.warmup < 3 * scenario.servers and time.perf_counter() < patient):
            begun = time.perf_counter()
            self()
            self.warmup += self.customers
            short = time.perf_counter() - begun < seconds / (2 * BLOCKS)
            if short:
                self.customers *= 2

    def __call__(self) -> None:
        """Place `customers` customers."""
        self._runner.run(self.customers)


def customers(
    kind: str, name: str, scenario: Scenario, policy: Policy, seconds: float
) -> Iterator[Measurement]:
    """Yield the customers a second on one thread."""
    running = Running(scenario, policy, seconds)
    values = throughput([running], running.customers, seconds)
    yield Measurement(kind, name, CUSTOMERS, values, warmup=running.warmup, scenario=scenario, policy=policy)


def by_cores(n: int, policy: Policy, cores: tuple[int, ...], seconds: float) -> Iterator[Measurement]:
    """Yield the customers a second of as many simulators side by side as each of `cores` says."""
    scenario = system(n)
    running = [Running(scenario, policy, seconds, episode) for episode in range(max(cores))]
    for each in running:
        each.customers = running[0].customers
    for threads in cores:
        values = throughput(running[:threads], running[0].customers, seconds)
        yield Measurement(
            "cores", policy.name, CUSTOMERS, values, threads, None, running[0].warmup, scenario, policy
        )
