"""The steps of a policy as functions from a state to a distribution.

They are the twins of the compiled steps.

Each takes a system, a state, the router with a customer at hand, and the step's declaration. It returns the
servers that may be chosen, at what probability and after how many probes, with what the router knows
afterwards; nothing where it cannot act. Of servers that can be swapped one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pull_env.policy.policy import Cycle, Inspect, Last, Lookup, Probe, Recall, Send, Take
from pull_env.theory.exact.states import Outcome, State, System, drop, kinds, put, remember


def take(system: System, state: State, router: int, step: Take) -> list[Outcome]:
    """Choose among the servers whose message the router holds."""
    assert system.announce is not None
    marks = {i: server.marks[router] for i, server in enumerate(state.servers) if server.marks[router]}
    held = [i for i in marks if step.pool in (None, system.pool[i])]
    if held and step.order == "oldest":
        held = [min(held, key=marks.__getitem__)]
    elif held and step.order == "fastest":
        top = max(system.rates[i] for i in held)
        held = [i for i in held if system.rates[i] == top]
    outcomes = []
    for server, count in kinds(system, state, held):
        after = list(state.servers)
        if not system.announce.withdraw:  # else it is used up when the server ceases to be available
            drop(system, after, router, server)
        if system.memory is not None:
            remember(system, after, router, server, system.announce.threshold - 1)
        outcomes.append(Outcome(count / len(held), server, 0, state._replace(servers=tuple(after))))
    return outcomes


def recall(system: System, state: State, router: int, step: Recall) -> list[Outcome]:
    """Choose the best server remembered."""
    best = []
    for j, pool in enumerate(system.pools):
        known = [(state.servers[i].notes[router], i) for i in pool if step.pool in (None, j)]
        ranked = [(note[0], -note[1], note[2], i) for note, i in known if note]
        if ranked:
            length, age, _, server = min(ranked)
            best.append(((length + 1) / system.rates[server], age, j, server))
    return [Outcome(1.0, min(best)[-1], 0, state)] if best else []


def send(system: System, state: State, router: int, step: Send) -> list[Outcome]:
    """Choose blindly."""
    law = _draws(system, step, kinds(system, state, _population(system, step)))
    total = sum(count * weight for _, count, weight in law)
    return [Outcome(count * weight / total, server, 0, state) for server, count, weight in law]


def _population(system: System, step: Send | Probe) -> range:
    return range(len(system.rates)) if step.pool is None else system.pools[step.pool]


def _draws(system: System, step: Send | Probe, groups: list[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return what a random draw picks from: servers, numbers and weights."""
    return [(i, count, system.rates[i] if step.weights == "rate" else 1.0) for i, count in groups]


def probe(system: System, state: State, router: int, step: Probe) -> list[Outcome]:
    """Ask one server after another; orders that lead to the same are one case."""
    population, in_order = _population(system, step), system.memory is not None
    alone = [(server, 1) for server in population]  # which servers are remembered tells equal ones apart
    law = _draws(system, step, alone if in_order else kinds(system, state, population))
    at_most = step.at_most if step.replace else min(step.at_most, len(population))
    cases: dict[tuple[int, tuple[int, ...]], float] = {(-1, ()): 1.0}  # the best so far, and those asked
    outcomes = []
    for number in range(1, at_most + 1):
        after: dict[tuple[int, tuple[int, ...]], float] = {}
        for (best, asked), p in cases.items():
            gone = () if step.replace else asked
            left = [(count - gone.count(server)) * weight for server, count, weight in law]
            for (server, _, _), chance in zip(law, left, strict=True):
                if chance == 0.0:
                    continue
                probability, sequence = p * chance / sum(left), (*asked, server)
                chosen = (
                    server if best < 0 else min(best, server, key=lambda i: _merit(system, state, i, step))
                )
                stops = step.stop_at is not None and _wait(system, state, server) <= step.stop_at
                if stops or number == at_most:
                    server, learned = _told(system, state, router, step, chosen, sequence)
                    outcomes.append(Outcome(probability, server, 2 * number, learned))
                    continue
                key = (chosen, sequence if in_order else tuple(sorted(sequence)))
                after[key] = after.get(key, 0.0) + probability
        cases = after
    return outcomes


def _told(
    system: System, state: State, router: int, step: Probe, best: int, asked: tuple[int, ...]
) -> tuple[int, State]:
    """Return the server chosen from all answers, and the new state.

    The state remembers the answers.
    """
    if system.memory is None:
        return best, state
    if step.recall:
        best = _better_remembered(system, state, router, step, best, asked)
    servers = list(state.servers)
    for server in asked:
        remember(system, servers, router, server, servers[server].queue)
    return best, state._replace(servers=tuple(servers))


def _better_remembered(
    system: System, state: State, router: int, step: Probe, best: int, asked: tuple[int, ...]
) -> int:
    """Return the best remembered server if it beats `best` of those probed.

    Ties go to the freshest.
    """
    assert system.memory is not None
    rivals = []
    for server in set(_population(system, step)) - set(asked):
        if note := state.servers[server].notes[router]:
            length, rank, slot = note
            group = system.pool[server] if system.memory.by_pool else 0
            rivals.append((_value(system, server, length, step), -rank, group, slot, server))
    return min(rivals)[-1] if rivals and min(rivals)[0] < _merit(system, state, best, step) else best


def _wait(system: System, state: State, server: int) -> float:
    return state.servers[server].queue / system.rates[server]


def inspect(system: System, state: State, router: int, step: Inspect) -> list[Outcome]:
    """Choose at random among the best of all servers."""
    if step.rank == "work":
        return _least_work(system, state)
    merits = [_merit(system, state, server, step) for server in range(len(system.rates))]
    least = min(merits)
    best = [server for server, merit in enumerate(merits) if merit == least]
    probes = 2 * len(system.rates)
    return [Outcome(count / len(best), i, probes, state) for i, count in kinds(system, state, best)]


def _least_work(system: System, state: State) -> list[Outcome]:
    """Choose a server that is idle, or else the one that would be the first to be so.

    Service is exponential, and none idles until then: each of the next departures is at server i with
    probability mu_i / sum mu, whenever it comes. They are drawn as far as it takes, and kept in the state.
    """
    n = len(system.rates)
    idle = [server for server, place in enumerate(state.servers) if not place.queue]
    if idle:
        return [Outcome(1 / len(idle), server, 2 * n, state) for server in idle]
    outcomes, cases = [], {state.ahead: 1.0}
    while cases:
        longer: dict[tuple[int, ...], float] = {}
        for ahead, p in cases.items():
            first = next((i for i in range(n) if ahead.count(i) >= state.servers[i].queue), None)
            if first is not None:
                outcomes.append(Outcome(p, first, 2 * n, state._replace(ahead=ahead)))
                continue
            longer |= {(*ahead, i): p * rate / sum(system.rates) for i, rate in enumerate(system.rates)}
        cases = longer
    return outcomes


def _merit(system: System, state: State, server: int, step: Probe | Inspect) -> tuple[float, float]:
    """Return what servers are compared by: the least is best."""
    return _value(system, server, state.servers[server].queue, step)


def _value(system: System, server: int, queue: int, step: Probe | Inspect) -> tuple[float, float]:
    """Return what a server of `queue` customers is compared by."""
    rate = system.rates[server]
    if step.rank == "delay":
        return (queue + 1) / rate, 0.0
    return queue, -rate if step.rank == "queue then speed" else 0.0


def cycle(system: System, state: State, router: int, step: Cycle) -> list[Outcome]:
    """Choose the next server in turn.

    By rate: the next of the richest pool, which pays for all.
    """
    turn, pools = state.turns[router], system.pools
    if step.weights == "uniform":
        server, after = turn[0], [(turn[0] + 1) % len(system.rates)]
    else:
        credit = [have + earned for have, earned in zip(turn[len(pools) :], system.earnings, strict=True)]
        richest = credit.index(max(credit))
        credit[richest] -= sum(system.earnings)
        after = [*turn[: len(pools)], *credit]
        server = pools[richest][after[richest]]
        after[richest] = (after[richest] + 1) % len(pools[richest])
    return [Outcome(1.0, server, 0, state._replace(turns=put(state.turns, router, tuple(after))))]


def last(system: System, state: State, router: int, step: Last) -> list[Outcome]:
    """Choose the server that announced itself last."""
    found = [server for server, place in enumerate(state.servers) if place.last[router]]
    return [Outcome(1.0, server, 0, state) for server in found]


def lookup(system: System, state: State, router: int, step: Lookup) -> list[Outcome]:
    """Choose by the table."""
    at = 0
    for place, limit in zip(state.servers, step.limits, strict=True):
        at = at * (limit + 1) + min(place.queue, limit)
    return [Outcome(1.0, step.servers[at], 0 if step.free else 2 * len(state.servers), state)]


STEPS: dict[str, Callable[[System, State, int, Any], list[Outcome]]] = {
    "take": take,
    "recall": recall,
    "send": send,
    "probe": probe,
    "inspect": inspect,
    "cycle": cycle,
    "last": last,
    "lookup": lookup,
}
