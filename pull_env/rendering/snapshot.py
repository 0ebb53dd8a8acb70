"""What pictures show: queues, messages, the last customer, the run so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.state import CALENDAR, FAULTS
from pull_env.simulation.results import measures
from pull_env.simulation.simulator import Simulator

Integers = npt.NDArray[np.integer[Any]]

LEVELS = (0, 1, 2, 3, 4, 5, 10, 20)  # classes of counts: each level reaches up to the next
LEVEL_NAMES = ("0", "1", "2", "3", "4", "5-9", "10-19", "20+")
NAMED = 4  # most probed servers that the sentence on the last customer names; of more it gives the number


def level_index(counts: Integers) -> npt.NDArray[np.intp]:
    """Return the index in `LEVELS` of each count, an array of the same shape."""
    return np.searchsorted(LEVELS, counts, side="right") - 1


def format_mean(value: float, form: str) -> str:
    """Return a mean as text; `-` for NaN."""
    return "-" if math.isnan(value) else format(value, form)


class Snapshot:
    """A simulator between two customers; its arrays are views, not copies.

    Attributes:
        scenario: The system.
        queues: (n,) customers at each server.
        closed: (n,) bool, whether a server is down or drained, and so accepts nothing.
        starts: (J + 1,) first server of each pool, and n.
        held: (R, J) pull-messages that each router holds, by pool.
        router: Router of the next customer; -1: a trace has ended.
        time: Now, in time units.
        placed: Customers assigned to servers since the start.
        wait: Mean time in queue of accepted customers, in time units; NaN without any.
        messages: Messages of all kinds per customer; NaN without any.
        cost: Cost per customer, at the prices of the scenario; NaN without any.
        last_router: Router of the last customer; -1: there was none yet.
        last_server: Server that the last customer was sent to; -1: there was none yet.
        probed: Servers probed for the last customer, in order.
        blocked: Whether the last customer was blocked.
        lost: Whether the last customer will be lost, as its server will fail first.
    """

    def __init__(self, simulator: Simulator) -> None:
        """Read the simulator; it is not changed."""
        arrays, head = simulator.arrays, simulator.arrays.head[0]
        self.scenario = simulator.scenario
        self.queues: Integers = arrays.servers["queue"]
        self.closed = _closed(simulator)
        self.starts = np.append(arrays.pools["start"], self.scenario.servers)
        self.held: Integers = arrays.lists["held"]
        self.router = int(head["router"])
        self.time = float(head["now"] * head["time_step"])
        self.placed = simulator.placed
        totals = {name: arrays.head[name] for name in arrays.head.dtype.names or ()}
        by_pool = {name: arrays.pools[None][name] for name in arrays.pools.dtype.names or ()}
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 at the start
            means = measures(self.scenario, totals, by_pool, bool(head["flags"] & CALENDAR))
        accepted = arrays.pools["accepted"].any()
        self.wait = float(means["wait"][0]) if accepted else float("nan")
        self.messages, self.cost = float(means["total"][0]), float(means["cost"][0])
        self.last_router = int(head["last_router"]) if self.placed else -1
        self.last_server = int(head["last_server"]) if self.placed else -1
        answers = int(head["probed_count"])
        self.probed: Integers = np.arange(self.scenario.servers) if answers < 0 else arrays.probed[:answers]
        self.blocked, self.lost = bool(head["blocked"]), bool(head["doomed"])
        self._wait_of_last = float(head["wait"])

    def pool_of(self, server: int) -> int:
        """Return the pool of a server."""
        return int(np.searchsorted(self.starts, server, side="right")) - 1

    def last_customer(self) -> str:
        """Describe the last customer: its router, the servers probed, its server."""
        if self.placed == 0:
            return "no customer has arrived yet"
        if self.probed.size == self.scenario.servers:
            probes = "inspected all servers"
        elif self.probed.size > NAMED:
            probes = f"probed {self.probed.size} servers"
        else:
            probes = f"probed {_listed(self.probed.tolist())}"
        end = "blocked" if self.blocked else f"wait {self._wait_of_last:.3g}"
        end += ", then lost" if self.lost else ""
        choice = f"chose {self.last_server} of pool {self.pool_of(self.last_server)}"
        return f"router {self.last_router} {probes}, {choice}: {end}"


def _closed(simulator: Simulator) -> npt.NDArray[np.bool_]:
    arrays = simulator.arrays
    if not arrays.head["flags"][0] & FAULTS:
        return np.zeros(simulator.scenario.servers, np.bool_)
    drained = arrays.conditions["open"][arrays.servers["pool"]] == 0
    closed: npt.NDArray[np.bool_] = drained | (arrays.health["period"] % 2 == 1)
    return closed


def _listed(servers: Sequence[int]) -> str:
    """Return `no server`, `server 3` or `servers 3, 1, 2`."""
    if not servers:
        return "no server"
    return f"server{'s' if len(servers) > 1 else ''} {', '.join(map(str, servers))}"
