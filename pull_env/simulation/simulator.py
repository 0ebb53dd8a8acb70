"""The Python side of the kernels: check, convert, allocate, seed, feed and call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pull_env.kernels import random as stream
from pull_env.kernels import run, state
from pull_env.kernels.faults import failures as faults
from pull_env.kernels.routing.memory import UNKNOWN
from pull_env.policy.policy import Announce, Lookup, Memory, PolicyError, Step
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.customers import Customers, Feed, Workload, grow_cells, write_customers
from pull_env.simulation.kernel_data.linked_record import Array, shallow_copy
from pull_env.simulation.kernel_data.scenario_records import (
    condition_records,
    drain_records,
    free_cells,
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

WRITTEN_BY_LINK = (*ADDRESSES, "F", "event_cells", "fault_entry")
CONSTANTS = [name for name in state.HEAD.names or () if name not in WRITTEN_BY_LINK]
LARGE = 200_000  # servers, of 16 bytes, that do not fit the second cache: from here on plain runs prefetch


class Simulator:
    """A running system, always at the arrival of a customer that a router must route.

    Attributes:
        scenario: The system.
        announce: The pull protocol of its servers.
        arrays: The state. The kernels change it in place; `reset` too, except for large arrays.
        workload: Feeds of the calendar clock; None: the Markov clock.
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
        """Allocate a simulator for these steps; call `reset` to start it.

        Args:
            scenario: The system.
            steps: All steps that routers will use; state that none of them reads is not maintained.
            announce: The pull protocol; None: servers announce nothing.
            memory: What a router remembers; None: `Memory()`.
            extra_flags: KEEP_* bits to maintain beyond what `steps` read.
            workload: Feeds of the calendar clock; None: the Markov clock, which needs no feed.

        Raises:
            PolicyError: A step needs the calendar clock and there is no workload, or two steps have tables.
        """
        if workload is None and needs_calendar(steps):
            raise PolicyError("rank is 'work': only the calendar clock knows it, and that needs a workload")
        self.scenario, self.workload = scenario, workload
        self.announce = announce and announce.on(scenario)
        self._flags = required_flags(steps, self.announce) | extra_flags
        self._memory = memory or Memory()
        complete, faulty = self._memory.complete(scenario.servers), scenario.has_faults_or_delays
        self._flags |= protocol_flags(self.announce, complete, workload is not None, faulty)
        if self._flags & state.FAULTS and workload is None:
            raise PolicyError(f"workload is None: {scenario.name} has faults, which need the calendar clock")
        tables = {step for step in steps if isinstance(step, Lookup)}
        if len(tables) > 1:
            raise PolicyError(f"steps have {len(tables)} different tables of lookup: there can be only one")
        self._table = tables.pop() if tables else None
        plain = self._flags == state.PLAIN
        self._prefetches = plain and scenario.servers >= LARGE
        self._rollout = (
            run.rollout_prefetch if self._prefetches else run.rollout_plain if plain else run.rollout
        )
        self._max_probes = max(1, max_probes(steps, scenario))
        self._feed: Feed | None = None
        self._exhausted = False
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
        """The handle for kernels: the address of the head, and the flags of the run."""
        return int(self.arrays.head.ctypes.data) | self._flags << state.ADDRESS_BITS

    @property
    def placed(self) -> int:
        """Customers routed since the reset, including those blocked."""
        return int(self.arrays.pools["accepted"].sum() + self.arrays.pools["blocked"].sum())

    @property
    def has_customer(self) -> bool:
        """Whether a customer waits to be routed: always, except after a trace."""
        return bool(self.arrays.head["router"][0] >= 0)

    def check(self, steps: tuple[Step, ...]) -> None:
        """Refuse steps that read what is not maintained, or that may find no server.

        Raises:
            PolicyError: The message names the step.
        """
        if not steps or not steps[-1].always_acts:
            raise PolicyError(f"steps is {steps}: the last step must always be able to act")
        for k, step in enumerate(steps):
            kept = not required_flags((step,), self.announce) & ~self._flags
            wide = max_probes((step,), self.scenario) <= self._max_probes
            if not (kept and wide and (self.workload is not None or not needs_calendar((step,)))):
                raise PolicyError(f"steps[{k}] is {step}: what it reads is not kept in this run")

    def reset(self, seed: int, episode: int = 0) -> None:
        """Restart from an empty system, on the streams of `seed` and `episode`."""
        if self.arrays.room is None:
            self.arrays.gather()
        if not self._fresh:
            self.arrays.clear()
            self._fill()
        self._fresh = False
        self.arrays.streams[:] = stream.spawn(seed, episode)
        self._exhausted = False
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
        """Route `customers` customers by `chain`; return how many: fewer if a trace ended.

        Raises:
            RuntimeError: There was no room for all events of faults, so that the run is void.
        """
        first, steps = int(chain.ctypes.data), chain.size
        return self.run_by(lambda system, block: self._rollout(system, first, steps, block), customers)

    def run_by(self, rollout: Callable[[int, int], int], customers: int) -> int:
        """As `run`, by a kernel that takes the handle and a number of customers."""
        left = customers
        while left and self.has_customer:
            left -= rollout(self.address, min(left, self.supply()))
        self._check_events()
        return customers - left

    def supply(self) -> int:
        """Feed customers if none are left; return how many can be routed, at least 1."""
        if self.workload is None:
            return 1 << 62
        arrays = self.arrays
        left = arrays.gaps.size - int(arrays.head["fed"][0])
        if left == 0 and not self._exhausted:
            assert self._feed is not None
            self._check_events()
            write_customers(arrays, Customers(*self._feed.draw(self.FEED)))
            left = arrays.gaps.size
            self._exhausted = left == 0
            grow_cells(arrays, left)
            arrays.head["fed"] = 0
            arrays.link_fed()
        return max(left, 1)  # the current customer, even if none follows

    def _check_events(self) -> None:
        """Raise if there was no room for an event."""
        if self.arrays.head["overflow"][0]:
            raise RuntimeError(
                f"more than {self.arrays.events.size} events were pending on {self.scenario.name}: "
                "news.repeat, or a time of faults, is too short against the time between two arrivals"
            )

    def _allocate(self) -> StateArrays:
        """Return arrays of zeros."""
        head, announce, calendar = self._constants[0][0], self.announce, self.workload is not None
        n, J, R, Q = int(head["n"]), int(head["J"]), int(head["R"]), int(head["Q"])
        faulty = self._flags & state.FAULTS
        stale = announce is not None and (not announce.withdraw or bool(faulty))
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
            probed=np.zeros(self._max_probes, np.int32),
            unanswered=np.zeros(self._max_probes if faulty else 1, np.int32),
            sampled=np.zeros(max(1, head["recipient_sample"]), np.int32),
            limits=np.zeros(len(limits), np.int32),
            table=np.zeros(len(table), np.int32),
            by_queue=LevelIndex.of(self._pool_sizes, levels),
            by_held=LevelIndex.of(self._router_count, n + 1),
            work=np.zeros(n if calendar else 1, state.WORK),
            departure_heap=np.zeros(n if calendar else 1, state.HEAP),
            conditions=np.zeros(J if faulty else 1, state.CONDITION),
            health=np.zeros(n if faulty else 1, state.HEALTH),
            drains=np.zeros(int(head["drain_count"]), state.DRAIN),
            long_histogram=np.zeros((max(1, Q - state.SHORT_BINS), J), np.int64),
            rings=np.zeros(state.STREAMS + 1 if self._prefetches else 1, state.RING),
            waiting=free_cells(state.CELL, 0, 1),
            event_heap=np.zeros(1, state.HEAP),
            events=free_cells(state.EVENT, 0, 1),
            gaps=np.zeros(0),
            sizes=np.zeros(0),
            fed_routers=np.zeros(0, np.int32),
            fed_phases=np.zeros(0),
        )

    def _fill(self) -> None:
        """Write the initial state to arrays of zeros, whose head has addresses only."""
        arrays, scenario = self.arrays, self.scenario
        head, arrays.pools[:], arrays.routers[:] = self._constants
        for name in CONSTANTS:
            arrays.head[name] = head[name]
        arrays.servers["pool"] = np.repeat(np.arange(len(scenario.pools)), arrays.pools["size"])
        arrays.lists["oldest"] = arrays.lists["newest"] = -1
        arrays.servers["holder"] = arrays.servers["slot"] = -1
        arrays.messages[...] = -1
        arrays.lists["best_entry"] = UNKNOWN
        self._fill_memory()
        if self._table is not None:
            arrays.limits[:], arrays.table[:] = self._table.limits, self._table.servers
        arrays.by_queue.fill(self._pool_sizes)
        arrays.by_held.fill(self._router_count)
        if self.workload is not None:
            arrays.waiting = free_cells(state.CELL, 0, 1)
            self._fill_faults()
            write_customers(arrays, Customers(np.zeros(0), np.zeros(0)))
            arrays.link_fed()

    def _fill_faults(self) -> None:
        """Write the initial state of faults and messages under way."""
        if not self._flags & state.FAULTS:
            return
        arrays, scenario = self.arrays, self.scenario
        arrays.conditions[:], arrays.drains[:] = condition_records(scenario), drain_records(scenario)
        first = 4 * scenario.servers + scenario.routers + arrays.drains.size + 1
        arrays.events, arrays.event_heap = free_cells(state.EVENT, 0, first), np.zeros(first, state.HEAP)

    def _fill_memory(self) -> None:
        """Write memories without servers, or complete ones in which all are idle."""
        rows, memory, n = self.arrays.memory, self._memory, self.scenario.servers
        rows["server"], rows["queue"], rows["time"] = -1, state.UNLIMITED, np.inf
        rows["time"][..., : memory.size] = -np.inf
        if memory.complete(n) and self._flags & state.KEEP_MEMORY:
            rows["server"][..., :n], rows["queue"][..., :n] = np.arange(n), 0
