"""The thin front of the kernels: it checks, converts, allocates, seeds and feeds; the kernels do the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pull_env.kernels import random as stream
from pull_env.kernels import run, state
from pull_env.kernels.faults import failures as faults
from pull_env.kernels.routing.memory import UNKNOWN
from pull_env.policy.policy import Announce, Lookup, Memory, PolicyError, Step
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.linked_record import Array, shallow_copy
from pull_env.simulation.kernel_data.scenario_records import (
    condition_records,
    drain_records,
    free_cells,
    grow,
    head_record,
    pool_records,
    router_records,
)
from pull_env.simulation.kernel_data.state_arrays import ADDRESSES, LevelIndex, StateArrays
from pull_env.simulation.kernel_data.step_records import (
    max_probes,
    needs_calendar,
    protocol_flags,
    required_flags,
)

Floats = npt.NDArray[np.float64]

NUMBERS = [
    name for name in state.HEAD.names or () if name not in (*ADDRESSES, "F", "event_cells", "fault_entry")
]
LARGE = 200_000  # servers, of 16 bytes, that do not fit the second cache: from here on plain runs look ahead
EVENTS_EACH = 4  # of a customer: a pull-message, a remove-message, and room for what servers do meanwhile


class Customers(NamedTuple):
    """Those that come next, for the calendar clock."""

    gaps: Floats  # (customers,) times since the arrival before
    sizes: Floats  # (customers,) service requirements, of mean 1
    routers: npt.NDArray[np.int32] | None = None  # (customers,) whom they ask; None: by the scenario's shares
    phases: Floats | None = None  # (customers,) of the arrival process, in [0, 1]; None: it has but one


class Feed(Protocol):
    """Where the calendar clock gets its customers from."""

    def draw(self, count: int) -> tuple[Any, ...]:
        """Return the next customers, at most `count`: the fields of `Customers`, or the first two of them.

        Returns:
            Arrays of equal length; empty ones when there are no more customers.
        """
        ...


Workload = Callable[[np.random.SeedSequence], Feed]  # a feed for each replication or episode


class Simulator:
    """A system in motion, always with a customer at hand that waits to be placed.

    Attributes:
        scenario: What it simulates.
        announce: The pull protocol of its servers.
        arrays: The state. The kernels change it in place, and `reset` too, but for large arrays.
        address: What the kernels know the system by.
    """

    FEED = 4096  # customers fed to the calendar clock at a time

    def __init__(
        self,
        scenario: Scenario,
        steps: tuple[Step, ...],
        announce: Announce | None,
        *,
        memory: Memory | None = None,
        extra_flags: int = 0,
        workload: Workload | None = None,
    ) -> None:
        """Note what routers that use `steps` need; `reset` starts.

        Args:
            scenario: The system.
            steps: Whatever steps routers will use: what none of them reads is not maintained.
            announce: The pull protocol; None: servers announce nothing.
            memory: What a router remembers; None: `Memory()`.
            extra_flags: KEEP_* bits to maintain beyond what `steps` read.
            workload: Feeds of the calendar clock; None: the Markov clock, which needs no feed.

        Raises:
            PolicyError: A step needs the calendar clock and there is no workload, or two steps have tables.
        """
        if workload is None and needs_calendar(steps):
            raise PolicyError("rank is 'work': only the calendar clock knows it, and that needs a workload")
        self.scenario, self.workload, self._routers = scenario, workload, scenario.routers
        self.announce = announce and announce.on(scenario)
        self._flags = required_flags(steps, self.announce) | extra_flags
        self._memory = memory or Memory()
        complete, troubled = self._memory.complete(scenario.servers), scenario.troubled
        self._flags |= protocol_flags(self.announce, complete, workload is not None, troubled)
        if self._flags & state.FAULTS and workload is None:
            raise PolicyError(
                f"workload is None: {scenario.name} has troubles, which need the calendar clock"
            )
        tables = {step for step in steps if isinstance(step, Lookup)}
        if len(tables) > 1:
            raise PolicyError(f"steps have {len(tables)} different tables of lookup: there can be only one")
        self._table = tables.pop() if tables else None
        plain = self._flags == state.PLAIN
        self._ahead = plain and scenario.servers >= LARGE
        self._rollout = run.rollout_prefetch if self._ahead else run.rollout_plain if plain else run.rollout
        self._asked = max(1, max_probes(steps, scenario))
        self._feed: Feed | None = None
        self._fed_all = False
        self._pool_sizes = [p.size for p in scenario.pools] if self._flags & state.KEEP_QUEUE_INDEX else [1]
        self._router_count = [scenario.routers] if self._flags & state.KEEP_ROUTER_INDEX else [1]
        head = head_record(scenario, self.announce, self._memory, self._flags)
        self._constants = (
            head,
            pool_records(scenario, head),
            router_records(scenario, float(head["time_step"][0])),
        )
        self.arrays, self._fresh = self._allocate(), True
        self._fill()
        self.arrays.link()

    @property
    def address(self) -> int:
        """The handle that kernels take: the address of the head, and the flags of the run."""
        return int(self.arrays.head.ctypes.data) | self._flags << state.ADDRESS_BITS

    @property
    def placed(self) -> int:
        """How many customers were placed since the reset, those blocked included."""
        return int(self.arrays.pools["accepted"].sum() + self.arrays.pools["blocked"].sum())

    @property
    def has_customer(self) -> bool:
        """Whether there is a customer at hand: always, but after the end of a trace."""
        return bool(self.arrays.head["router"][0] >= 0)

    def check(self, steps: tuple[Step, ...]) -> None:
        """Refuse a chain of steps that reads what is not kept, or may find no server.

        Raises:
            PolicyError: The message names the step.
        """
        if not steps or not steps[-1].total:
            raise PolicyError(f"steps is {steps}: the last step must always be able to act")
        for k, step in enumerate(steps):
            kept = not required_flags((step,), self.announce) & ~self._flags
            wide = max_probes((step,), self.scenario) <= self._asked
            if not (kept and wide and (self.workload is not None or not needs_calendar((step,)))):
                raise PolicyError(f"steps[{k}] is {step}: what it reads is not kept in this run")

    def reset(self, seed: int, episode: int = 0) -> None:
        """Start anew from an empty system on the streams of `seed` and `episode`, with the first customer."""
        if self.arrays.room is None:
            self.arrays.gather()
        if not self._fresh:
            self.arrays.clear()
            self._fill()
        self._fresh = False
        self.arrays.streams[:] = stream.spawn(seed, episode)
        self._fed_all = False
        if self.workload is not None:
            self._feed = self.workload(np.random.SeedSequence(seed, spawn_key=(episode, 0)))
            self.supply()
        run.start(self.address)
        if self._flags & state.FAULTS:
            faults.start_faults(self.address)
        self._rollout(self.address, 0, 0, 0)

    def clone_into(self, room: Array) -> Simulator:
        """Return an equal simulator in `room`; neither may have been reset."""
        other = shallow_copy(self)
        other.arrays = self.arrays.clone_into(room)
        return other

    def run(self, chain: Array, customers: int) -> int:
        """Place `customers` customers by `chain`; return how many there were: fewer where a trace ended.

        Raises:
            RuntimeError: There was no room for all events of a troubled system, so that the run is void.
        """
        first, steps = int(chain.ctypes.data), chain.size
        return self.repeat(lambda system, block: self._rollout(system, first, steps, block), customers)

    def repeat(self, rollout: Callable[[int, int], int], customers: int) -> int:
        """Do what `run` does by a kernel that takes the address and how many customers to place."""
        left = customers
        while left and self.has_customer:
            left -= rollout(self.address, min(left, self.supply()))
        self._check_events()
        return customers - left

    def supply(self) -> int:
        """Return how many customers can be placed, at least one, before the feed must be asked again."""
        if self.workload is None:
            return 1 << 62
        arrays = self.arrays
        left = arrays.gaps.size - int(arrays.head["fed"][0])
        if left == 0 and not self._fed_all:
            assert self._feed is not None
            self._take(Customers(*self._feed.draw(self.FEED)))
            left = arrays.gaps.size
            self._fed_all = left == 0
            arrays.waiting = grow(arrays.waiting, int(arrays.pools["customers"].sum()) + left + 2)
            self._grow_events(EVENTS_EACH * left)
            arrays.head["fed"] = 0
            arrays.link_fed()
        return max(left, 1)  # at least the customer at hand, even if nobody follows

    def _grow_events(self, more: int) -> None:
        """Give room for `more` events beyond those pending."""
        if not self._flags & state.FAULTS:
            return
        self._check_events()
        arrays = self.arrays
        arrays.events = grow(arrays.events, int(arrays.head["pending_events"][0]) + more)
        if arrays.event_heap.size < arrays.events.size:
            old, arrays.event_heap = arrays.event_heap, np.zeros(arrays.events.size, state.HEAP)
            arrays.event_heap[: old.size] = old

    def _check_events(self) -> None:
        """Refuse to go on where there was no room for an event."""
        if self.arrays.head["overflow"][0]:
            raise RuntimeError(
                f"more than {self.arrays.events.size} events were pending on {self.scenario.name}: "
                "news.repeat, or a time of faults, is too short against the time between two arrivals"
            )

    def _take(self, fed: Customers) -> None:
        """Let the kernels read `fed`."""
        arrays = self.arrays
        arrays.gaps, arrays.sizes = _numbers(fed.gaps), _numbers(fed.sizes)
        count = arrays.gaps.size
        if count != arrays.sizes.size:
            raise ValueError(f"workload gave {count} gaps, {arrays.sizes.size} sizes: not as many")
        routers = np.full(count, -1, np.int32) if fed.routers is None else fed.routers
        if fed.routers is not None and count and not 0 <= np.min(routers) <= np.max(routers) < self._routers:
            raise ValueError(f"workload gave routers {routers}: they must be from 0 to {self._routers - 1}")
        phases = np.zeros(count) if fed.phases is None else fed.phases
        arrays.fed_routers, arrays.fed_phases = np.ascontiguousarray(routers, np.int32), _numbers(phases)

    def _allocate(self) -> StateArrays:
        """Return arrays of 0."""
        head, announce, calendar = self._constants[0][0], self.announce, self.workload is not None
        n, J, R, Q = int(head["n"]), int(head["J"]), int(head["R"]), int(head["Q"])
        troubled = self._flags & state.FAULTS
        stale = announce is not None and (not announce.withdraw or bool(troubled))
        remembered = (R, int(head["G"])) if self._flags & state.KEEP_MEMORY else (1, 1)
        limits, table = ((0,), (0,)) if self._table is None else (self._table.limits, self._table.servers)
        levels = state.LEVELS if self._flags & state.KEEP_QUEUE_INDEX else 1
        return StateArrays(
            head=np.zeros(1, state.HEAD),
            pools=np.zeros(J, state.POOL),
            routers=np.zeros(R, state.ROUTER),
            lists=np.zeros((R, J), state.LIST),
            short_histogram=np.zeros((state.SHORT_BINS, J), np.int64),
            memory=np.zeros(remembered, state.memory_row(int(head["M"]))),
            histories=np.zeros((R, J) if self._flags & state.KEEP_HISTORY else (1, 1), state.HISTORY),
            servers=np.zeros(n, state.SERVER),
            messages=np.zeros((R, n) if stale else (1, 1), np.int32),
            ages=np.zeros((R * n if stale else n) if self._flags & state.KEEP_AGE else 1, state.AGE),
            slots=np.zeros((R, n) if announce else (1, 1), np.int32),
            probed=np.zeros(self._asked, np.int32),
            unanswered=np.zeros(self._asked if troubled else 1, np.int32),
            sampled=np.zeros(max(1, head["recipient_sample"]), np.int32),
            limits=np.zeros(len(limits), np.int32),
            table=np.zeros(len(table), np.int32),
            by_queue=LevelIndex.of(self._pool_sizes, levels),
            by_held=LevelIndex.of(self._router_count, n + 1),
            work=np.zeros(n if calendar else 1, state.WORK),
            departure_heap=np.zeros(n if calendar else 1, state.HEAP),
            conditions=np.zeros(J if troubled else 1, state.CONDITION),
            health=np.zeros(n if troubled else 1, state.HEALTH),
            drains=np.zeros(int(head["drain_count"]), state.DRAIN),
            long_histogram=np.zeros((max(1, Q - state.SHORT_BINS), J), np.int64),
            rings=np.zeros(state.STREAMS + 1 if self._ahead else 1, state.RING),
            waiting=free_cells(state.CELL, 0, 1),
            event_heap=np.zeros(1, state.HEAP),
            events=free_cells(state.EVENT, 0, 1),
            gaps=np.zeros(0),
            sizes=np.zeros(0),
            fed_routers=np.zeros(0, np.int32),
            fed_phases=np.zeros(0),
        )

    def _fill(self) -> None:
        """Write the state before the first customer to arrays of 0; addresses in the head stay."""
        arrays, scenario = self.arrays, self.scenario
        head, arrays.pools[:], arrays.routers[:] = self._constants
        for name in NUMBERS:
            arrays.head[name] = head[name]
        arrays.servers["pool"] = np.repeat(np.arange(len(scenario.pools)), arrays.pools["size"])
        arrays.lists["oldest"] = arrays.lists["newest"] = -1
        arrays.servers["holder"] = arrays.servers["slot"] = -1
        arrays.messages[...] = -1
        arrays.lists["best_entry"] = UNKNOWN
        self._forget()
        if self._table is not None:
            arrays.limits[:], arrays.table[:] = self._table.limits, self._table.servers
        arrays.by_queue.fill(self._pool_sizes)
        arrays.by_held.fill(self._router_count)
        if self.workload is not None:
            arrays.waiting = free_cells(state.CELL, 0, 1)
            self._settle_troubles()
            self._take(Customers(np.zeros(0), np.zeros(0)))
            arrays.link_fed()

    def _settle_troubles(self) -> None:
        """Write the state before the first event of a troubled system."""
        if not self._flags & state.FAULTS:
            return
        arrays, scenario = self.arrays, self.scenario
        arrays.conditions[:], arrays.drains[:] = condition_records(scenario), drain_records(scenario)
        first = 4 * scenario.servers + scenario.routers + arrays.drains.size + 1
        arrays.events, arrays.event_heap = free_cells(state.EVENT, 0, first), np.zeros(first, state.HEAP)

    def _forget(self) -> None:
        """Let no router remember a server, or each all servers, idle; places beyond theirs stay empty."""
        rows, memory, n = self.arrays.memory, self._memory, self.scenario.servers
        rows["server"], rows["queue"], rows["time"] = -1, state.UNLIMITED, np.inf
        rows["time"][..., : memory.size] = -np.inf
        if memory.complete(n) and self._flags & state.KEEP_MEMORY:
            rows["server"][..., :n], rows["queue"][..., :n] = np.arange(n), 0


def _numbers(values: Any) -> Floats:
    """Return `values` as the kernels read them: float64, side by side."""
    return np.ascontiguousarray(values, np.float64)
