"""The shorter of two queues in Cimba.

Its compiler reads the annotations of a module's classes.
"""

from __future__ import annotations

import cimba as cb


class Server(cb.Model):
    """A server and its queue: the arrival times of its customers."""

    mean: cb.Param[float]
    first: cb.Param[float]  # time from which customers count
    last: cb.Param[float]  # time until which they count
    queue: cb.Store[float] = cb.Store()
    length: int = 0
    served: cb.Output[int]
    total: cb.Output[float]

    @cb.on_start
    def clear(self) -> None:
        """Set the counts to 0."""
        self.served = 0
        self.total = 0.0

    @cb.process
    def serve(self) -> None:
        """Serve one customer after another."""
        while True:
            arrived = self.queue.get()
            cb.hold(cb.random.exponential(self.mean))
            self.length -= 1
            if self.first <= arrived < self.last:
                self.served += 1
                self.total += cb.now() - arrived


class Router(cb.Model):
    """Sends every customer to the shorter queue of two random servers."""

    gap: cb.Param[float]  # mean time between arrivals
    servers: list[Server]

    @cb.process
    def route(self) -> None:
        """Route one customer after another."""
        n = len(self.servers)
        while True:
            cb.hold(cb.random.exponential(self.gap))
            best = cb.random.dice(0, n - 1)
            other = cb.random.dice(0, n - 2)
            if other >= best:
                other += 1
            if self.servers[other].length < self.servers[best].length:
                best = other
            self.servers[best].length += 1
            self.servers[best].queue.put(cb.now())


def mean_response(rates: list[float], arrival_rate: float, customers: int, margin: int, seed: int) -> float:
    """Return the mean response while `customers` arrive on average.

    `margin` of them at either end are not counted.
    """
    router = Router()
    router.gap = 1 / arrival_rate
    servers = []
    for rate in rates:
        server = Server()
        server.mean = 1 / rate
        server.first, server.last = margin / arrival_rate, (customers - margin) / arrival_rate
        servers.append(server)
    router.servers = servers
    window = cb.Window(duration=customers / arrival_rate)
    results = cb.Experiment(router, window=window, seed=seed).run(workers=1)
    served = sum(int(results[server].served.values.sum()) for server in servers)
    return sum(float(results[server].total.values.sum()) for server in servers) / served
