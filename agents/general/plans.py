"""Plans of the general router: a pull protocol, and a step without a message.

A plan is a chain of steps that any system can use: take a message of the fastest pool that has one, else do
its last step. Routers remember eight servers per pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Announce, Cycle, Policy, Probe, Recall, Search, Send, Step, Take
from pull_env.scenario.scenario import Scenario

PROTOCOLS: dict[str, Announce | None] = {
    "idle": Announce(),
    "idle, never withdrawn": Announce(withdraw=False),
    "idle, to the poorer of two": Announce(recipient="fewest", sample=2),
    "two places, never withdrawn": Announce(threshold=2, withdraw=False),
    "nothing": None,
}
# Servers probed at most, and the wait at which probing stops, in mean service times.
PROBES = ((1, 1.0), (2, 0.0), (3, 2.0), (5, 2.0), (8, 0.0))
PROBES_OF_A_POOL = ((1, 1.0), (3, 1.0))


@dataclass(frozen=True)
class Plan:
    """A protocol and the last step of a chain.

    Attributes:
        protocol: A name in PROTOCOLS.
        last: Index of the step in `last_steps`.
    """

    protocol: str
    last: int

    def on(self, scenario: Scenario) -> Policy:
        """Return the plan as a chain of steps for a scenario."""
        announce, last = protocol(self.protocol, scenario), last_steps(scenario)[self.last]
        takes = () if announce is None else (Take(order="fastest"),)
        return Policy("plan", (*takes, last), announce)


def protocol(name: str, scenario: Scenario) -> Announce | None:
    """Return a protocol; with a single router it samples no recipients."""
    announce = PROTOCOLS[name]
    if announce is None or scenario.routers > 1:
        return announce
    return replace(announce, recipient="uniform", sample=None)


def last_steps(scenario: Scenario) -> tuple[Step, ...]:
    """Return the last steps of plans: over all servers, then of the fastest pool."""
    fastest = max(range(len(scenario.pools)), key=lambda pool: scenario.pools[pool].rate)
    return (*steps_of_all(scenario), *sends_of_pool(scenario, fastest))


def steps_of_all(scenario: Scenario) -> tuple[Step, ...]:
    """Return the steps over all servers."""
    return (Cycle(weights="rate"), Search(), *_probes(scenario, PROBES, None))


def steps_of_pool(scenario: Scenario, pool: int) -> tuple[Step, ...]:
    """Return the steps over one pool."""
    return (Take(pool), Recall(pool), *sends_of_pool(scenario, pool))


def sends_of_pool(scenario: Scenario, pool: int) -> tuple[Step, ...]:
    """Return the steps over one pool that need neither a message nor a memory."""
    return (Send(pool), *_probes(scenario, PROBES_OF_A_POOL, pool))


def _probes(scenario: Scenario, probes: tuple[tuple[int, float], ...], pool: int | None) -> tuple[Probe, ...]:
    servers = scenario.servers if pool is None else scenario.pools[pool].size
    return tuple(
        Probe(
            pool=pool,
            weights="rate" if pool is None else "uniform",
            at_most=min(most, servers),
            stop_at=wait * mean_service_time(scenario),
            rank="delay",
            recall=True,
        )
        for most, wait in probes
    )


LAST_STEPS = 2 + len(PROBES) + 1 + len(PROBES_OF_A_POOL)  # length of `last_steps`
PLANS = tuple(Plan(name, last) for name, last in product(PROTOCOLS, range(LAST_STEPS)))
