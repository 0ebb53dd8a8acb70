"""The naive twin with slow or lost messages, failing servers, restarting routers."""

import math

from pull_env.scenario.faults import Faults, News
from tests.oracles.naive import Naive

FAILURES, SLOWNESS, RESTARTS = range(3)


class NaiveFaults(Naive):
    """Events other than departures are a list of (due, order, action, arguments)."""

    def __init__(self, scenario, policy, *args, **kwargs):
        self.news, self.faults = scenario.news or News(), scenario.faults or Faults()
        self.events, self.order, self.started, self.doomed = [], 0, False, False
        self.periods, self.closed_pools = {}, set()
        super().__init__(scenario, policy, *args, **kwargs)
        self.price += 2 * self.news.delay

    def start_faults(self):
        low, high = self.streams[4].draw()
        self.key, self.started = low + (high << 32), True
        for server in self.servers:
            server.period, server.announcement = 0, 0
            server.until = self.period_end(FAILURES, server, 0)
            self.schedule(server.until, self.switch_server, server)
            if server.announced:
                self.schedule_repeat(server.holder, server, 0)
        for router in self.routers:
            self.schedule_restart(router, 0)
        for name in ("at", "until"):
            for drain in self.faults.drains:
                if getattr(drain, name) is not None:
                    action = self.close_pool if name == "at" else self.open_pool
                    self.schedule(getattr(drain, name), action, self.pools[drain.pool])

    def schedule(self, due, action, *arguments):
        if due < math.inf:
            self.events.append((due, self.order, action, arguments))
            self.order += 1

    def advance_calendar(self):
        if not self.started:
            self.start_faults()
        super().advance_calendar()

    def next_event(self, arrival):
        departures = [
            (s.departures[0], 0, s.number, self.complete_service, (s,)) for s in self.servers if s.queue
        ]
        events = [(due, 1, order, action, arguments) for due, order, action, arguments in self.events]
        soonest = min(departures + events, key=lambda event: event[:3], default=(math.inf,))
        if soonest[0] > arrival:
            return False
        due, rank, order, action, arguments = soonest
        self.events = [event for event in self.events if not rank or event[1] != order]
        self.now = due
        action(*arguments)
        return True

    # failures and slowness

    def exponential(self, process, item, period):
        word = mix((self.key + (item.number * 3 + process) * GOLDEN) % 2**64)
        return -math.log(((mix((word + period * GOLDEN) % 2**64) >> 11) + 1) / 2**53)

    def period_end(self, process, server, period):
        """Return when a period of a server ends; odd ones are of failure, or of slowness."""
        ends = self.periods.setdefault((process, server), [])
        names = ("up", "down") if process == FAILURES else ("normal", "slow")
        spared = self.faults.pools is not None and server.pool.number not in self.faults.pools
        while len(ends) <= period:
            mean = None if spared else getattr(self.faults, names[len(ends) % 2])
            length = mean * self.exponential(process, server, len(ends)) if mean else math.inf
            ends.append((ends[-1] if ends else 0.0) + length)
        return ends[period]

    def period_at(self, process, server, time):
        period = 0
        while self.period_end(process, server, period) <= time:
            period += 1
        return period, self.period_end(process, server, period)

    def is_open(self, server):
        up = server.period % 2 == 0 and self.now < server.until
        return up and server.pool not in self.closed_pools

    def plan_service(self, server, starts):
        lost = self.faults.customers == "lost"
        service = math.inf
        if not lost or starts < server.until:
            service = self.service_duration(server, starts)
        self.doomed = lost and starts + service > server.until
        if self.doomed:
            self.count["lost_customers"] += 1
            starts = min(starts, server.until)
            service = server.until - starts
        return starts, service

    def service_duration(self, server, starts):
        now, left, tries = starts, self.size, 0
        while True:
            failures, up_until = self.period_at(FAILURES, server, now)
            slowness, slow_until = self.period_at(SLOWNESS, server, now)
            speed, end = server.pool.rate, min(up_until, slow_until)
            if slowness % 2:
                speed *= self.faults.factor
            if failures % 2 == 0:
                if left / speed <= end - now:
                    return (now - starts) + left / speed if now > starts else left / speed
                left -= speed * (end - now)
                if self.faults.customers == "lost" and end == up_until:
                    return math.inf
                if self.faults.customers == "restart" and end == up_until and tries < 1000:
                    left, tries = self.size, tries + 1
            now = end

    # their events

    def switch_server(self, server):
        server.period += 1
        server.until = self.period_end(FAILURES, server, server.period)
        self.schedule(server.until, self.switch_server, server)
        if server.period % 2:
            self.end_announcement(server)
        else:
            self.announce_if_available(server)

    def available(self, server):
        return super().available(server) and self.is_open(server)

    def announce_if_available(self, server):
        if self.available(server) and not server.announced:
            self.count["pulls"] += 1
            self.send_announcement(self.choose_recipient(), server)

    def close_pool(self, pool):
        self.closed_pools.add(pool)
        for server in pool.servers:
            if server.announced:
                self.withdraw(None, server) if self.announce.withdraw else self.end_announcement(server)

    def open_pool(self, pool):
        self.closed_pools.discard(pool)
        for server in pool.servers:
            self.announce_if_available(server)

    def schedule_restart(self, router, number):
        time = self.faults.restart and self.faults.restart * self.exponential(RESTARTS, router, number)
        self.schedule(self.now + time if time else math.inf, self.restart_router, router, number)

    def restart_router(self, router, number):
        for pool in self.pools:
            for server in router.slots[pool][::-1]:
                self.delete(router, server)
            router.recent["answer", pool] = router.recent["idle", pool] = 0.0
            router.answers[pool], router.reservation[pool] = [], 0
        router.last = None
        for entry in router.entries:
            entry[:] = entry[0] if self.memory.complete(len(self.servers)) else None, 0, -math.inf
        self.schedule_restart(router, number + 1)

    # messages

    def message_time(self):
        news, loss = self.news, round(self.news.loss * 2**32)
        random = news.law == "exponential" and news.delay > 0
        if not loss and not random:
            return news.delay
        low, high = self.streams[3].draw()
        if low < loss:
            self.count["lost_messages"] += 1
            return math.inf
        return -math.log((high + 1) / 2**32) * news.delay if random else news.delay

    def receive(self, router, server):
        server.holder = router
        super().receive(router, server)

    def send_announcement(self, router, server):
        server.announced, server.holder = True, router
        server.announcement += 1
        self.send_pull(router, server)

    def send_pull(self, router, server):
        time = self.message_time()
        if time == 0:
            self.receive_pull(router, server, server.announcement)
        elif time < math.inf:
            self.schedule(self.now + time, self.receive_pull, router, server, server.announcement)
        else:
            self.schedule_repeat(router, server, server.announcement)

    def is_current(self, router, server, number):
        return server.holder is router and server.announcement == number

    def receive_pull(self, router, server, number):
        self.store(router, server)
        if self.is_current(router, server, number):
            self.schedule_repeat(router, server, number)
        else:
            self.count["stale_messages"] += 1

    def schedule_repeat(self, router, server, number):
        self.schedule(self.now + (self.news.repeat or math.inf), self.repeat_pull, router, server, number)

    def repeat_pull(self, router, server, number):
        if self.is_current(router, server, number):
            self.count["pulls"] += 1
            self.send_pull(router, server)

    def end_announcement(self, server):
        server.announced, server.holder = False, None
        server.announcement += 1

    def withdraw(self, router, server):
        holder = server.holder
        self.end_announcement(server)
        if holder is not router:
            self.count["removes"] += 1
            time = self.message_time()
            if time == 0:
                self.receive_remove(holder, server)
            else:
                self.schedule(self.now + time, self.receive_remove, holder, server)

    def receive_remove(self, router, server):
        if server in router.by_age:
            self.delete(router, server)

    # customers

    def assign(self, router, server):
        self.last_router, self.last_server, self.doomed = router, server, False
        self.blocked = server.queue >= server.pool.buffer or not self.is_open(server)
        self.wait = 0.0
        server.pool.tally["blocked"] += self.blocked
        if not self.blocked:
            self.admit(server, server.pool)
        if self.announce and not self.announce.withdraw:
            if server.announced:
                self.end_announcement(server)
        elif self.announce:
            if server.announced and server.queue >= self.announce.threshold:
                self.withdraw(router, server)
            if server in router.by_age and server.holder is not router:
                self.delete(router, server)
        self.add_assignment(router, server)

    def is_answered(self, server, step):
        self.count["probes"] += 1
        request, time, answered = self.message_time(), self.news.answer_timeout, False
        if request < math.inf and self.is_open(server):
            self.count["probes"] += 1
            reply = self.message_time()
            answered = request + reply <= time
            time = request + reply if answered else time
        at_once = step.kind == "probe" and step.stop_at is None
        self.probe_time = max(self.probe_time, time) if at_once else self.probe_time + time
        return answered

    def lookup(self, router, step):
        if not step.free:
            self.probe_time += 2 * self.news.delay
        return super().lookup(router, step)

    def inspect(self, router, step):
        self.probe_time += 2 * self.news.delay
        servers = [server for server in self.servers if self.is_open(server)]
        if len(servers) == len(self.servers):
            return super().inspect(router, step)
        self.probed = self.servers
        self.count["probes"] += 2 * len(self.servers)
        servers = servers or self.servers
        merits = [self.merit(s, s.queue, step.rank) if self.is_open(s) else 0 for s in servers]
        return self.policy_stream.pick([s for s, m in zip(servers, merits, strict=True) if m == min(merits)])


GOLDEN = 0x9E3779B97F4A7C15


def mix(word):  # the finaliser of splitmix64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31
