"""What the pictures show of a simulator: its queues and messages, the last customer, the run so far."""

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

LEVELS = (0, 1, 2, 3, 4, 5, 10, 20)  # counts are told apart so far: each level reaches up to the next
LEVEL_NAMES = ("0", "1", "2", "3", "4", "5-9", "10-19", "20+")
NAMED = 4  # servers asked that the sentence on the last customer names; of more it gives the number


def level(counts: Integers) -> npt.NDArray[np.intp]:
    """Return the place in `LEVELS` of each count, an array of the same shape."""
    return np.searchsorted(LEVELS, counts, side="right") - 1


def number(value: float, form: str) -> str:
    """Return a mean as text, `-` where there was nothing to take it over."""
    return "-" if math.isnan(value) else format(value, form)


class Snapshot:
    """A simulator between two customers. The arrays are the simulator's own: read them before it goes on.

    Attributes:
        scenario: The system.
        queues: (n,) customers at each server.
        closed: (n,) bool, whether a server accepts nothing, as it is down or drained.
        starts: (J + 1,) first server of each pool, and n.
        held: (R, J) pull-messages that each router holds, by pool.
        router: The router at hand; -1: a trace has ended.
        time: Now, in time units.
        placed: Customers placed since the start.
        wait: Mean time in queue of those accepted, in time units; NaN if there was none.
        messages: Messages of all kinds a customer placed; NaN if there was none.
        cost: Cost a customer placed, at the prices of the scenario; NaN if there was none.
        sender: Router that placed the last customer; -1: none was placed yet.
        target: Server that the last customer was sent to; -1: none was placed yet.
        asked: Servers asked for the last customer, in order.
        blocked: Whether the last customer was blocked.
        doomed: Whether it will be lost with its server, which will fail before.
    """

    def __init__(self, simulator: Simulator) -> None:
        """Read the simulator, and change nothing."""
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
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing to divide by at the start
            means = measures(self.scenario, totals, by_pool, bool(head["flags"] & CALENDAR))
        accepted = arrays.pools["accepted"].any()
        self.wait = float(means["wait"][0]) if accepted else float("nan")
        self.messages, self.cost = float(means["total"][0]), float(means["cost"][0])
        self.sender = int(head["last_router"]) if self.placed else -1
        self.target = int(head["last_server"]) if self.placed else -1
        answers = int(head["probed_count"])
        self.asked: Integers = np.arange(self.scenario.servers) if answers < 0 else arrays.probed[:answers]
        self.blocked, self.doomed = bool(head["blocked"]), bool(head["doomed"])
        self._wait_of_last = float(head["wait"])

    def pool_of(self, server: int) -> int:
        """Return the pool of a server."""
        return int(np.searchsorted(self.starts, server, side="right")) - 1

    def last_customer(self) -> str:
        """Say in a sentence who placed the last customer where, and what it asked before."""
        if self.placed == 0:
            return "no customer has been placed yet"
        if self.asked.size == self.scenario.servers:
            asked = "looked at all servers"
        elif self.asked.size > NAMED:
            asked = f"asked {self.asked.size} servers"
        else:
            asked = f"asked {_listed(self.asked.tolist())}"
        end = "blocked" if self.blocked else f"wait {self._wait_of_last:.3g}"
        end += ", then lost" if self.doomed else ""
        return f"router {self.sender} {asked}, chose {self.target} of pool {self.pool_of(self.target)}: {end}"


def _closed(simulator: Simulator) -> npt.NDArray[np.bool_]:
    arrays = simulator.arrays
    if not arrays.head["flags"][0] & FAULTS:
        return np.zeros(simulator.scenario.servers, np.bool_)
    drained = arrays.conditions["open"][arrays.servers["pool"]] == 0
    closed: npt.NDArray[np.bool_] = drained | (arrays.health["period"] % 2 == 1)
    return closed


def _listed(servers: Sequence[int]) -> str:
    """Return `nobody`, `server 3` or `servers 3, 1, 2`."""
    if not servers:
        return "nobody"
    return f"server{'s' if len(servers) > 1 else ''} {', '.join(map(str, servers))}"
