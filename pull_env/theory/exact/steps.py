"""The steps of a policy as functions from a state to a distribution of outcomes.

They restate the compiled steps. Each takes a system, a state, the router of the current customer, and the
step. It returns the servers that may be chosen, with probabilities, probes, and what the router knows
afterwards; nothing if it cannot act. One of several interchangeable servers represents them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pull_env.policy.policy import Cycle, Inspect, Last, Lookup, Probe, Recall, Send, Take
from pull_env.theory.exact.states import (
    Outcome,
    State,
    System,
    delete_message,
    remember,
    replaced,
    representatives,
)


def take(system: System, state: State, router: int, step: Take) -> list[Outcome]:
    """Choose among the servers whose message the router holds."""
    assert system.announce is not None
    messages = {
        i: server.messages[router] for i, server in enumerate(state.servers) if server.messages[router]
    }
    held = [i for i in messages if step.pool in (None, system.pool[i])]
    if held and step.order == "oldest":
        held = [min(held, key=messages.__getitem__)]
    elif held and step.order == "fastest":
        top = max(system.rates[i] for i in held)
        held = [i for i in held if system.rates[i] == top]
    outcomes = []
    for server, count in representatives(system, state, held):
        after = list(state.servers)
        if not system.announce.withdraw:  # else it is withdrawn when the server ceases to be available
            delete_message(system, after, router, server)
        if system.memory is not None:
            remember(system, after, router, server, system.announce.threshold - 1)
        outcomes.append(Outcome(count / len(held), server, 0, state._replace(servers=tuple(after))))
    return outcomes


def recall(system: System, state: State, router: int, step: Recall) -> list[Outcome]:
    """Choose the best remembered server."""
    best = []
    for j, pool in enumerate(system.pools):
        known = [(state.servers[i].records[router], i) for i in pool if step.pool in (None, j)]
        ranked = [(record[0], -record[1], record[2], i) for record, i in known if record]
        if ranked:
            length, age, _, server = min(ranked)
            best.append(((length + 1) / system.rates[server], age, j, server))
    return [Outcome(1.0, min(best)[-1], 0, state)] if best else []


def send(system: System, state: State, router: int, step: Send) -> list[Outcome]:
    """Choose at random, without information."""
    draws = _draws(system, step, representatives(system, state, _population(system, step)))
    total = sum(count * weight for _, count, weight in draws)
    return [Outcome(count * weight / total, server, 0, state) for server, count, weight in draws]


def _population(system: System, step: Send | Probe) -> range:
    return range(len(system.rates)) if step.pool is None else system.pools[step.pool]


def _draws(system: System, step: Send | Probe, groups: list[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return what is drawn from: servers, how many there are of each, their weights."""
    return [(i, count, system.rates[i] if step.weights == "rate" else 1.0) for i, count in groups]


def probe(system: System, state: State, router: int, step: Probe) -> list[Outcome]:
    """Probe one server after another; equivalent orders are one case."""
    population, in_order = _population(system, step), system.memory is not None
    alone = [(server, 1) for server in population]  # as memory distinguishes equal servers
    draws = _draws(system, step, alone if in_order else representatives(system, state, population))
    at_most = step.at_most if step.replace else min(step.at_most, len(population))
    cases: dict[tuple[int, tuple[int, ...]], float] = {(-1, ()): 1.0}  # the best so far, and those probed
    outcomes = []
    for number in range(1, at_most + 1):
        after: dict[tuple[int, tuple[int, ...]], float] = {}
        for (best, probed), p in cases.items():
            gone = () if step.replace else probed
            left = [(count - gone.count(server)) * weight for server, count, weight in draws]
            for (server, _, _), chance in zip(draws, left, strict=True):
                if chance == 0.0:
                    continue
                probability, sequence = p * chance / sum(left), (*probed, server)
                chosen = (
                    server if best < 0 else min(best, server, key=lambda i: _rank_key(system, state, i, step))
                )
                stops = step.stop_at is not None and _wait(system, state, server) <= step.stop_at
                if stops or number == at_most:
                    server, learned = _choose_from_answers(system, state, router, step, chosen, sequence)
                    outcomes.append(Outcome(probability, server, 2 * number, learned))
                    continue
                key = (chosen, sequence if in_order else tuple(sorted(sequence)))
                after[key] = after.get(key, 0.0) + probability
        cases = after
    return outcomes


def _choose_from_answers(
    system: System, state: State, router: int, step: Probe, best: int, probed: tuple[int, ...]
) -> tuple[int, State]:
    """Return the server chosen after all answers, and the state that remembers them."""
    if system.memory is None:
        return best, state
    if step.recall:
        best = _better_remembered(system, state, router, step, best, probed)
    servers = list(state.servers)
    for server in probed:
        remember(system, servers, router, server, servers[server].queue)
    return best, state._replace(servers=tuple(servers))


def _better_remembered(
    system: System, state: State, router: int, step: Probe, best: int, probed: tuple[int, ...]
) -> int:
    """Return the best remembered server, ties to the freshest, if it beats `best`."""
    assert system.memory is not None
    candidates = []
    for server in set(_population(system, step)) - set(probed):
        if record := state.servers[server].records[router]:
            length, rank, slot = record
            group = system.pool[server] if system.memory.by_pool else 0
            candidates.append((_rank_key_at(system, server, length, step), -rank, group, slot, server))
    return (
        min(candidates)[-1]
        if candidates and min(candidates)[0] < _rank_key(system, state, best, step)
        else best
    )


def _wait(system: System, state: State, server: int) -> float:
    return state.servers[server].queue / system.rates[server]


def inspect(system: System, state: State, router: int, step: Inspect) -> list[Outcome]:
    """Choose at random among the best of all servers."""
    if step.rank == "work":
        return _least_work(system, state)
    keys = [_rank_key(system, state, server, step) for server in range(len(system.rates))]
    least = min(keys)
    best = [server for server, key in enumerate(keys) if key == least]
    probes = 2 * len(system.rates)
    return [Outcome(count / len(best), i, probes, state) for i, count in representatives(system, state, best)]


def _least_work(system: System, state: State) -> list[Outcome]:
    """Choose an idle server, or else the one that would be idle first.

    As service is exponential and no server is idle until then, each of the next departures is at server i
    with probability mu_i / sum mu. They are drawn as far as needed, and kept in the state.
    """
    n = len(system.rates)
    idle = [server for server, entry in enumerate(state.servers) if not entry.queue]
    if idle:
        return [Outcome(1 / len(idle), server, 2 * n, state) for server in idle]
    outcomes, cases = [], {state.departures: 1.0}
    while cases:
        longer: dict[tuple[int, ...], float] = {}
        for departures, p in cases.items():
            first = next((i for i in range(n) if departures.count(i) >= state.servers[i].queue), None)
            if first is not None:
                outcomes.append(Outcome(p, first, 2 * n, state._replace(departures=departures)))
                continue
            longer |= {(*departures, i): p * rate / sum(system.rates) for i, rate in enumerate(system.rates)}
        cases = longer
    return outcomes


def _rank_key(system: System, state: State, server: int, step: Probe | Inspect) -> tuple[float, float]:
    """Return the key by which servers are ranked: the least is best."""
    return _rank_key_at(system, server, state.servers[server].queue, step)


def _rank_key_at(system: System, server: int, queue: int, step: Probe | Inspect) -> tuple[float, float]:
    """Return the key of a server with `queue` customers."""
    rate = system.rates[server]
    if step.rank == "delay":
        return (queue + 1) / rate, 0.0
    return queue, -rate if step.rank == "queue then speed" else 0.0


def cycle(system: System, state: State, router: int, step: Cycle) -> list[Outcome]:
    """Choose the next server in turn; by rate, the next of the pool with most credit."""
    turn, pools = state.turns[router], system.pools
    if step.weights == "uniform":
        server, after = turn[0], [(turn[0] + 1) % len(system.rates)]
    else:
        credit = [held + earned for held, earned in zip(turn[len(pools) :], system.earnings, strict=True)]
        richest = credit.index(max(credit))
        credit[richest] -= sum(system.earnings)
        after = [*turn[: len(pools)], *credit]
        server = pools[richest][after[richest]]
        after[richest] = (after[richest] + 1) % len(pools[richest])
    return [Outcome(1.0, server, 0, state._replace(turns=replaced(state.turns, router, tuple(after))))]


def last(system: System, state: State, router: int, step: Last) -> list[Outcome]:
    """Choose the server that announced itself last."""
    latest = [server for server, entry in enumerate(state.servers) if entry.last[router]]
    return [Outcome(1.0, server, 0, state) for server in latest]


def lookup(system: System, state: State, router: int, step: Lookup) -> list[Outcome]:
    """Choose by the table."""
    index = 0
    for entry, limit in zip(state.servers, step.limits, strict=True):
        index = index * (limit + 1) + min(entry.queue, limit)
    return [Outcome(1.0, step.servers[index], 0 if step.free else 2 * len(state.servers), state)]


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
