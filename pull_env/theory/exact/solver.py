"""Exact measures of a small system, from the Markov chain of its policy's steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.scenario.scenario import Scenario, ScenarioLike, as_scenario
from pull_env.theory.exact.chain import Chain, explore, stationary
from pull_env.theory.exact.states import State, System, initial_distribution
from pull_env.theory.exact.transitions import MEASURES, events, system_for_policy
from pull_env.theory.formulas import Floats

MOST_BLOCKED = 1e-12  # probability of being blocked where an infinite buffer is cut
FIRST_CUT = 16
MOST_SERVERS = 100  # each state lists all servers


@dataclass(frozen=True)
class Exact:
    """What `simulate` would measure in the long run, as plain numbers; see `Result`.

    Attributes:
        wait: Mean time in queue of an accepted customer.
        response: Wait plus service.
        p_wait: Share of accepted customers that found their server busy.
        p_block: Share of all arrivals that are blocked.
        mean_number: Customers in the system, averaged over time.
        busy: Share of busy servers, by pool.
        messages: Messages per arriving customer: pull, remove, probe, update and total.
        cost: Cost per arriving customer, at the prices of the scenario.
        states: States of the chain, transient ones included.
        cut: Longest queue in the chain, by pool: the buffer, or where an infinite one was cut.
    """

    wait: float
    response: float
    p_wait: float
    p_block: float
    mean_number: float
    busy: tuple[float, ...]
    messages: dict[str, float]
    cost: float
    states: int
    cut: tuple[int, ...]


def solve(scenario: ScenarioLike, policy: PolicyLike, *, most_states: int = 200_000) -> Exact:
    """Return the stationary measures of `policy` on a small system.

    Service is exponential. The chain is explored from the empty system by the steps of the policy. Servers of
    a pool are interchangeable unless the policy takes them in turn or ranks them by work; with `work` the
    order of the next departures is part of the state, as far as routers have looked ahead. Infinite buffers
    are cut where the probability of being blocked by the cut is below 1e-12. If the long run depends on the
    random start, as it may with round robin, the mean over starts is given.

    Args:
        scenario: The system; Poisson arrivals.
        policy: Any chain of steps and any pull protocol, except: a network; `Probe` by work; with infinite
            buffers `Inspect` by work, and steps that recall; `Search`, unless messages cost so much that it
            probes once; `Cycle` by rate if capacities have no common unit.
        most_states: Limit of the chain; seconds and memory are about linear in it.

    Raises:
        ValueError: The chain is too large, the system has no stationary distribution, or the policy or the
            scenario is not supported; the message says which.
        ArithmeticError: The equations could not be solved to about 11 digits.

    >>> from pull_env import Policy, Pool, Scenario, Send
    >>> round(solve(Scenario((Pool(1),), load=0.5), Policy("blind", (Send(),))).response, 9)
    2.0
    """
    scenario = as_scenario(scenario)
    policy = as_policy(policy, scenario)
    if policy.network is not None:
        raise ValueError(f"{policy.name} follows a network: the chain cannot hold its observations")
    return solve_with_cuts(
        scenario, lambda cut: system_for_policy(scenario, policy, cut), policy.name, most_states
    )


def solve_with_cuts(
    scenario: Scenario, system_with_cut: Callable[[tuple[int, ...]], System], name: str, most_states: int
) -> Exact:
    """Return the stationary measures, with cuts of infinite buffers high enough."""
    if not scenario.markov:
        raise ValueError(f"{scenario.name} replays a trace, or is not Markov: a chain cannot describe it")
    if scenario.never_blocks and scenario.nominal_load >= 1:
        raise ValueError(f"{scenario.name} has load {scenario.nominal_load:g} and no limits: it is unstable")
    cut = tuple(pool.buffer or FIRST_CUT for pool in scenario.pools)
    if scenario.servers > MOST_SERVERS:
        raise ValueError(
            f"{scenario.name} has {scenario.servers:,} servers: a chain holds at most {MOST_SERVERS}"
        )
    while True:
        system = system_with_cut(cut)
        first = initial_distribution(system, most_states)
        chain = first and explore(first, partial(events, system), len(MEASURES), most_states)
        if not chain:
            raise ValueError(too_large(scenario, name, most_states, cut))
        distribution = stationary(chain.rates, chain.start, planar=scenario.servers <= 2)
        queues = np.array([[server.queue for server in state.servers] for state in chain.states])
        higher = tuple(
            _next_cut(distribution, queues[:, pool.start : pool.stop], cut[j])
            if scenario.pools[j].buffer is None
            else cut[j]
            for j, pool in enumerate(system.pools)
        )
        if higher == cut:
            return _measures(scenario, system, chain, distribution, queues, cut)
        cut = higher


def too_large(scenario: Scenario, name: str, most_states: int, cut: tuple[int, ...]) -> str:
    """Return the error message for a chain with too many states."""
    text = f"the chain has more than {most_states:,} states: {name} on {scenario.servers} servers"
    text += f" and {scenario.routers} routers" if scenario.routers > 1 else ""
    if any(pool.buffer is None for pool in scenario.pools):
        text += f", with infinite buffers cut at {max(cut):,} customers: fewer servers, a lower load or"
        return f"{text} finite buffers would make it smaller, unless the system is unstable"
    return f"{text}, each with up to {max(cut)} customers: fewer of these would make it smaller"


def _next_cut(distribution: Floats, queues: Floats, cut: int) -> int:
    """Return a cut beyond which a geometric tail is small enough; `cut` if it is."""
    tail = np.zeros(cut + 1)
    for server in range(queues.shape[1]):
        tail += np.bincount(queues[:, server], distribution, cut + 1)
    if tail[cut] < MOST_BLOCKED:
        return cut
    middle, last = cut // 2, cut - 1
    more = math.inf  # if the tail does not decrease yet
    if 0 < tail[last] < tail[middle]:
        decay = math.log(tail[middle] / tail[last]) / (last - middle)
        more = math.log(tail[cut] / (0.01 * MOST_BLOCKED)) / max(decay, 1e-9)
    return cut + math.ceil(min(max(1.1 * more, 8), 3 * cut))


def _measures(
    scenario: Scenario,
    system: System,
    chain: Chain[State],
    distribution: Floats,
    queues: Floats,
    cut: tuple[int, ...],
) -> Exact:
    flow = dict(zip(MEASURES, (distribution @ chain.counted).tolist(), strict=True))
    arrived, prices = scenario.total_arrival_rate, scenario.prices
    accepted = arrived - flow["blocked"]
    messages = {kind: flow[kind] / arrived for kind in ("pull", "remove", "probe")} | {"update": 0.0}
    messages["total"] = sum(messages.values())
    p_block = flow["blocked"] / arrived
    busy = distribution @ (queues > 0)
    return Exact(
        wait=flow["wait"] / accepted,
        response=flow["response"] / accepted,
        p_wait=flow["waited"] / accepted,
        p_block=p_block,
        mean_number=float(distribution @ queues.sum(axis=1)),
        busy=tuple(float(busy[pool.start : pool.stop].mean()) for pool in system.pools),
        messages=messages,
        cost=prices.wait * flow["wait"] / arrived
        + prices.message * messages["total"]
        + prices.block * p_block,
        states=len(chain.states),
        cut=cut,
    )
