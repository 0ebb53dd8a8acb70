"""The steps of a policy as functions from a state to a distribution, the twins of `kernels.steps`.

Each takes a system, a state, the router with a customer at hand, and the step's declaration. It returns the
servers that may be chosen, at what probability and after how many probes, with what the router knows
afterwards; nothing where it cannot act. Of servers that can be swapped one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pull_env.policy import Cycle, Inspect, Probe, Recall, Send, Take
from pull_env.theory.states import Outcome, State, System, drop, kinds, put, remember


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
        if system.remembers:
            remember(system, after, router, server, system.announce.threshold - 1)
        outcomes.append(Outcome(count / len(held), server, 0, State(tuple(after), state.turns)))
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
    """Return what a random draw picks from: a server, how many there are of it, and the weight of each."""
    return [(i, count, system.rates[i] if step.weights == "rate" else 1.0) for i, count in groups]


def probe(system: System, state: State, router: int, step: Probe) -> list[Outcome]:
    """Ask one server after another; orders that lead to the same are one case."""
    population = _population(system, step)
    alone = [(server, 1) for server in population]  # which servers are remembered tells equal ones apart
    law = _draws(system, step, alone if system.remembers else kinds(system, state, population))
    at_most = step.at_most if step.replace else min(step.at_most, len(population))
    cases = {
        (-1, (0,) * len(law), state): 1.0
    }  # the best so far, how many of each kind were asked, knowledge
    outcomes = []
    for number in range(1, at_most + 1):
        after: dict[tuple[int, tuple[int, ...], State], float] = {}
        for (best, asked, known), p in cases.items():
            left = [(count - gone) * weight for (_, count, weight), gone in zip(law, asked, strict=True)]
            for k, (server, _, _) in enumerate(law):
                if left[k] == 0.0:
                    continue
                probability, learned = p * left[k] / sum(left), known
                chosen = (
                    server if best < 0 else min(best, server, key=lambda i: _merit(system, state, i, step))
                )
                if system.remembers:
                    learned = _told(system, known, router, server)
                if step.stop_at is not None and _wait(system, state, server) <= step.stop_at:
                    outcomes.append(Outcome(probability, chosen, 2 * number, learned))
                    continue
                key = (chosen, asked if step.replace else put(asked, k, asked[k] + 1), learned)
                after[key] = after.get(key, 0.0) + probability
        cases = after
    return outcomes + [Outcome(p, best, 2 * at_most, known) for (best, _, known), p in cases.items()]


def _told(system: System, known: State, router: int, server: int) -> State:
    servers = list(known.servers)
    remember(system, servers, router, server, servers[server].queue)
    return State(tuple(servers), known.turns)


def _wait(system: System, state: State, server: int) -> float:
    return state.servers[server].queue / system.rates[server]


def inspect(system: System, state: State, router: int, step: Inspect) -> list[Outcome]:
    """Choose at random among the best of all servers."""
    merits = [_merit(system, state, server, step) for server in range(len(system.rates))]
    least = min(merits)
    best = [server for server, merit in enumerate(merits) if merit == least]
    probes = 2 * len(system.rates)
    return [Outcome(count / len(best), i, probes, state) for i, count in kinds(system, state, best)]


def _merit(system: System, state: State, server: int, step: Probe | Inspect) -> tuple[float, float]:
    """Return what servers are compared by: the least is best."""
    queue, rate = state.servers[server].queue, system.rates[server]
    if step.rank == "delay":
        return (queue + 1) / rate, 0.0
    return queue, -rate if step.rank == "queue then speed" else 0.0


def cycle(system: System, state: State, router: int, step: Cycle) -> list[Outcome]:
    """Choose the next in turn; by rate: the next of the richest pool, which pays for all."""
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
    return [Outcome(1.0, server, 0, State(state.servers, put(state.turns, router, tuple(after))))]


STEPS: dict[str, Callable[[System, State, int, Any], list[Outcome]]] = {
    "take": take,
    "recall": recall,
    "send": send,
    "probe": probe,
    "inspect": inspect,
    "cycle": cycle,
}
