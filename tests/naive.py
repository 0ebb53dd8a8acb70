"""A slow twin of the simulator, meant to be obviously right: plain objects, lists and `min`, one event at a time.

It shares with the product only the seeding of the streams, the alias tables and the feed of the calendar clock. The order
of draws from each stream is part of the contract; so is the order of lists from which a draw picks, and where the product
keeps them by swaps, so does the twin. It maintains everything always, the product only what the policy reads.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pull_env.kernels.stream import alias_columns, spawn

RECENT = 1 / 16
FEED = 4096


class Stream:
    """xoshiro256++ (Blackman and Vigna 2021); a draw of 64 bits gives two halves of 32."""

    def __init__(self, words):
        self.words = words

    def draw(self):
        a, b, c, d = self.words
        drawn = (rotated(a + d, 23) + a) % 2**64
        self.words = [a ^ d ^ b, b ^ c ^ a, c ^ a ^ (b << 17) % 2**64, rotated(d ^ b, 45)]
        return drawn % 2**32, drawn >> 32  # low, high

    def pick(self, items):
        low, _ = self.draw()
        return items[below(low, len(items))]


def rotated(word, by):
    return (word << by | word % 2**64 >> 64 - by) % 2**64


def below(half, n):
    return half * n >> 32


class Alias:
    """Picks an item in proportion to its weight (Walker 1977)."""

    def __init__(self, items, weights):
        self.items = items
        self.cuts, self.aliases = (column.tolist() for column in alias_columns(np.array(weights)))

    def pick(self, half):
        column, fraction = divmod(half * len(self.items), 2**32)
        return self.items[column if fraction < self.cuts[column] else self.aliases[column]]


class Ranking:
    """Items in blocks by ascending level; one that goes up or down a level first swaps to that end of its block."""

    def __init__(self, items, levels):
        self.items, self.level, self.top = list(items), dict.fromkeys(items, 0), levels - 1

    def move(self, item, level):
        now, new = self.level[item], min(level, self.top)
        if new != now:
            block = [other for other in self.items if self.level[other] == now]
            here, end = self.items.index(item), self.items.index(block[-1 if new > now else 0])
            self.items[here], self.items[end] = self.items[end], self.items[here]
            self.level[item] = new


@dataclass(eq=False)
class Server:
    number: int
    pool: Pool
    customers: list = field(
        default_factory=list
    )  # in order of arrival: times of departure (Markov clock: None)
    announced: bool = False

    @property
    def queue(self):
        return len(self.customers)


@dataclass(eq=False)
class Pool:
    number: int
    rate: float
    buffer: float
    servers: list = field(default_factory=list)
    accepted: int = 0
    blocked: int = 0
    waited: int = 0
    found: int = 0
    wait: float = 0.0
    service: float = 0.0
    area: float = 0.0
    busy_area: float = 0.0
    since: float = 0.0
    law: Counter = field(default_factory=Counter)

    @property
    def inside(self):
        return sum(server.queue for server in self.servers)

    @property
    def busy(self):
        return sum(server.queue > 0 for server in self.servers)


@dataclass(eq=False)
class Router:
    """What a router holds and knows, by pool where it says so."""

    number: int
    gap: float
    slots: dict  # by pool: servers whose messages it holds; the last one fills the gap of one that goes
    by_age: list = field(default_factory=list)  # the same servers, the oldest message first
    memory: dict = field(default_factory=dict)  # by pool: [server, queue, when]
    turn: int = 0  # uniform round robin: the next server
    turns: dict = field(default_factory=dict)  # weighted round robin, by pool: the next server of the pool
    credit: Counter = field(default_factory=Counter)  # by pool
    seen: float = 0.0
    empty: float = 0.0
    answer: Counter = field(default_factory=Counter)  # by pool
    idle: Counter = field(default_factory=Counter)  # by pool


class Naive:
    """One system, always with a customer at hand at `router`, until the feed ends.

    `levels` is the number of queue lengths told apart, `block` the number of customers asked of a feed at a time.
    """

    def __init__(self, scenario, policy, seed, episode=0, workload=None, memory=8, levels=65_536):
        self.policy, self.announce, self.memory, self.levels = policy, policy.announce, memory, levels
        self.arriving, self.serving, self.messaging, self.deciding = map(
            Stream, spawn(seed, episode).tolist()
        )
        self.pools, self.servers = [], []
        for j, spec in enumerate(scenario.pools):
            pool = Pool(j, spec.rate, math.inf if spec.buffer is None else spec.buffer)
            pool.servers = [Server(len(self.servers) + k, pool) for k in range(spec.size)]
            self.pools.append(pool)
            self.servers += pool.servers
        rate, capacity = scenario.total_arrival_rate, scenario.capacity
        tick = 1.0 / (rate + capacity) if workload is None else 1.0
        self.arrival_cut = round(rate / (rate + capacity) * 2**32)
        self.routers = [
            Router(r, scenario.routers / (rate * tick), {pool: [] for pool in self.pools})
            for r in range(scenario.routers)
        ]
        self.pool_alias = Alias(self.pools, [len(pool.servers) * pool.rate for pool in self.pools])
        self.router_alias = Alias(self.routers, scenario.router_shares)
        self.by_queue = {pool: Ranking(pool.servers, levels) for pool in self.pools}
        self.by_held = Ranking(self.routers, len(self.servers) + 1)
        self.feed = workload and workload(np.random.SeedSequence(seed, spawn_key=(episode, 0)))
        self.fed = []
        self.now = self.size = self.wait = 0.0
        self.lost = False
        self.arrivals = self.departures = self.pulls = self.removes = self.probes = 0
        self.start()

    def start(self):
        if self.announce:
            for server in self.servers:
                self.hold(self.messaging.pick(self.routers), server)
        for router in self.routers:
            router.turn = self.deciding.pick(range(len(self.servers)))
            for pool in self.pools:
                router.turns[pool] = self.deciding.pick(range(len(pool.servers)))
                router.memory[pool] = []
        self.advance()

    def run(self, customers):
        placed = 0
        while placed < customers and self.router is not None:
            self.place()
            self.advance()
            placed += 1
        self.settle(self.pools)
        return placed

    def place(self):
        for step in self.policy.steps:
            server = getattr(self, step.kind)(self.router, step)
            if server is not None:
                self.assign(self.router, server)
                return

    # the clocks

    def advance(self):
        if self.feed:
            self.advance_calendar()
        else:
            self.advance_markov()

    def advance_markov(self):
        while True:
            self.now += 1
            low, high = self.arriving.draw()
            if low < self.arrival_cut:
                self.arrive(self.router_alias.pick(high))
                return
            low, high = self.serving.draw()
            servers = self.pool_alias.pick(high).servers
            server = servers[below(low, len(servers))]
            if server.customers:
                self.depart(server)

    def advance_calendar(self):
        if not self.fed:
            gaps, sizes = self.feed.draw(FEED)
            self.fed = list(zip(gaps.tolist(), sizes.tolist(), strict=True))
        if not self.fed:
            self.router = None
            return
        gap, self.size = self.fed.pop(0)
        arrival = self.now + gap
        while due := [(server.customers[0], server.number) for server in self.servers if server.customers]:
            first, number = min(due)
            if first > arrival:
                break
            self.now = first
            self.depart(self.servers[number])
        self.now = arrival
        _, high = self.arriving.draw()
        self.arrive(self.router_alias.pick(high))
        if not self.fed:
            self.settle(
                self.pools
            )  # areas are rounded where they are settled, and that is between two feeds as well

    def arrive(self, router):
        self.router = router
        self.arrivals += 1
        router.gap += RECENT * (self.now - router.seen - router.gap)
        router.seen = self.now
        router.empty += RECENT * ((not router.by_age) - router.empty)

    def depart(self, server):
        self.settle([server.pool])
        server.customers.pop(0)
        self.by_queue[server.pool].move(server, server.queue)
        self.departures += 1
        if self.announce and server.queue < self.announce.threshold and not server.announced:
            self.pulls += 1
            self.hold(self.recipient(), server)

    def assign(self, router, server):
        pool, found = server.pool, server.queue
        self.lost, self.wait = found >= pool.buffer, 0.0
        if self.lost:
            pool.blocked += 1
        else:
            self.settle([pool])
            self.admit(server)
            self.by_queue[pool].move(server, server.queue)
            pool.accepted += 1
            pool.waited += found > 0
            pool.found += found
        if server.announced and not self.announce.withdraw:
            server.announced = False
        elif server.announced and server.queue >= self.announce.threshold:
            server.announced = False
            holder = next(holder for holder in self.routers if server in holder.by_age)
            self.drop(holder, server)
            self.removes += holder is not router
        for entry in router.memory[pool]:
            if entry[0] is server:
                entry[1] = min(entry[1] + 1, pool.buffer)

    def admit(self, server):
        pool, found = server.pool, server.queue
        if self.feed:
            service = self.size / pool.rate
            start = server.customers[-1] if found else self.now
            server.customers.append(start + service)
            self.wait = start - self.now
            pool.wait += self.wait
            pool.service += service
            pool.law[wait_bin(self.wait)] += 1
        else:
            server.customers.append(None)
            self.wait = found / pool.rate
            pool.law[min(found, self.levels - 1)] += 1

    def settle(self, pools):
        for pool in pools:
            pool.area += pool.inside * (self.now - pool.since)
            pool.busy_area += pool.busy * (self.now - pool.since)
            pool.since = self.now

    # pull-messages

    def hold(self, router, server):
        server.announced = True
        if server not in router.by_age:
            router.slots[server.pool].append(server)
            router.by_age.append(server)
            self.by_held.move(router, len(router.by_age))

    def drop(self, router, server):
        slots = router.slots[server.pool]
        slots[slots.index(server)] = slots[-1]
        slots.pop()
        router.by_age.remove(server)
        self.by_held.move(router, len(router.by_age))

    def recipient(self):
        if self.announce.recipient == "uniform":
            return self.messaging.pick(self.routers)
        if self.announce.sample is None:
            fewest = min(len(router.by_age) for router in self.routers)
            return self.messaging.pick([r for r in self.by_held.items if len(r.by_age) == fewest])
        sample = []
        while len(sample) < min(self.announce.sample, len(self.routers)):
            router = self.messaging.pick(self.routers)
            if router not in sample:
                sample.append(router)
                self.probes += 2
        return min(sample, key=lambda router: len(router.by_age))  # the first of equals

    # the steps

    def take(self, router, step):
        held = [s for pool in self.pools for s in router.slots[pool] if step.pool in (None, pool.number)]
        if not held:
            return None
        if step.order == "oldest":
            server = next(server for server in router.by_age if server in held)
        else:
            fastest = max(server.pool.rate for server in held)
            server = self.deciding.pick([s for s in held if step.order == "random" or s.pool.rate == fastest])
        if not self.announce.withdraw:
            self.drop(router, server)
        self.remember(router, server, self.announce.threshold - 1)
        return server

    def recall(self, router, step):
        known = [router.memory[pool] for pool in self.pools if step.pool in (None, pool.number)]
        best = [min(entries, key=lambda entry: (entry[1], -entry[2])) for entries in known if entries]
        best.sort(key=lambda entry: ((entry[1] + 1) / entry[0].pool.rate, -entry[2]))
        return best[0][0] if best else None

    def remember(self, router, server, queue):
        entries, fresh = router.memory[server.pool], [server, queue, self.now]
        same = [k for k, entry in enumerate(entries) if entry[0] is server]
        if not same and len(entries) < self.memory:
            entries.append(fresh)
        else:
            oldest = min(range(len(entries)), key=lambda k: entries[k][2])
            entries[same[0] if same else oldest] = fresh

    def send(self, router, step):
        low, high = self.deciding.draw()
        servers = self.servers
        if step.pool is not None:
            servers = self.pools[step.pool].servers
        elif step.weights == "rate":
            servers = self.pool_alias.pick(high).servers
        return servers[below(low, len(servers))]

    def probe(self, router, step):
        population = len(self.servers if step.pool is None else self.pools[step.pool].servers)
        asked = []
        while len(asked) < (step.at_most if step.replace else min(step.at_most, population)):
            server = self.send(router, step)
            if server in asked and not step.replace:
                continue
            asked.append(server)
            self.probes += 2
            promised = server.queue / server.pool.rate
            self.remember(router, server, server.queue)
            router.answer[server.pool] += RECENT * (promised - router.answer[server.pool])
            router.idle[server.pool] += RECENT * ((server.queue == 0) - router.idle[server.pool])
            if step.stop_at is not None and promised <= step.stop_at:
                break
        return min(
            asked, key=lambda server: self.merit(server, server.queue, step.rank)
        )  # the first of equals

    def inspect(self, router, step):
        self.probes += 2 * len(self.servers)
        servers = self.servers
        if step.rank != "work":
            servers = [server for pool in self.pools for server in self.by_queue[pool].items]
        merits = [self.merit(server, min(server.queue, self.levels - 1), step.rank) for server in servers]
        best = [server for server, merit in zip(servers, merits, strict=True) if merit == min(merits)]
        return self.deciding.pick(best)

    def merit(self, server, queue, rank):
        if rank == "work":
            return server.customers[-1] - self.now if server.customers else 0.0
        rate = server.pool.rate
        return {"queue": queue, "delay": (queue + 1) / rate, "queue then speed": (queue, -rate)}[rank]

    def cycle(self, router, step):
        if step.weights == "uniform":
            server = self.servers[router.turn]
            router.turn = (router.turn + 1) % len(self.servers)
            return server
        total = 0.0
        for pool in self.pools:
            router.credit[pool] += len(pool.servers) * pool.rate
            total += len(pool.servers) * pool.rate
        richest = max(self.pools, key=lambda pool: router.credit[pool])
        router.credit[richest] -= total
        server = richest.servers[router.turns[richest]]
        router.turns[richest] = (router.turns[richest] + 1) % len(richest.servers)
        return server


def wait_bin(wait):
    """Bin 0: no wait; then 64 equal bins for each octave from 2^-31 up; waits beyond either end go to the last bin there."""
    if wait == 0:
        return 0
    mantissa, exponent = math.frexp(wait)  # wait = mantissa * 2^exponent, mantissa in [.5, 1)
    return min(max((exponent + 30) * 64 + int((mantissa - 0.5) * 128) + 1, 1), 80 * 64)
