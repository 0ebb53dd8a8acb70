"""The state of a small system: servers, and what each router knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, NamedTuple

from pull_env.policy.policy import Announce, Cycle, Memory
from pull_env.scenario.scenario import Scenario

# Rank of what a router learns from the current customer, until `canonical_state` numbers the ranks.
FRESH = 1 << 30

Record = tuple[int, ...]  # (length, rank, slot), a higher rank being fresher; empty: not remembered
Turn = tuple[int, ...]  # empty; the next server; or, by rate, the next of each pool and their credits


class Server(NamedTuple):
    """A server, and what routers hold and know of it; equal servers compare equal."""

    queue: int
    announced: bool
    messages: tuple[
        int, ...
    ]  # (R,) its message at each router: 0 none; else 1, or its position by age, 1 the oldest
    records: tuple[Record, ...]  # (R,) what each router remembers of it
    last: tuple[bool, ...] = ()  # (R,) whether it was the last to announce itself to each router


class State(NamedTuple):
    """The state of a chain."""

    servers: tuple[Server, ...]  # (n,) sorted within each pool unless `labelled`
    turns: tuple[Turn, ...]  # (R,) round robin
    departures: tuple[int, ...] = ()  # servers of the next departures, as far as routers have looked ahead


class Outcome(NamedTuple):
    """One possible result of a step."""

    probability: float
    server: int
    probes: int
    state: State  # with what the router learned, before the customer joins


Route = Callable[["System", State, int], list[Outcome]]  # the last argument is the router


@dataclass(frozen=True)
class System:
    """A scenario and a protocol, in the form that transitions need.

    Attributes:
        rates: (n,) by server.
        buffers: (n,) customers at most; infinite ones are cut.
        pool: (n,) the pool of each server.
        pools: (J,) the servers of each pool.
        shares: (R,) shares of the customers, by router.
        arrival_rate: Over all routers.
        route: Returns the outcomes for a customer at a router.
        announce: The pull protocol.
        by_age: Whether the order of messages matters.
        memory: What routers remember; None: no step reads it.
        lasts: Whether it matters which server announced itself last.
        labelled: Whether equal servers of a pool are distinguished.
        cycle: The round robin of the routers, if any.
        earnings: (J,) credits per customer in a round robin by rate, integers proportional to capacities.
    """

    rates: tuple[float, ...]
    buffers: tuple[int, ...]
    pool: tuple[int, ...]
    pools: tuple[range, ...]
    shares: tuple[float, ...]
    arrival_rate: float
    route: Route
    announce: Announce | None = None
    by_age: bool = False
    memory: Memory | None = None
    lasts: bool = False
    labelled: bool = False
    cycle: Cycle | None = None
    earnings: tuple[int, ...] = ()


def build_system(scenario: Scenario, cut: tuple[int, ...], route: Route, **protocol: Any) -> System:
    """Return the system in which routers choose by `route`.

    Args:
        scenario: Pools and arrivals.
        cut: (J,) where infinite buffers are cut.
        route: Returns the outcomes for a customer at a router.
        **protocol: Other fields of `System`; by default, one router without a memory.
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
        route=route,
        **{"shares": (1.0,), **protocol},
    )


def initial_distribution(system: System, most_states: int) -> dict[State, float] | None:
    """Return the distribution of the empty system; None if above `most_states` states.

    Each server has announced itself to a random router, and each round robin starts anywhere.
    """
    R = len(system.shares)
    complete = system.memory is not None and system.memory.complete(len(system.rates))
    distribution: dict[tuple[Server, ...], float] = {(): 1.0}
    for pool in system.pools:
        for server in pool:
            record: Record = (0, 0, server) if complete else ()
            records = (record,) * (R if system.memory else 0)
            after: dict[tuple[Server, ...], float] = {}
            for servers, p in distribution.items():
                for added, q in _announcements(system, servers):
                    extended = list(servers)
                    extended.append(Server(0, system.announce is not None, added, records, (False,) * R))
                    if system.lasts:
                        extended = set_last(
                            extended, next(r for r, message in enumerate(added) if message), server
                        )
                    key = canonical_state(system, tuple(extended), ()).servers
                    after[key] = after.get(key, 0.0) + p * q
            distribution = after
            if len(distribution) > most_states:
                return None
    choices = [_first_turns(system, share) for share in system.shares]
    count = math.prod(len(choice) for choice in choices)
    if count * len(distribution) > most_states:
        return None
    turns = list(product(*choices))
    return {State(servers, turn): p / count for servers, p in distribution.items() for turn in turns}


def _announcements(system: System, servers: tuple[Server, ...]) -> Iterable[tuple[tuple[int, ...], float]]:
    """Return where the message of one more server may be, and the probabilities."""
    routers = range(len(system.shares))
    if system.announce is None:
        return [((), 1.0)]
    held = [sum(entry.messages[router] > 0 for entry in servers) for router in routers]
    messages = [count + 1 if system.by_age else 1 for count in held]
    return [(tuple(messages[r] * (r == router) for r in routers), 1 / len(routers)) for router in routers]


def _first_turns(system: System, share: float) -> list[Turn]:
    if system.cycle is None:
        return [()]
    if share == 0.0:  # a router without customers
        return [(0,) * (1 if system.cycle.weights == "uniform" else 2 * len(system.pools))]
    if system.cycle.weights == "uniform":
        return [(server,) for server in range(len(system.rates))]
    firsts = product(*(range(len(pool)) for pool in system.pools))
    return [first + (0,) * len(system.pools) for first in firsts]


def representatives(system: System, state: State, servers: Iterable[int]) -> list[tuple[int, int]]:
    """Return one server of each kind of equals, and how many there are."""
    if system.labelled:
        return [(server, 1) for server in servers]
    groups: dict[tuple[int, Server], list[int]] = {}
    for server in servers:
        groups.setdefault((system.pool[server], state.servers[server]), []).append(server)
    return [(group[0], len(group)) for group in groups.values()]


def delete_message(system: System, servers: list[Server], router: int, server: int) -> None:
    """Delete the message of `server` at `router`; modifies `servers`."""
    deleted = servers[server].messages[router]
    for i, entry in enumerate(servers):
        message = entry.messages[router]
        if i == server or (system.by_age and message > deleted):
            moved = 0 if i == server else message - 1
            servers[i] = entry._replace(messages=replaced(entry.messages, router, moved))


def remember(system: System, servers: list[Server], router: int, server: int, queue: int) -> None:
    """Record the length of `server` in its slot, a free one, or the oldest.

    Slots are part of the state, as the kernel resolves equal ages by them. Modifies `servers`.
    """
    assert system.memory is not None
    size, by_pool = system.memory.size, system.memory.by_pool
    group = system.pools[system.pool[server]] if by_pool else range(len(servers))
    records = {i: servers[i].records[router] for i in group if servers[i].records[router]}
    if server in records:
        slot = records[server][2]
    elif len(records) < size:
        slot = min(set(range(size)) - {record[2] for record in records.values()})
    else:
        oldest = min(records, key=lambda i: records[i][1:])
        slot = records[oldest][2]
        servers[oldest] = servers[oldest]._replace(records=replaced(servers[oldest].records, router, ()))
    entry = servers[server]
    servers[server] = entry._replace(records=replaced(entry.records, router, (queue, FRESH, slot)))


def set_last(servers: list[Server], router: int, server: int) -> list[Server]:
    """Return the servers after `server` announced itself to `router`."""
    return [
        entry._replace(last=replaced(entry.last, router, number == server))
        for number, entry in enumerate(servers)
    ]


def canonical_state(
    system: System, servers: tuple[Server, ...], turns: tuple[Turn, ...], departures: tuple[int, ...] = ()
) -> State:
    """Return the state in canonical form: ranks without gaps, equal servers sorted."""
    if system.memory is not None:
        servers = _ranked(system, servers)
    if not system.labelled:  # servers of a pool are interchangeable
        servers = tuple(entry for pool in system.pools for entry in sorted(servers[pool.start : pool.stop]))
    return State(servers, turns, departures)


def _ranked(system: System, servers: tuple[Server, ...]) -> tuple[Server, ...]:
    """Number the ranks of each router's records from 0; a customer's have one rank."""
    for router in range(len(system.shares)):
        ranks = sorted({entry.records[router][1] for entry in servers if entry.records[router]})
        number = {rank: k for k, rank in enumerate(ranks)}
        servers = tuple(
            entry._replace(records=replaced(entry.records, router, (record[0], number[record[1]], record[2])))
            if (record := entry.records[router])
            else entry
            for entry in servers
        )
    return servers


def replaced(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """Return `values` with the one at `index` replaced."""
    return (*values[:index], value, *values[index + 1 :])
