"""The thin front of the kernels: it checks, converts, allocates, seeds and feeds; the kernels do the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pull_env.arrays import ADDRESSES, Array, Arrays, Index, shell
from pull_env.kernels import faults, run, state, stream, tally
from pull_env.kernels.instructions import LANES
from pull_env.policy import Announce, Inspect, Lookup, Memory, PolicyError, Probe, Recall, Step, Take
from pull_env.scenario import Scenario
from pull_env.troubles import Faults, News

Floats = npt.NDArray[np.float64]

KINDS = {
    "take": state.TAKE,
    "recall": state.RECALL,
    "send": state.SEND,
    "probe": state.PROBE,
    "inspect": state.INSPECT,
    "cycle": state.CYCLE,
    "last": state.LAST,
    "lookup": state.LOOKUP,
}
ORDERS = {"random": state.RANDOM, "oldest": state.OLDEST, "fastest": state.FASTEST}
WEIGHTS = {"uniform": state.UNIFORM, "rate": state.RATE}
RANKS = {
    "queue": state.BY_QUEUE,
    "delay": state.BY_DELAY,
    "queue then speed": state.BY_QUEUE_THEN_SPEED,
    "work": state.BY_WORK,
}
FATES = {"wait": state.WAIT, "lost": state.LOST, "restart": state.AGAIN}
NUMBERS = [name for name in state.HEAD.names or () if name not in (*ADDRESSES, "F", "cells")]
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


def encode(steps: tuple[Step, ...], scenario: Scenario) -> Array:
    """Return `steps` as the kernels read them, (steps,) STEP.

    Raises:
        PolicyError: A step names a pool that the scenario does not have, or has a table for other servers.
    """
    chain = np.zeros(len(steps), state.STEP)
    for k, step in enumerate(steps):
        pool = getattr(step, "pool", None)
        if pool is not None and pool >= len(scenario.pools):
            last = len(scenario.pools) - 1
            raise PolicyError(f"steps[{k}].pool is {pool}: {scenario.name} has pools 0 to {last}")
        at_most, stop_at = getattr(step, "at_most", 0), getattr(step, "stop_at", None)
        if isinstance(step, Lookup):
            if len(step.limits) != scenario.servers:
                raise PolicyError(
                    f"steps[{k}].limits has {len(step.limits)} servers: "
                    f"{scenario.name} has {scenario.servers}"
                )
            at_most = 0 if step.free else scenario.servers
        chain[k] = (
            KINDS[step.kind],
            -1 if pool is None else pool,
            WEIGHTS[getattr(step, "weights", "uniform")],
            ORDERS[getattr(step, "order", "random")],
            at_most,
            RANKS[getattr(step, "rank", "queue")],
            getattr(step, "replace", False),
            getattr(step, "recall", False),
            -1.0 if stop_at is None else stop_at,
        )
    return chain


def needs_calendar(steps: tuple[Step, ...]) -> bool:
    """Return whether a step looks at unfinished work, which only the calendar clock knows."""
    return any(getattr(step, "rank", None) == "work" for step in steps)


def keeps(steps: tuple[Step, ...], announce: Announce | None) -> int:
    """Return the KEEP_* bits of what `steps` and `announce` read."""
    bits = 0
    if any(isinstance(step, Take) and step.order == "oldest" for step in steps):
        bits |= state.KEEP_AGE
    if any(isinstance(step, Inspect) for step in steps):
        bits |= state.KEEP_QUEUE_INDEX
    if announce is not None and announce.recipient == "fewest" and announce.sample is None:
        bits |= state.KEEP_ROUTER_INDEX
    if any(isinstance(step, Recall) or getattr(step, "recall", False) for step in steps):
        bits |= state.KEEP_MEMORY
    return bits


def rules(announce: Announce | None, complete: bool, calendar: bool, troubled: bool) -> int:
    """Return the traits of a run that are no KEEP_* bits."""
    traits = state.COMPLETE * complete | state.CALENDAR * calendar | state.TROUBLED * troubled
    if announce is not None:
        traits |= state.STALE * (not announce.withdraw) | state.CHOOSY * (announce.recipient == "fewest")
    return traits


def widest(steps: tuple[Step, ...], scenario: Scenario) -> int:
    """Return the most servers that a probe of `steps` may ask."""
    probes = (step for step in steps if isinstance(step, Probe))
    return max((s.at_most if s.replace else min(s.at_most, scenario.servers) for s in probes), default=0)


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
        keep: int = 0,
        workload: Workload | None = None,
    ) -> None:
        """Note what routers that use `steps` need; `reset` starts.

        Args:
            scenario: The system.
            steps: Whatever steps routers will use: what none of them reads is not maintained.
            announce: The pull protocol; None: servers announce nothing.
            memory: What a router remembers; None: `Memory()`.
            keep: KEEP_* bits to maintain beyond what `steps` read.
            workload: Feeds of the calendar clock; None: the Markov clock, which needs no feed.

        Raises:
            PolicyError: A step needs the calendar clock and there is no workload, or two steps have tables.
        """
        if workload is None and needs_calendar(steps):
            raise PolicyError("rank is 'work': only the calendar clock knows it, and that needs a workload")
        self.scenario, self.workload, self._routers = scenario, workload, scenario.routers
        self.announce = announce and announce.on(scenario)
        self._traits = keeps(steps, self.announce) | keep
        self._memory = memory or Memory()
        complete, troubled = self._memory.complete(scenario.servers), scenario.troubled
        self._traits |= rules(self.announce, complete, workload is not None, troubled)
        if self._traits & state.TROUBLED and workload is None:
            raise PolicyError(
                f"workload is None: {scenario.name} has troubles, which need the calendar clock"
            )
        tables = {step for step in steps if isinstance(step, Lookup)}
        if len(tables) > 1:
            raise PolicyError(f"steps have {len(tables)} different tables of lookup: there can be only one")
        self._table = tables.pop() if tables else None
        self._rollout = run.rollout_plain if self._traits == state.PLAIN else run.rollout
        self._asked = max(1, widest(steps, scenario))
        self._feed: Feed | None = None
        self._fed_all = False
        self._pool_sizes = [p.size for p in scenario.pools] if self._traits & state.KEEP_QUEUE_INDEX else [1]
        self._router_count = [scenario.routers] if self._traits & state.KEEP_ROUTER_INDEX else [1]
        head = self._head()
        self._constants = head, _pools(scenario, head), _routers(scenario, float(head["tick"][0]))
        self.arrays, self._fresh = self._allocate(), True
        self._fill()
        self.arrays.link()

    @property
    def address(self) -> int:
        """The handle that kernels take: the address of the head, and the traits of the run."""
        return int(self.arrays.head.ctypes.data) | self._traits << state.ADDRESS_BITS

    @property
    def placed(self) -> int:
        """How many customers were placed since the reset, those blocked included."""
        return int(self.arrays.pools["accepted"].sum() + self.arrays.pools["blocked"].sum())

    @property
    def waiting_customer(self) -> bool:
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
            kept = not keeps((step,), self.announce) & ~self._traits
            wide = widest((step,), self.scenario) <= self._asked
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
        if self._traits & state.TROUBLED:
            faults.begin(self.address)
        self._rollout(self.address, 0, 0, 0)

    def twin(self, room: Array) -> Simulator:
        """Return a simulator like this one, neither of them started yet, in `room`: see `Arrays.twin`."""
        other = shell(self)
        other.arrays = self.arrays.twin(room)
        return other

    def run(self, chain: Array, customers: int) -> int:
        """Place `customers` customers by `chain`; return how many there were: fewer where a trace ended.

        Raises:
            RuntimeError: There was no room for all events of a troubled system, so that the run is void.
        """
        left = customers
        while left and self.waiting_customer:
            block = min(left, self.supply())
            left -= self._rollout(self.address, chain.ctypes.data, chain.size, block)
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
            arrays.waiting = grow(arrays.waiting, int(arrays.pools["inside"].sum()) + left + 2)
            self._grow_events(EVENTS_EACH * left)
            arrays.head["fed"] = 0
            arrays.link_fed()
        return max(left, 1)  # at least the customer at hand, even if nobody follows

    def _grow_events(self, more: int) -> None:
        """Give room for `more` events beyond those pending."""
        if not self._traits & state.TROUBLED:
            return
        self._check_events()
        arrays = self.arrays
        arrays.events = grow(arrays.events, int(arrays.head["pending"][0]) + more)
        old, arrays.soon = arrays.soon, np.zeros(arrays.events.size, state.HEAP)
        arrays.soon[: old.size] = old

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

    def _allocate(self) -> Arrays:
        """Return arrays of 0."""
        head, announce, calendar = self._constants[0][0], self.announce, self.workload is not None
        n, J, R, Q = int(head["n"]), int(head["J"]), int(head["R"]), int(head["Q"])
        troubled = self._traits & state.TROUBLED
        stale = announce is not None and (not announce.withdraw or bool(troubled))
        remembered = (R, int(head["G"])) if self._traits & state.KEEP_MEMORY else (1, 1)
        limits, table = ((0,), (0,)) if self._table is None else (self._table.limits, self._table.servers)
        levels = state.LEVELS if self._traits & state.KEEP_QUEUE_INDEX else 1
        return Arrays(
            head=np.zeros(1, state.HEAD),
            pools=np.zeros(J, state.POOL),
            routers=np.zeros(R, state.ROUTER),
            lists=np.zeros((R, J), state.LIST),
            memory=np.zeros(remembered, state.memory_row(int(head["M"]))),
            servers=np.zeros(n, state.SERVER),
            messages=np.zeros((R, n) if stale else (1, 1), np.int32),
            ages=np.zeros((R * n if stale else n) if self._traits & state.KEEP_AGE else 1, state.AGE),
            slots=np.zeros((R, n) if announce else (1, 1), np.int32),
            asked=np.zeros(self._asked, np.int32),
            silent=np.zeros(self._asked if troubled else 1, np.int32),
            sampled=np.zeros(max(1, head["recipient"]), np.int32),
            limits=np.zeros(len(limits), np.int32),
            table=np.zeros(len(table), np.int32),
            by_queue=Index.of(self._pool_sizes, levels),
            by_held=Index.of(self._router_count, n + 1),
            work=np.zeros(n if calendar else 1, state.WORK),
            heap=np.zeros(n if calendar else 1, state.HEAP),
            conditions=_conditions(self.scenario) if troubled else np.zeros(1, state.CONDITION),
            health=np.zeros(n if troubled else 1, state.HEALTH),
            drains=_drains(self.scenario) if troubled else np.zeros(0, state.DRAIN),
            law=np.zeros((Q, J), np.int64),
            waiting=free_cells(state.CELL, 0, 1),
            soon=np.zeros(1, state.HEAP),
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
        arrays.lists["slots"] = (
            scenario.servers * np.arange(scenario.routers)[:, None] + arrays.pools["start"]
        )
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
        if not self._traits & state.TROUBLED:
            return
        arrays, scenario = self.arrays, self.scenario
        arrays.conditions[:], arrays.drains[:] = _conditions(scenario), _drains(scenario)
        first = 4 * scenario.servers + scenario.routers + arrays.drains.size + 1
        arrays.events, arrays.soon = free_cells(state.EVENT, 0, first), np.zeros(first, state.HEAP)

    def _forget(self) -> None:
        """Let no router remember a server, or each all servers, idle; places beyond theirs stay empty."""
        rows, memory, n = self.arrays.memory, self._memory, self.scenario.servers
        rows["server"], rows["queue"], rows["when"] = -1, state.UNLIMITED, np.inf
        rows["when"][..., : memory.size] = -np.inf
        if memory.complete(n) and self._traits & state.KEEP_MEMORY:
            rows["server"][..., :n], rows["queue"][..., :n] = np.arange(n), 0

    def _head(self) -> Array:
        """Return the constants of a run and the sizes, (1,) HEAD."""
        scenario, announce, memory = self.scenario, self.announce, self._memory
        head, calendar = np.zeros(1, state.HEAD), self.workload is not None
        n, J = scenario.servers, len(scenario.pools)
        total = scenario.total_arrival_rate + scenario.capacity
        head["n"], head["J"], head["R"], head["traits"] = n, J, scenario.routers, self._traits
        head["G"], remembered = (J, memory.size) if memory.by_pool else (1, min(memory.size, n))
        head["M"] = -(-remembered // LANES) * LANES
        head["Q"] = tally.BINS if calendar else state.LEVELS
        head["tick"] = 1.0 if calendar else 1.0 / total
        head["arrival_cut"] = round(scenario.total_arrival_rate / total * 2**32)
        if announce is not None:
            head["threshold"], head["recipient"] = (
                announce.threshold,
                min(announce.sample or 0, scenario.routers),
            )
        if self._traits & state.TROUBLED:
            news, troubles = scenario.news or News(), scenario.faults or Faults()
            head["delay"], head["random_delay"] = news.delay, news.delay > 0 and news.law == "exponential"
            head["loss"], head["timeout"] = round(news.loss * 2**32), news.patience
            head["repeat"], head["restart"] = news.repeat or np.inf, troubles.restart or np.inf
            head["customers"], head["drainings"] = FATES[troubles.customers], len(_drains(scenario))
        return head


def _pools(scenario: Scenario, head: Array) -> Array:
    pools = np.zeros(len(scenario.pools), state.POOL)
    pools["size"] = [pool.size for pool in scenario.pools]
    pools["rate"] = [pool.rate for pool in scenario.pools]
    pools["buffer"] = [state.UNLIMITED if pool.buffer is None else pool.buffer for pool in scenario.pools]
    pools["start"] = np.cumsum(pools["size"]) - pools["size"]
    pools["service_time"] = 1.0 / pools["rate"]
    share, cut = np.cumsum(pools["size"] * pools["rate"]) / scenario.capacity, float(head["arrival_cut"][0])
    pools["until"] = np.rint(cut + share * (2**32 - cut)).astype(np.uint64)
    return pools


def _routers(scenario: Scenario, tick: float) -> Array:
    routers, shares = np.zeros(scenario.routers, state.ROUTER), np.array(scenario.router_shares)
    routers["cut"], routers["alias"] = stream.alias_columns(shares)
    with np.errstate(divide="ignore"):  # a share of 0: no arrival is ever expected
        routers["gap"] = 1 / (shares * scenario.total_arrival_rate * tick)
    routers["last"] = -1
    return routers


def _conditions(scenario: Scenario) -> Array:
    troubles, conditions = scenario.faults or Faults(), np.zeros(len(scenario.pools), state.CONDITION)
    conditions["open"], conditions["factor"] = 1, troubles.factor
    for name in ("up", "down", "normal", "slow"):
        conditions[name] = getattr(troubles, name) or np.inf
    if troubles.pools is not None:  # the others never fail nor slow down
        others = [j for j in range(len(scenario.pools)) if j not in troubles.pools]
        conditions["up"][others] = conditions["normal"][others] = np.inf
    return conditions


def _drains(scenario: Scenario) -> Array:
    drains = () if scenario.faults is None else scenario.faults.drains
    turns = [(drain.at, drain.pool, 0) for drain in drains]
    turns += [(drain.until, drain.pool, 1) for drain in drains if drain.until is not None]
    return np.array(turns, state.DRAIN)


def _numbers(values: Any) -> Floats:
    """Return `values` as the kernels read them: float64, side by side."""
    return np.ascontiguousarray(values, np.float64)


def free_cells(kind: np.dtype[Any], first: int, count: int) -> Array:
    """Return `count` free cells, CELL or EVENT, numbered from `first`, each linked to the next."""
    cells = np.zeros(count, kind)
    cells["next"] = np.arange(first + 1, first + count + 1)
    return cells


def grow(cells: Array, needed: int) -> Array:
    """Return `cells` with room for `needed`: new ones continue the chain of free cells."""
    if needed <= cells.size:
        return cells
    more = free_cells(cells.dtype, cells.size, max(needed, 2 * cells.size) - cells.size)
    return np.concatenate([cells, more])
