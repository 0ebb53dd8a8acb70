"""The events of a small system: their rates, next states and counts.

They restate the rules of the kernels as a Markov chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from pull_env.policy.policy import Announce, Cycle, Last, Lookup, Policy, Probe, Recall, Search, Step, Take
from pull_env.scenario.scenario import Scenario
from pull_env.theory.exact.states import (
    Outcome,
    State,
    System,
    build_system,
    canonical_state,
    delete_message,
    replaced,
    representatives,
    set_last,
)
from pull_env.theory.exact.steps import STEPS

Counts = tuple[float, ...]  # by MEASURES, of one event
MEASURES = ("blocked", "waited", "wait", "response", "pull", "remove", "probe")
NOTHING: Counts = (0.0,) * len(MEASURES)


def system_for_policy(scenario: Scenario, policy: Policy, cut: tuple[int, ...]) -> System:
    """Return the system under `policy`, infinite buffers of pool j cut at `cut[j]`.

    Raises:
        ValueError: The chain cannot hold what the policy needs; the message says what.
    """
    steps = _reachable_steps(policy, scenario)
    cycle = next((step for step in steps if isinstance(step, Cycle)), None)
    remembers = any(isinstance(step, Recall) or getattr(step, "recall", False) for step in steps)
    by_work = any(getattr(step, "rank", None) == "work" for step in steps)
    _check_supported(scenario, policy, steps, remembers, by_work)
    tables = any(isinstance(step, Lookup) for step in steps) and any(p.size > 1 for p in scenario.pools)
    by_router = policy.announce is not None or remembers or cycle is not None

    def route(system: System, state: State, router: int) -> list[Outcome]:
        for step in steps:
            if outcomes := STEPS[step.kind](system, state, router, step):
                return outcomes
        raise AssertionError("the last step of a policy always acts")

    return build_system(
        scenario,
        cut,
        route,
        announce=policy.announce and policy.announce.on(scenario),
        shares=scenario.router_shares if by_router else (1.0,),  # routers without a memory are as one
        by_age=any(isinstance(step, Take) and step.order == "oldest" for step in steps),
        memory=policy.memory if remembers else None,
        lasts=any(isinstance(step, Last) for step in steps),
        labelled=cycle is not None or tables or by_work,
        cycle=cycle,
        earnings=_earnings(scenario) if cycle is not None and cycle.weights == "rate" else (),
    )


def _check_supported(
    scenario: Scenario, policy: Policy, steps: list[Step], remembers: bool, by_work: bool
) -> None:
    """Refuse policies that need an infinite chain, or more than the state holds."""
    infinite = any(pool.buffer is None for pool in scenario.pools)
    if remembers and infinite:
        raise ValueError(
            f"{policy.name} recalls, {scenario.name} has infinite buffers: what it remembers has no limit"
        )
    if by_work and infinite:
        raise ValueError(
            f"{policy.name} ranks by 'work', {scenario.name} has infinite buffers: the departures that it "
            "looks ahead to have no limit"
        )
    if any(isinstance(step, Probe) and step.rank == "work" for step in steps):
        raise ValueError(f"{policy.name} probes by 'work': the chain supports that for Inspect only")
    if any(isinstance(step, Search) for step in steps):
        raise ValueError(
            f"{policy.name} searches by earlier answers, which the chain does not hold: only where a message "
            "costs as much as the longest wait is one answer always enough"
        )


def _probes_once(scenario: Scenario, step: Search) -> bool:
    """Tell whether `Search` probes one server only, as two messages cost any wait."""
    prices, waits = scenario.prices, [(pool.buffer or math.inf) / pool.rate for pool in scenario.pools]
    expensive = prices.wait == 0.0 or 2 * prices.message >= prices.wait * max(waits)
    return step.at_most == 1 or (prices.message > 0.0 and expensive)


def _reachable_steps(policy: Policy, scenario: Scenario) -> list[Step]:
    """Return the steps up to the first that always acts; a search of one is a probe."""
    steps: list[Step] = []
    for k, step in enumerate(policy.steps):
        pool = getattr(step, "pool", None)
        if pool is not None and pool >= len(scenario.pools):
            last = len(scenario.pools) - 1
            raise ValueError(f"steps[{k}].pool is {pool}: {scenario.name} has pools 0 to {last}")
        if isinstance(step, Lookup) and len(step.limits) != scenario.servers:
            raise ValueError(
                f"steps[{k}].limits has {len(step.limits)} servers: {scenario.name} has {scenario.servers}"
            )
        if isinstance(step, Search) and _probes_once(scenario, step):
            step = Probe(weights="rate", at_most=1)
        if not steps or not steps[-1].always_acts:
            steps.append(step)
    return steps


def _earnings(scenario: Scenario) -> tuple[int, ...]:
    """Return integers proportional to capacities, so that credits repeat exactly."""
    capacities = [pool.size * pool.rate for pool in scenario.pools]
    ratios = [Fraction(value / capacities[0]).limit_denominator(1_000_000) for value in capacities]
    for value, ratio in zip(capacities, ratios, strict=True):
        if abs(float(ratio) * capacities[0] - value) > 1e-12 * value:
            raise ValueError(
                f"round robin by rate never repeats: capacities {capacities} have no common unit"
            )
    unit = math.lcm(*(ratio.denominator for ratio in ratios))
    whole = [int(ratio * unit) for ratio in ratios]
    return tuple(value // math.gcd(*whole) for value in whole)


def events(system: System, state: State) -> Iterator[tuple[float, State, Counts]]:
    """Yield rate, next state and counts of each possible event."""
    for router, share in enumerate(system.shares):
        if share:
            for outcome in system.route(system, state, router):
                rate = system.arrival_rate * share * outcome.probability
                yield rate, *assign(system, outcome, router)
    if state.departures:  # all servers are busy, and the next departure is known
        for probability, after, counts in depart(system, state, state.departures[0]):
            yield sum(system.rates) * probability, after, counts
        return
    busy = [server for server, entry in enumerate(state.servers) if entry.queue]
    for server, count in representatives(system, state, busy):
        for probability, after, counts in depart(system, state, server):
            yield system.rates[server] * count * probability, after, counts


def assign(system: System, outcome: Outcome, router: int) -> tuple[State, Counts]:
    """Send the customer to the chosen server, where it joins the queue or is blocked."""
    server, (servers, turns, departures) = outcome.server, outcome.state
    entry, rate, buffer = servers[server], system.rates[server], system.buffers[server]
    blocked = entry.queue >= buffer
    queue = entry.queue if blocked else entry.queue + 1
    announced, records, holder = entry.announced, entry.records, -1
    if announced and system.announce is not None:
        if not system.announce.withdraw:
            announced = False  # it will announce itself again, even if a message is still out
        elif queue >= system.announce.threshold:
            announced, holder = False, next(r for r, message in enumerate(entry.messages) if message)
    if system.memory is not None and records[router]:
        length, rank, slot = records[router]
        records = replaced(records, router, (min(length + 1, buffer), rank, slot))
    after = list(servers)
    after[server] = entry._replace(queue=queue, announced=announced, records=records)
    if holder >= 0:
        delete_message(system, after, holder, server)
    removed, probes = float(holder not in (-1, router)), float(outcome.probes)
    if blocked:
        counts = (1.0, 0.0, 0.0, 0.0, 0.0, removed, probes)
    else:
        wait = expected_wait(system, outcome.state, server)
        counts = (0.0, float(entry.queue > 0), wait, wait + 1 / rate, 0.0, removed, probes)
    return canonical_state(system, tuple(after), turns, departures), counts


def expected_wait(system: System, state: State, server: int) -> float:
    """Return the mean time until all at `server` have left, given known departures."""
    queue, departures = state.servers[server].queue, state.departures
    own = [k for k, departing in enumerate(departures, 1) if departing == server]
    if 0 < queue <= len(own):
        return own[queue - 1] / sum(system.rates)
    return len(departures) / sum(system.rates) + (queue - len(own)) / system.rates[server]


def depart(system: System, state: State, server: int) -> Iterator[tuple[float, State, Counts]]:
    """Yield what a departure leads to; an available server announces itself."""
    left = state.servers[server]._replace(queue=state.servers[server].queue - 1)
    announce = system.announce
    if announce is None or left.announced or left.queue >= announce.threshold:
        yield (
            1.0,
            canonical_state(system, replaced(state.servers, server, left), state.turns, state.departures[1:]),
            NOTHING,
        )
        return
    for probability, router, probes in recipients(system, announce, state):
        messages = left.messages
        if not messages[router]:  # a second, stale message changes nothing
            newest = max(entry.messages[router] for entry in state.servers)
            messages = replaced(messages, router, newest + 1 if system.by_age else 1)
        after = replaced(state.servers, server, left._replace(announced=True, messages=messages))
        if system.lasts:
            after = tuple(set_last(list(after), router, server))
        yield (
            probability,
            canonical_state(system, after, state.turns, state.departures[1:]),
            (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, probes),
        )


def recipients(system: System, announce: Announce, state: State) -> Iterator[tuple[float, int, float]]:
    """Yield the routers that a pull-message may go to: probability, router, probes."""
    routers = range(len(system.shares))
    if announce.recipient == "uniform":
        yield from ((1 / len(routers), router, 0.0) for router in routers)
        return
    held = [sum(server.messages[router] > 0 for server in state.servers) for router in routers]
    probed = len(routers) if announce.sample is None else min(announce.sample, len(routers))
    probes = 0.0 if announce.sample is None else 2.0 * probed
    samples = list(combinations(routers, probed))
    for sample in samples:
        fewest = [router for router in sample if held[router] == min(held[other] for other in sample)]
        for router in fewest:  # ties go to the first probed, and each is as likely to be that
            yield 1 / (len(samples) * len(fewest)), router, probes
