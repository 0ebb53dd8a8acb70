"""Customers fed to the calendar clock, and room for their events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pull_env.kernels import state
from pull_env.simulation.kernel_data.linked_record import Floats
from pull_env.simulation.kernel_data.scenario_records import grow
from pull_env.simulation.kernel_data.state_arrays import StateArrays

EVENTS_PER_CUSTOMER = 4  # a pull-message, a remove-message, and room for what servers do meanwhile


class Customers(NamedTuple):
    """Consecutive customers of the calendar clock."""

    gaps: Floats  # (customers,) times since the previous arrival
    sizes: Floats  # (customers,) service requirements, of mean 1
    routers: npt.NDArray[np.int32] | None = None  # (customers,) that they ask; None: by the scenario's shares
    phases: Floats | None = None  # (customers,) of the arrival process, in [0, 1]; None: it has only one


class Feed(Protocol):
    """A source of customers for the calendar clock, for one replication or episode."""

    def draw(self, count: int) -> tuple[Any, ...]:
        """Return the next customers, at most `count`.

        Returns:
            The fields of `Customers`, or the first two of them: arrays of equal length, empty after the end.
        """
        ...


Workload = Callable[[np.random.SeedSequence], Feed]  # makes the feed of a replication or an episode


def write_customers(arrays: StateArrays, customers: Customers) -> None:
    """Replace the arrays of fed customers; call `arrays.link_fed` next.

    Raises:
        ValueError: The arrays have different lengths, or a router does not exist.
    """
    arrays.gaps, arrays.sizes = _reals(customers.gaps), _reals(customers.sizes)
    count, R = arrays.gaps.size, arrays.routers.size
    if count != arrays.sizes.size:
        raise ValueError(f"workload gave {count} gaps, {arrays.sizes.size} sizes: not as many")
    routers = np.full(count, -1, np.int32) if customers.routers is None else customers.routers
    if customers.routers is not None and count and not 0 <= np.min(routers) <= np.max(routers) < R:
        raise ValueError(f"workload gave routers {routers}: they must be from 0 to {R - 1}")
    phases = np.zeros(count) if customers.phases is None else customers.phases
    arrays.fed_routers, arrays.fed_phases = np.ascontiguousarray(routers, np.int32), _reals(phases)


def grow_cells(arrays: StateArrays, customers: int) -> None:
    """Make room for `customers` more in queues, and for their events under faults."""
    arrays.waiting = grow(arrays.waiting, int(arrays.pools["customers"].sum()) + customers + 2)
    if not arrays.head["flags"][0] & state.FAULTS:
        return
    pending = int(arrays.head["pending_events"][0])
    arrays.events = grow(arrays.events, pending + EVENTS_PER_CUSTOMER * customers)
    if arrays.event_heap.size < arrays.events.size:
        old, arrays.event_heap = arrays.event_heap, np.zeros(arrays.events.size, state.HEAP)
        arrays.event_heap[: old.size] = old


def _reals(values: Any) -> Floats:
    return np.ascontiguousarray(values, np.float64)
