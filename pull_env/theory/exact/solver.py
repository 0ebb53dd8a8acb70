"""The stationary distribution of a small system under any policy.

From the Markov chain that the policy's declaration makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.scenario.scenario import Scenario, ScenarioLike, as_scenario
from pull_env.theory.exact.chain import Chain, explore, stationary
from pull_env.theory.exact.states import State, System, starts
from pull_env.theory.exact.transitions import MEASURES, build, events
from pull_env.theory.formulas import Floats

LOST = 1e-12  # probability of being blocked at a cut of an infinite buffer, at most
FIRST_CUT = 16
MOST_SERVERS = 100  # a state lists them all


@dataclass(frozen=True)
class Exact:
    """What `simulate` would measure in the long run, as plain numbers; see `Result`.

    Attributes:
        wait: Mean time in queue of an accepted customer.
        response: Wait plus service.
        p_wait: Share of accepted customers that found their server busy.
        p_block: Share of all arrivals that are blocked.
        mean_number: Customers in the system, averaged over time.
        busy: Share of busy servers, a pool each.
        messages: Messages an arriving customer: pull, remove, probe, update and total.
        cost: Cost an arriving customer, at the prices of the scenario.
        states: States of the chain, transient ones included.
        cut: Longest queue that was followed, a pool each: its buffer, or where an infinite one was cut.
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

    Service is exponential.

    The chain is explored from the empty system with the steps of the policy as they are declared. Servers of
    a pool are interchangeable unless the policy takes them in turn, or ranks them by work: then the order of
    the next departures is part of the state, as far as a router looked ahead. Infinite buffers are cut where
    the probability of being blocked by the cut is below 1e-12. Where the long run depends on the random
    start, as it may with round robin, the mean over starts is given.

    Args:
        scenario: The system; Poisson arrivals.
        policy: Any chain of steps and any pull protocol. Not: a network; `Probe` by unfinished work;
            `Inspect` by it, and what recalls, with infinite buffers; `Search`, but where messages are so dear
            that it asks once; `Cycle` by rate where capacities have no common unit.
        most_states: Refuse chains with more states. Seconds and memory are about linear in it.

    Raises:
        ValueError: The chain is too large, the system has no stationary law, or the policy or the scenario is
            not supported; the message says which.
        ArithmeticError: The equations could not be solved to about 11 digits.

    >>> from pull_env import Policy, Pool, Scenario, Send
    >>> round(solve(Scenario((Pool(1),), load=0.5), Policy("blind", (Send(),))).response, 9)
    2.0
    """
    scenario = as_scenario(scenario)
    policy = as_policy(policy, scenario)
    if not scenario.markov:
        raise ValueError(f"{scenario.name} replays a trace, or is not Markov: no chain has its law")
    if policy.network is not None:
        raise ValueError(f"{policy.name} follows a network: the chain would have to hold all that it sees")
    return fit(scenario, lambda cut: build(scenario, policy, cut), policy.name, most_states)


def fit(scenario: Scenario, rules: Callable[[tuple[int, ...]], System], name: str, most_states: int) -> Exact:
    """Return the stationary measures under `rules`, raising cuts as needed."""
    if scenario.never_blocks and scenario.nominal_load >= 1:
        raise ValueError(
            f"{scenario.name} has load {scenario.nominal_load:g} and no limits: no law is stationary"
        )
    cut = tuple(pool.buffer or FIRST_CUT for pool in scenario.pools)
    if scenario.servers > MOST_SERVERS:
        raise ValueError(
            f"{scenario.name} has {scenario.servers:,} servers: a chain holds at most {MOST_SERVERS}"
        )
    while True:
        system = rules(cut)
        first = starts(system, most_states)
        chain = first and explore(first, partial(events, system), len(MEASURES), most_states)
        if not chain:
            raise ValueError(too_large(scenario, name, most_states, cut))
        law = stationary(chain.rates, chain.start, planar=scenario.servers <= 2)
        queues = np.array([[server.queue for server in state.servers] for state in chain.states])
        higher = tuple(
            _raised(law, queues[:, pool.start : pool.stop], cut[j])
            if scenario.pools[j].buffer is None
            else cut[j]
            for j, pool in enumerate(system.pools)
        )
        if higher == cut:
            return _measures(scenario, system, chain, law, queues, cut)
        cut = higher


def too_large(scenario: Scenario, name: str, most_states: int, cut: tuple[int, ...]) -> str:
    """Return the refusal of a chain that has too many states."""
    text = f"the chain has more than {most_states:,} states: {name} on {scenario.servers} servers"
    text += f" and {scenario.routers} routers" if scenario.routers > 1 else ""
    if any(pool.buffer is None for pool in scenario.pools):
        text += f", with infinite buffers cut at {max(cut):,} customers: fewer servers, a lower load or"
        return f"{text} finite buffers would make it smaller, unless the system is not stable"
    return f"{text}, each with up to {max(cut)} customers: fewer of these would make it smaller"


def _raised(law: Floats, queues: Floats, cut: int) -> int:
    """Return a cut at which the geometric tail is small enough.

    It is `cut` if that is enough.
    """
    tail = np.zeros(cut + 1)
    for server in range(queues.shape[1]):
        tail += np.bincount(queues[:, server], law, cut + 1)
    if tail[cut] < LOST:
        return cut
    middle, last = cut // 2, cut - 1
    more = math.inf  # where the tail does not fall yet
    if 0 < tail[last] < tail[middle]:
        decay = math.log(tail[middle] / tail[last]) / (last - middle)
        more = math.log(tail[cut] / (0.01 * LOST)) / max(decay, 1e-9)
    return cut + math.ceil(min(max(1.1 * more, 8), 3 * cut))


def _measures(
    scenario: Scenario, system: System, chain: Chain[State], law: Floats, queues: Floats, cut: tuple[int, ...]
) -> Exact:
    flow = dict(zip(MEASURES, (law @ chain.counted).tolist(), strict=True))
    arrived, prices = scenario.total_arrival_rate, scenario.prices
    accepted = arrived - flow["blocked"]
    messages = {kind: flow[kind] / arrived for kind in ("pull", "remove", "probe")} | {"update": 0.0}
    messages["total"] = sum(messages.values())
    p_block = flow["blocked"] / arrived
    busy = law @ (queues > 0)
    return Exact(
        wait=flow["wait"] / accepted,
        response=flow["response"] / accepted,
        p_wait=flow["waited"] / accepted,
        p_block=p_block,
        mean_number=float(law @ queues.sum(axis=1)),
        busy=tuple(float(busy[pool.start : pool.stop].mean()) for pool in system.pools),
        messages=messages,
        cost=prices.wait * flow["wait"] / arrived
        + prices.message * messages["total"]
        + prices.block * p_block,
        states=len(chain.states),
        cut=cut,
    )
