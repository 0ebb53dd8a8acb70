"""How long to run a system before customers are counted."""

from __future__ import annotations

import math

import numpy as np

from pull_env.policy.policy import Policy
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
from pull_env.scenario.faults import Faults
from pull_env.scenario.scenario import Scenario

LARGEST_SCV = 100.0  # squared coefficient of variation that a warm-up allows for


def warmup_customers(scenario: Scenario, policy: Policy | None) -> int:
    """Return the number of customers that arrive in five relaxation times.

    The relaxation time is the longest of three:

    - of a single server of the slowest pool at the system's load, whose spectral gap for exponential gaps and
      service is mu (1 + rho - 2 sqrt(rho) cos(pi / (B + 1))), B infinite included, times `variability`;
    - of the split of pull-messages over several routers, about 4 n (1 - rho)^2 / (pi^2 rho) service times, so
      that the warm-up grows with n;
    - of the phases of arrivals, a hot router, or faults.

    Service with infinite variance never relaxes: it counts as if its squared coefficient of variation were
    LARGEST_SCV, and rarer sizes may first occur among the counted customers.
    """
    rho = scenario.nominal_load
    if scenario.never_blocks and rho >= 1:
        rho = 0.99  # never relaxes; a short warm-up shows that as well
    gaps = [
        pool.rate
        * (
            1
            + rho
            - 2 * math.sqrt(rho) * (1 if pool.buffer is None else math.cos(math.pi / (pool.buffer + 1)))
        )
        for pool in scenario.pools
    ]
    relaxation = variability(scenario) / max(min(gaps), 1e-5 * min(pool.rate for pool in scenario.pools))
    if policy is not None and policy.announce is not None and scenario.routers > 1 and rho < 1:
        relaxation = max(relaxation, split_relaxation(scenario))
    return math.ceil(5 * max(relaxation, phase_relaxation(scenario)) * scenario.total_arrival_rate)


def split_relaxation(scenario: Scenario) -> float:
    """Return the relaxation time of the split of pull-messages over routers, load < 1."""
    n, rho = scenario.servers, scenario.nominal_load
    return n / scenario.capacity * 4 * n * (1 - rho) ** 2 / (math.pi**2 * rho)


def variability(scenario: Scenario) -> float:
    """Return how many times slower than in M/M/1 a queue relaxes, at least 1.

    In heavy traffic a queue is a reflected Brownian motion, which relaxes in proportion to its variance, here
    (1 + (D - 1) / n + scv) / 2: D is the dispersion of all arrivals, of which a server gets 1 / n; scv is the
    squared coefficient of variation of the service.
    """
    service = 1.0 if scenario.service is None else min(scenario.service.scv, LARGEST_SCV)
    return max(1.0, 0.5 * (1.0 + (dispersion(scenario) - 1.0) / scenario.servers + service))


def dispersion(scenario: Scenario) -> float:
    """Return variance / mean of the number of arrivals in a long time.

    Traces count as Poisson.
    """
    kind = scenario.arrivals
    if isinstance(kind, Renewal):
        return min(kind.gaps.scv, LARGEST_SCV)
    if isinstance(kind, Batches):
        return kind.size if kind.law == "fixed" else 2.0 * kind.size - 1.0
    if isinstance(kind, Bursts):
        kind = kind.phases(scenario.nominal_load)
    if not isinstance(kind, Modulated):
        return 1.0
    # Fischer and Meier-Hellstern 1993, "The Markov-modulated Poisson process cookbook": the covariance of the
    # rate with itself over all later time solves Poisson's equation for the generator.
    rates = np.array(kind.rates) * (scenario.total_arrival_rate / kind.mean_rate)
    excess = rates - scenario.total_arrival_rate
    solved = np.linalg.lstsq(-kind.generator, excess, rcond=None)[0]
    covariance = float((kind.time_shares * excess) @ (solved - kind.time_shares @ solved))
    return 1.0 + 2.0 * covariance / scenario.total_arrival_rate


def phase_relaxation(scenario: Scenario) -> float:
    """Return the relaxation time of arrival phases, hot router and faults; 0 without.

    That of a chain of phases is given by its spectral gap; a fifth of a day makes the warm-up a day.
    """
    kind, hot = scenario.arrivals, scenario.shares
    times = [hot.every if isinstance(hot, HotRouter) else 0.0]
    if isinstance(kind, Bursts):
        kind = kind.phases(scenario.nominal_load)
    if isinstance(kind, Modulated) and len(kind.rates) > 1:
        times.append(-1.0 / float(np.sort(np.linalg.eigvals(kind.generator).real)[-2]))
    if isinstance(kind, Day):
        times.append(kind.period / 5)
    if scenario.faults is not None:
        times += fault_relaxations(scenario.faults)
    return max(times)


def fault_relaxations(faults: Faults) -> list[float]:
    """Return the relaxation times of failures and slowdowns; restarts have no phase."""
    means = [(faults.up, faults.down), (faults.normal, faults.slow)]
    return [1.0 / (1.0 / one + 1.0 / other) for one, other in means if one and other]
