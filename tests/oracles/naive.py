"""A slow twin of the simulator, meant to be obviously right: objects and lists.

It shares with the simulator only the seeding of streams, the alias tables and the feed of the calendar clock.
Contract: what a stream is drawn for, in which order, and the order of the list that a draw picks from.
"""

import math
from collections import Counter

import numpy as np

from pull_env.kernels.random import alias_columns, spawn
from tests.oracles.naive_network import decide


class Stream:
    """xoshiro256++ (Blackman and Vigna 2021); a draw gives two halves of 32 bits."""

    def __init__(self, words):
        self.words = words

    def draw(self):
        a, b, c, d = self.words
        total, last = (a + d) % 2**64, d ^ b
        self.words = [a ^ last, b ^ c ^ a, c ^ a ^ (b << 17) % 2**64, (last << 45 | last >> 19) % 2**64]
        drawn = ((total << 23 | total >> 41) + a) % 2**64
        return drawn % 2**32, drawn >> 32

    def pick(self, items):
        return items[self.draw()[0] * len(items) >> 32]


class Alias:  # picks an item in proportion to its weight (Walker 1977)
    def __init__(self, items, weights):
        self.items = items
        self.thresholds, self.aliases = (column.tolist() for column in alias_columns(np.array(weights)))

    def pick(self, half):
        column, fraction = divmod(half * len(self.items), 2**32)
        return self.items[column if fraction < self.thresholds[column] else self.aliases[column]]


class Ranking:
    """Items in blocks by ascending level; an item first swaps to the end of its block."""

    def __init__(self, items, levels):
        self.items, self.level, self.top = list(items), dict.fromkeys(items, 0), levels - 1

    def move(self, item, level):
        old, new = self.level[item], min(level, self.top)
        if new != old:
            block = [k for k, other in enumerate(self.items) if self.level[other] == old]
            here, end = self.items.index(item), block[-1 if new > old else 0]
            self.items[here], self.items[end] = self.items[end], self.items[here]
            self.level[item] = new


class Pool:
    def __init__(self, number, spec, first, levels):
        self.number, self.rate, self.buffer = number, spec.rate, spec.buffer or math.inf
        self.servers = [Server(first + k, self) for k in range(spec.size)]
        self.by_queue = Ranking(self.servers, levels)
        self.tally, self.histogram, self.since = Counter(), Counter(), 0.0


class Server:
    def __init__(self, number, pool):
        self.number, self.pool, self.queue, self.announced = number, pool, 0, False
        self.departures = []  # calendar clock: when each customer there will depart


class Router:
    def __init__(self, number, pools, servers, memory, gap):
        self.number = number
        self.slots = {pool: [] for pool in pools}  # servers whose messages it holds
        self.by_age = []  # the same servers, over all pools, the oldest message first
        shared = [[None, 0, -math.inf] for _ in range(memory.size)]
        if memory.complete(len(servers)):
            shared = [[server, 0, -math.inf] for server in servers]
        own = memory.by_pool
        self.memory = {pool: [list(entry) for entry in shared] if own else shared for pool in pools}
        self.entries = [entry for entries in self.memory.values() for entry in entries] if own else shared
        self.cycle_position, self.credit, self.last = {}, Counter(), None  # round robin; last announcement
        self.last_arrival, self.recent = 0.0, Counter(gap=gap)
        self.mean_received = dict.fromkeys(pools, 0.0)  # mean time at which messages were received
        self.answers, self.reservation = {pool: [] for pool in pools}, Counter()  # for Search

    def update_mean(self, name, value):
        self.recent[name] += (value - self.recent[name]) / 16

    def known(self, pool=None):  # entries of its memory about servers of the pool, or of all
        return [entry for entry in self.entries if entry[0] and pool in (None, entry[0].pool)]


class Naive:
    """A system with a current customer at `router`; None when the feed has ended."""

    def __init__(self, scenario, policy, seed, episode=0, workload=None, memory=None, levels=65_536):
        self.policy, self.announce, self.levels = (
            policy,
            policy.announce and policy.announce.on(scenario),
            levels,
        )
        self.streams = [Stream(words) for words in spawn(seed, episode).tolist()]
        self.arrival_stream, self.message_stream, self.policy_stream, *_ = self.streams
        self.feed, self.fed = workload and workload(np.random.SeedSequence(seed, spawn_key=(episode, 0))), []
        self.advance = self.advance_calendar if workload else self.advance_markov
        self.now, self.size, self.wait, self.blocked, self.count = 0.0, 0.0, 0.0, False, Counter()
        self.probe_time = 0.0
        rate, events = scenario.total_arrival_rate, scenario.total_arrival_rate + scenario.capacity
        self.arrival_threshold, tick = round(rate / events * 2**32), 1.0 if self.feed else 1.0 / events
        prices = scenario.prices
        self.price = 2 * prices.message / prices.wait if prices.wait else math.inf  # of a probe
        self.scenario, self.time_step = scenario, tick
        self.pools, self.servers = [], []
        for j, spec in enumerate(scenario.pools):
            self.pools.append(Pool(j, spec, len(self.servers), levels))
            self.servers += self.pools[-1].servers
        gaps = [1 / (share * rate * tick) if share else math.inf for share in scenario.router_shares]
        self.memory = memory = memory or policy.memory
        self.routers = [Router(r, self.pools, self.servers, memory, gap) for r, gap in enumerate(gaps)]
        self.by_held = Ranking(self.routers, len(self.servers) + 1)
        shares = np.cumsum([len(pool.servers) * pool.rate for pool in self.pools]) / scenario.capacity
        first = self.arrival_threshold
        self.cumulative_thresholds = [round(first + share * (2**32 - first)) for share in shares]
        self.router_alias = Alias(self.routers, scenario.router_shares)
        for server in self.servers if self.announce else []:
            self.receive(self.message_stream.pick(self.routers), server)
        for router in self.routers:
            for group in [self, *self.pools]:
                router.cycle_position[group] = self.policy_stream.pick(range(len(group.servers)))
        self.advance()

    def run(self, customers):
        for _ in range(customers):
            if self.router:
                self.probed, self.probe_time = [], 0.0  # for the current customer
                steps = decide(self) if self.policy.network else self.policy.steps
                choices = (getattr(self, step.kind)(self.router, step) for step in steps)
                self.assign(self.router, next(filter(None, choices)))  # None: cannot act
                self.advance()

    def update_areas(self, pools):
        for pool in pools:
            queues, time = [server.queue for server in pool.servers], self.now - pool.since
            pool.tally.update(area=sum(queues) * time, busy_area=sum(map(bool, queues)) * time)
            pool.since = self.now

    def advance_markov(self):
        while True:
            self.now += 1
            low, high = self.arrival_stream.draw()
            if low < self.arrival_threshold:
                return self.arrive(self.router_alias.pick(high))
            servers = self.pool_of_service(low).servers
            if servers[high * len(servers) >> 32].queue:
                self.complete_service(servers[high * len(servers) >> 32])

    def pool_of_service(self, half):
        return next(
            pool
            for pool, threshold in zip(self.pools, self.cumulative_thresholds, strict=True)
            if half < threshold
        )

    def pool_by_capacity(self, half):
        return self.pool_of_service(self.arrival_threshold + (half * (2**32 - self.arrival_threshold) >> 32))

    def advance_calendar(self):
        if not self.fed:
            columns = [column for column in self.feed.draw(4096)[:3] if column is not None]
            self.fed = list(zip(*(column.tolist() for column in columns), strict=True))
        if not self.fed:
            self.router = None
            return
        gap, self.size, *given = self.fed.pop(0)
        arrival = self.now + gap
        while self.next_event(arrival):
            pass
        self.now = arrival
        self.arrive(
            self.routers[given[0]] if given else self.router_alias.pick(self.arrival_stream.draw()[1])
        )

    def next_event(self, arrival):
        due = [(t, s.number) for s in self.servers for t in s.departures[:1] if t <= arrival]
        if due:
            self.now, number = min(due)
            self.complete_service(self.servers[number])
        return bool(due)

    def arrive(self, router):
        self.router = router
        self.count["arrivals"] += 1
        router.update_mean("gap", self.now - router.last_arrival)
        router.update_mean("empty", not router.by_age)
        router.last_arrival = self.now

    def complete_service(self, server):
        self.update_areas([server.pool])
        server.queue -= 1
        server.departures = server.departures[1:]
        server.pool.by_queue.move(server, server.queue)
        self.count["departures"] += 1
        if self.available(server) and not server.announced:
            self.count["pulls"] += 1
            self.send_announcement(self.choose_recipient(), server)

    def available(self, server):
        return self.announce and server.queue < self.announce.threshold

    def assign(self, router, server):
        self.last_router, self.last_server = router, server
        self.blocked, self.wait = server.queue >= server.pool.buffer, 0.0
        server.pool.tally["blocked"] += self.blocked
        if not self.blocked:
            self.admit(server, server.pool)
        if server.announced and not self.announce.withdraw:
            server.announced = False
        elif server.announced and server.queue >= self.announce.threshold:
            server.announced = False
            holder = next(holder for holder in self.routers if server in holder.by_age)
            self.delete(holder, server)
            self.count["removes"] += holder is not router
        self.add_assignment(router, server)

    def add_assignment(self, router, server):
        for entry in router.known(server.pool):
            if entry[0] is server:
                entry[1] = min(entry[1] + 1, server.pool.buffer)

    def admit(self, server, pool):
        self.update_areas([pool])
        queue = server.queue
        server.queue += 1
        pool.by_queue.move(server, server.queue)
        self.wait = queue * (1 / pool.rate)
        if self.feed:
            starts, service = self.plan_service(server, server.departures[-1] if queue else self.now)
            server.departures.append(starts + service)
            self.wait = starts - self.now + self.probe_time
            pool.tally.update(wait_sum=self.wait, service_sum=service, area=self.probe_time)
        pool.tally.update(accepted=1, waited=queue > 0, queue_sum=queue)
        pool.histogram[wait_bin(self.wait) if self.feed else min(queue, self.levels - 1)] += 1

    def plan_service(self, server, starts):
        return starts, self.size / server.pool.rate

    def receive(self, router, server):
        server.announced = True
        self.store(router, server)

    send_announcement = receive

    def store(self, router, server):
        router.last = server
        if server not in router.by_age:  # a repeated one changes nothing
            router.slots[server.pool].append(server)
            held = len(router.slots[server.pool])
            mean = router.mean_received[server.pool]
            router.mean_received[server.pool] = mean + (self.now - mean) / held if held > 1 else self.now
            router.by_age.append(server)
            self.by_held.move(router, len(router.by_age))

    def delete(self, router, server):
        slots = router.slots[server.pool]
        slots[slots.index(server)] = slots[-1]
        slots.pop()
        router.by_age.remove(server)
        self.by_held.move(router, len(router.by_age))

    def choose_recipient(self):
        if self.announce.recipient == "uniform":
            return self.message_stream.pick(self.routers)
        if self.announce.sample is None:
            fewest = min(len(router.by_age) for router in self.routers)
            return self.message_stream.pick([r for r in self.by_held.items if len(r.by_age) == fewest])
        probed = {}  # in order, each once
        while len(probed) < min(self.announce.sample, len(self.routers)):
            probed[self.message_stream.pick(self.routers)] = True
        self.count["probes"] += 2 * len(probed)
        return min(probed, key=lambda router: len(router.by_age))  # ties go to the first

    def take(self, router, step):
        held = [s for pool in self.pools for s in router.slots[pool] if step.pool in (None, pool.number)]
        if not held:
            return None
        if step.order == "oldest":
            server = min(held, key=router.by_age.index)
        else:
            least = max(s.pool.rate for s in held) if step.order == "fastest" else 0.0
            server = self.policy_stream.pick([s for s in held if s.pool.rate >= least])
        if not self.announce.withdraw:
            self.delete(router, server)
        self.remember(router, server, self.announce.threshold - 1)
        return server

    def recall(self, router, step):
        known = [router.known(pool) for pool in self.pools if step.pool in (None, pool.number)]
        best = [min(entries, key=lambda m: (m[1], -m[2])) for entries in known if entries]
        return min(best, key=lambda m: ((m[1] + 1) / m[0].pool.rate, -m[2]), default=[None])[0]

    def remember(self, router, server, queue):
        entries = router.memory[server.pool]
        same = [entry for entry in entries if entry[0] is server]
        entry = same[0] if same else min(entries, key=lambda entry: entry[2])  # replace the oldest
        entry[:] = server, queue, self.now

    def send(self, router, step):
        low, high = self.policy_stream.draw()
        group = self if step.pool is None else self.pools[step.pool]
        if step.weights == "rate":
            group = self.pool_by_capacity(high)
        return group.servers[low * len(group.servers) >> 32]

    def probe(self, router, step):
        probed, group = self.probed, self if step.pool is None else self.pools[step.pool]
        answers = []  # servers that gave one
        while len(probed) < (step.at_most if step.replace else min(step.at_most, len(group.servers))):
            server = self.send(router, step)
            if server in probed and not step.replace:
                continue
            probed.append(server)
            if not self.is_answered(server, step):
                continue
            answers.append(server)
            self.record_answer(router, server, server.pool)
            if step.stop_at is not None and server.queue / server.pool.rate <= step.stop_at:
                break
        merits = [self.merit(s, s.queue, step.rank) for s in answers]
        best, least = probed[0], math.inf  # without answers
        if answers:
            least = min(merits)
            best = answers[merits.index(least)]  # ties go to the first
        if step.recall:
            pool = None if step.pool is None else self.pools[step.pool]
            known = [entry for entry in router.known(pool) if entry[0] not in probed]
            remembered = [(self.merit(m[0], m[1], step.rank), -m[2], k, m[0]) for k, m in enumerate(known)]
            if remembered and (not answers or min(remembered)[0] < least):
                best = min(remembered)[3]
        for server in answers:
            self.remember(router, server, server.queue)
        return best

    def is_answered(self, server, step):
        self.count["probes"] += 2
        return True

    def search(self, router, step):
        probed, answers = self.probed, []
        while len(probed) < min(step.at_most, len(self.servers)):
            left = [pool for pool in self.pools if not set(pool.servers) <= set(probed)]
            pool = min(left, key=lambda pool: router.reservation[pool])  # ties go to the first
            if answers and min(s.queue / s.pool.rate for s in answers) <= router.reservation[pool]:
                break
            while True:
                low, high = self.policy_stream.draw()
                servers = (pool if probed else self.pool_by_capacity(high)).servers
                server = servers[low * len(servers) >> 32]
                if server not in probed:
                    break
            probed.append(server)
            if self.is_answered(server, step):
                answers.append(server)
                self.record_answer(router, server, server.pool)
                self.remember(router, server, server.queue)
        return min(answers, key=lambda s: s.queue / s.pool.rate, default=probed[0])  # ties go to the first

    def record_answer(self, router, server, pool):
        router.update_mean(("answer", pool), server.queue / pool.rate)
        router.update_mean(("idle", pool), server.queue == 0)
        router.answers[pool].append(server.queue)
        router.reservation[pool] = reservation(router.answers[pool][-16:], self.price * pool.rate) / pool.rate

    def last(self, router, step):
        return router.last

    def lookup(self, router, step):
        self.count["probes"] += 0 if step.free else 2 * len(self.servers)
        self.probed = self.servers
        index = 0
        for server, limit in zip(self.servers, step.limits, strict=True):
            index = index * (limit + 1) + min(server.queue, limit)
        return self.servers[step.servers[index]]

    def inspect(self, router, step):
        self.probed = self.servers
        self.count["probes"] += 2 * len(self.servers)
        by_queue = [server for pool in self.pools for server in pool.by_queue.items]
        busy = all(server.queue for server in self.servers)
        servers = self.servers if step.rank == "work" and busy else by_queue
        merits = {s: self.merit(s, min(s.queue, self.levels - 1), step.rank) for s in servers}
        return self.policy_stream.pick([s for s in servers if merits[s] == min(merits.values())])

    def merit(self, server, queue, rank):
        if rank == "work":
            return server.departures[-1] - self.now if server.departures else 0.0
        speed = server.pool.rate
        return {"queue": queue, "delay": (queue + 1) / speed, "queue then speed": (queue, -speed)}[rank]

    def cycle(self, router, step):
        group, total = self, 0.0
        if step.weights == "rate":  # each pool earns its capacity, the richest serves and pays the total
            for pool in self.pools:
                router.credit[pool] += len(pool.servers) * pool.rate
                total += len(pool.servers) * pool.rate
            group = max(self.pools, key=lambda pool: router.credit[pool])
            router.credit[group] -= total
        server = group.servers[router.cycle_position[group]]
        router.cycle_position[group] = (router.cycle_position[group] + 1) % len(group.servers)
        return server


def reservation(queues, price):  # s such that the mean of (s - queue)+ is the price, from above
    s, before = math.inf, len(queues) + 1
    while 0 < len(shorter := [queue for queue in queues if queue < s]) < before:
        s, before = (price * len(queues) + sum(shorter)) / len(shorter), len(shorter)
    return s


def wait_bin(wait):  # 0: no wait; else 64 equal bins an octave, octaves from 2^-31 to 2^49
    mantissa, exponent = math.frexp(wait)  # wait = mantissa 2^exponent, mantissa in [.5, 1)
    return min(max((exponent + 30) * 64 + int((mantissa - 0.5) * 128) + 1, 1), 80 * 64) if wait else 0
