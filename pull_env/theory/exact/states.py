"""The state of a small system: servers, and what each router knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, NamedTuple

from pull_env.policy.policy import Announce, Cycle, Memory
from pull_env.scenario.scenario import Scenario

FRESH = 1 << 30  # rank of what a router learns from the customer at hand, until `settle` numbers the ranks

Note = tuple[int, ...]  # (length, rank, slot); empty: not remembered. The higher the rank, the fresher.
Turn = tuple[int, ...]  # empty; or the next server; or, by rate, the next of each pool and their credits


class Server(NamedTuple):
    """A server, and what the routers hold and know of it.

    Free of labels, so that equal servers can be swapped.
    """

    queue: int
    announced: bool
    marks: tuple[int, ...]  # (R,) its message at each router: 0 none; else 1, or by age: 1 is the oldest
    notes: tuple[Note, ...]  # (R,) what each router remembers of it
    last: tuple[bool, ...] = ()  # (R,) whether it is the last one that announced itself to each router


class State(NamedTuple):
    """The state of a chain."""

    servers: tuple[Server, ...]  # (n,) sorted within each pool, but where routers take servers in turn
    turns: tuple[Turn, ...]  # (R,) round robin
    ahead: tuple[int, ...] = ()  # servers of the next departures in order, as far as a router looked ahead


class Outcome(NamedTuple):
    """What a step may do."""

    probability: float
    server: int
    probes: int
    state: State  # with what the router learned, before the customer joins


Serve = Callable[["System", State, int], list[Outcome]]  # the last argument is the router


@dataclass(frozen=True)
class System:
    """A scenario and a protocol, as the transitions read them.

    Attributes:
        rates: (n,) by server.
        buffers: (n,) most customers; infinite ones are cut.
        pool: (n,) the pool of each server.
        pools: (J,) the servers of each pool.
        shares: (R,) of the customers, by router.
        arrival_rate: Over all routers.
        serve: Gives the outcomes for a customer at a router.
        announce: The pull protocol.
        by_age: Whether the order of messages matters.
        memory: What routers remember; None: no step reads it.
        lasts: Whether it matters who announced itself last.
        labelled: Whether equal servers of a pool are told apart.
        cycle: The round robin that routers keep, if any.
        earnings: (J,) whole numbers in proportion to the capacities of the pools: round robin by rate.
    """

    rates: tuple[float, ...]
    buffers: tuple[int, ...]
    pool: tuple[int, ...]
    pools: tuple[range, ...]
    shares: tuple[float, ...]
    arrival_rate: float
    serve: Serve
    announce: Announce | None = None
    by_age: bool = False
    memory: Memory | None = None
    lasts: bool = False
    labelled: bool = False
    cycle: Cycle | None = None
    earnings: tuple[int, ...] = ()


def frame(scenario: Scenario, cut: tuple[int, ...], serve: Serve, **protocol: Any) -> System:
    """Return the system in which routers choose by `serve`.

    Args:
        scenario: Pools and arrivals.
        cut: (J,) where infinite buffers are cut.
        serve: Gives the outcomes for a customer at a router.
        **protocol: Other fields of `System`; by default, one router that keeps nothing.
    """
    ends = list(accumulate(pool.size for pool in scenario.pools))
    pools = tuple(range(end - pool.size, end) for pool, end in zip(scenario.pools, ends, strict=True))
    of = tuple(j for j, pool in enumerate(scenario.pools) for _ in range(pool.size))
    return System(
        rates=tuple(scenario.pools[j].rate for j in of),
        buffers=tuple(scenario.pools[j].buffer or cut[j] for j in of),
        pool=of,
        pools=pools,
        arrival_rate=scenario.total_arrival_rate,
        serve=serve,
        **{"shares": (1.0,), **protocol},
    )


def starts(system: System, most_states: int) -> dict[State, float] | None:
    """Return the distribution of the empty system at time 0.

    None if it has more than `most_states` states.

    Each server has announced itself to a random router, and each round robin starts anywhere.
    """
    R = len(system.shares)
    complete = system.memory is not None and system.memory.complete(len(system.rates))
    law: dict[tuple[Server, ...], float] = {(): 1.0}
    for pool in system.pools:
        for server in pool:
            note: Note = (0, 0, server) if complete else ()
            notes = (note,) * (R if system.memory else 0)
            after: dict[tuple[Server, ...], float] = {}
            for servers, p in law.items():
                for added, q in _announcements(system, servers):
                    known = list(servers)
                    known.append(Server(0, system.announce is not None, added, notes, (False,) * R))
                    if system.lasts:
                        known = came_last(known, next(r for r, mark in enumerate(added) if mark), server)
                    key = settle(system, tuple(known), ()).servers
                    after[key] = after.get(key, 0.0) + p * q
            law = after
            if len(law) > most_states:
                return None
    choices = [_first_turns(system, share) for share in system.shares]
    count = math.prod(len(choice) for choice in choices)
    if count * len(law) > most_states:
        return None
    turns = list(product(*choices))
    return {State(servers, turn): p / count for servers, p in law.items() for turn in turns}


def _announcements(system: System, servers: tuple[Server, ...]) -> Iterable[tuple[tuple[int, ...], float]]:
    """Return the marks that the message of one more server may make, and their law."""
    routers = range(len(system.shares))
    if system.announce is None:
        return [((), 1.0)]
    held = [sum(place.marks[router] > 0 for place in servers) for router in routers]
    marks = [count + 1 if system.by_age else 1 for count in held]
    return [(tuple(marks[r] * (r == router) for r in routers), 1 / len(routers)) for router in routers]


def _first_turns(system: System, share: float) -> list[Turn]:
    if system.cycle is None:
        return [()]
    if share == 0.0:  # a router without customers: its turn never comes
        return [(0,) * (1 if system.cycle.weights == "uniform" else 2 * len(system.pools))]
    if system.cycle.weights == "uniform":
        return [(server,) for server in range(len(system.rates))]
    firsts = product(*(range(len(pool)) for pool in system.pools))
    return [first + (0,) * len(system.pools) for first in firsts]


def kinds(system: System, state: State, servers: Iterable[int]) -> list[tuple[int, int]]:
    """Return one of each kind of interchangeable servers, with their numbers."""
    if system.labelled:
        return [(server, 1) for server in servers]
    groups: dict[tuple[int, Server], list[int]] = {}
    for server in servers:
        groups.setdefault((system.pool[server], state.servers[server]), []).append(server)
    return [(group[0], len(group)) for group in groups.values()]


def drop(system: System, servers: list[Server], router: int, server: int) -> None:
    """Take the message of `server` out of the list of `router`; `servers` is modified."""
    gone = servers[server].marks[router]
    for i, place in enumerate(servers):
        mark = place.marks[router]
        if i == server or (system.by_age and mark > gone):
            kept = 0 if i == server else mark - 1
            servers[i] = place._replace(marks=put(place.marks, router, kept))


def remember(system: System, servers: list[Server], router: int, server: int, queue: int) -> None:
    """Record the length of `server`: in its slot, a free one, or the oldest.

    The kernel resolves equal ages by the slot, so that slots are part of the state; `servers` is modified.
    """
    assert system.memory is not None
    size, by_pool = system.memory.size, system.memory.by_pool
    group = system.pools[system.pool[server]] if by_pool else range(len(servers))
    notes = {i: servers[i].notes[router] for i in group if servers[i].notes[router]}
    if server in notes:
        slot = notes[server][2]
    elif len(notes) < size:
        slot = min(set(range(size)) - {note[2] for note in notes.values()})
    else:
        oldest = min(notes, key=lambda i: notes[i][1:])
        slot = notes[oldest][2]
        servers[oldest] = servers[oldest]._replace(notes=put(servers[oldest].notes, router, ()))
    place = servers[server]
    servers[server] = place._replace(notes=put(place.notes, router, (queue, FRESH, slot)))


def came_last(servers: list[Server], router: int, server: int) -> list[Server]:
    """Return the servers after `server` announced itself to `router`."""
    return [
        place._replace(last=put(place.last, router, number == server)) for number, place in enumerate(servers)
    ]


def settle(
    system: System, servers: tuple[Server, ...], turns: tuple[Turn, ...], ahead: tuple[int, ...] = ()
) -> State:
    """Return the canonical state: ranks without gaps, servers in order."""
    if system.memory is not None:
        servers = _ranked(system, servers)
    if not system.labelled:  # servers of a pool are alike
        servers = tuple(place for pool in system.pools for place in sorted(servers[pool.start : pool.stop]))
    return State(servers, turns, ahead)


def _ranked(system: System, servers: tuple[Server, ...]) -> tuple[Server, ...]:
    """Number the ranks of each router's records from 0; one per customer."""
    for router in range(len(system.shares)):
        known = sorted({place.notes[router][1] for place in servers if place.notes[router]})
        number = {rank: k for k, rank in enumerate(known)}
        servers = tuple(
            place._replace(notes=put(place.notes, router, (note[0], number[note[1]], note[2])))
            if (note := place.notes[router])
            else place
            for place in servers
        )
    return servers


def put(values: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """Return `values` with `value` in place of the one `at` an index."""
    return (*values[:at], value, *values[at + 1 :])
