"""Entries of an observation of `RouterEnv`, and the arrays it is written to.

Symbols: J pools, R routers, A actions, L entries of an observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pull_env.kernels.envs import observe
from pull_env.policy.catalog import mean_service_time, with_fallback
from pull_env.policy.policy import Last, Recall, Step, Take
from pull_env.scenario.scenario import Prices, Scenario
from pull_env.simulation.kernel_data.linked_record import Array, LinkedRecord, shallow_copy
from pull_env.simulation.kernel_data.step_records import encode

PRICE_SCALE = 0.05  # a message that costs this much waiting, in mean service times, is observed as 0.5
LARGEST_LOAD = 1.5

POOL_NAMES = (
    "size share",
    "relative rate",
    "buffer",
    "messages held",
    "remembered wait",
    "remembered age",
    "probed wait",
    "probed idle",
    "message age",
)
ROUTER_NAMES = ("arrival rate", "found no message", "message price", "load")
POOL_STATE_NAMES = ("idle", "queue 1", "queue 2", "queue 3", "queue 4 or more")
STATE_NAMES = ("routers without message", "share of messages", "arrival phase", "closed")


def observation_names(scenario: Scenario, with_state: bool = False) -> tuple[str, ...]:
    """Return the names of all entries, such as `pool 0: messages held`, (L,)."""
    pools = range(len(scenario.pools))
    names = [f"pool {pool}: {name}" for pool in pools for name in POOL_NAMES]
    names += [f"router: {name}" for name in ROUTER_NAMES]
    if with_state:
        names += [f"state of pool {pool}: {name}" for pool in pools for name in POOL_STATE_NAMES]
        names += [f"state: {name}" for name in STATE_NAMES]
    return tuple(names)


def pool_entries(scenario: Scenario, name: str) -> list[int]:
    """Return the indices in an observation of the entry `name` of every pool, J."""
    names = observation_names(scenario)
    return [names.index(f"pool {pool}: {name}") for pool in range(len(scenario.pools))]


def local_size(scenario: Scenario) -> int:
    """Return how many entries a router itself knows; those of the state follow."""
    return len(scenario.pools) * observe.POOL_ENTRIES + observe.ROUTER_ENTRIES


def observation_size(scenario: Scenario, with_state: bool = False) -> int:
    """Return the length L of an observation, which depends on J only."""
    state = len(scenario.pools) * observe.POOL_STATE_ENTRIES + observe.STATE_ENTRIES
    return local_size(scenario) + (state if with_state else 0)


def observed_price(prices: Prices, service: float) -> float:
    """Return the observed price of a message: m / (m + 0.05) if it costs a wait of m.

    Args:
        prices: The prices; if waiting costs nothing, the result is 1.
        service: Mean service time, the unit of m.
    """
    scale = PRICE_SCALE * prices.wait * service  # multiplied out: m itself may overflow
    return 1.0 if scale == 0.0 else prices.message / (prices.message + scale)


@dataclass(frozen=True)
class Constants:
    """What never changes in an observation, shared by equal envs."""

    chains: Array  # (A, CHAIN_STEPS) STEP  what the actions mean
    conditional: Array  # (D,) CONDITIONAL_ACTION  actions that are not always real
    nominal_gaps: Array  # (R,) float64  nominal mean time between a router's arrivals, in ticks
    pool_scalings: Array  # (J,) POOL_SCALING  how a pool is observed
    observation: Array  # (L,) float32  the entries that never change, else 0
    mask: Array  # (A,) int8  1: always real

    @classmethod
    @lru_cache(maxsize=8)
    def of(
        cls, scenario: Scenario, catalog: tuple[Step, ...], time_step: float, with_state: bool
    ) -> Constants:
        """Return the constants of an env; for the arguments see `RouterObservation`."""
        chains = encode(tuple(part for step in catalog for part in with_fallback(step)), scenario)
        conditional, ends = conditional_actions(catalog, len(scenario.pools))
        mask = np.ones(len(catalog), np.int8)
        mask[conditional["action"]] = 0
        return cls(
            chains=chains.reshape(len(catalog), observe.CHAIN_STEPS),
            conditional=conditional,
            nominal_gaps=nominal_gaps(scenario, time_step),
            pool_scalings=pool_scalings(scenario, time_step, ends),
            observation=constant_entries(scenario, with_state),
            mask=mask,
        )


def conditional_actions(catalog: tuple[Step, ...], pools: int) -> tuple[Array, list[int]]:
    """Return the actions that are not always real, by pool, and what they need.

    Returns:
        The actions, (D,) CONDITIONAL_ACTION, those of any pool last, and for each pool the end of its rows.
    """
    needs = {Take: observe.HELD, Recall: observe.KNOWN, Last: observe.ANNOUNCED}
    rows, ends = [], []
    for pool in (*range(pools), None):
        rows += [
            (action, needs[type(step)])
            for action, step in enumerate(catalog)
            if not step.always_acts and getattr(step, "pool", None) == pool
        ]
        ends.append(len(rows))
    return np.array(rows, observe.CONDITIONAL_ACTION), ends[:-1]


def pool_scalings(scenario: Scenario, time_step: float, ends: list[int]) -> Array:
    """Return by what each pool's entries are scaled, (J,) POOL_SCALING."""
    service = mean_service_time(scenario)
    rows = zip(scenario.pools, [0, *ends], ends, strict=False)
    return np.array(
        [(1.0, pool.rate * service, service / time_step, service, first, end) for pool, first, end in rows],
        observe.POOL_SCALING,
    )


def constant_entries(scenario: Scenario, with_state: bool) -> Array:
    """Return an observation, (L,) float32, in which all entries that change are 0."""
    fastest = max(pool.rate for pool in scenario.pools)
    values = {
        "router: message price": observed_price(scenario.prices, mean_service_time(scenario)),
        "router: load": min(scenario.nominal_load, LARGEST_LOAD) / LARGEST_LOAD,
    }
    for j, pool in enumerate(scenario.pools):
        values[f"pool {j}: size share"] = pool.size / scenario.servers
        values[f"pool {j}: relative rate"] = pool.rate / fastest
        values[f"pool {j}: buffer"] = 1.0 if pool.buffer is None else pool.buffer / (1 + pool.buffer)
    names = observation_names(scenario, with_state)
    return np.array([values.get(name, 0.0) for name in names], np.float32)


class ObservationArrays(LinkedRecord):
    """A VIEW record, and the arrays of an env that kernels write through it.

    Attributes:
        observation: (L,) float32, overwritten at every step.
        mask: (A,) int8, overwritten at every step.
        outcome: () OUTCOME, overwritten at every step.
        record: (1,) VIEW.
    """

    linked: ClassVar[tuple[str, ...]] = ("observation", "mask", "outcome")

    def __init__(self, scenario: Scenario, entries: int, actions: int) -> None:
        """Allocate for L `entries` and A `actions`, and store the scenario's constants."""
        self.observation: Array = np.zeros(entries, np.float32)
        self.mask: Array = np.zeros(actions, np.int8)
        self.outcome: Array = np.zeros((), observe.OUTCOME)
        self.record: Array = np.zeros(1, observe.VIEW)
        prices = scenario.prices
        self.record["actions"] = actions
        self.record["fastest"] = max(pool.rate for pool in scenario.pools)
        self.record["wait_price"], self.record["block_price"] = prices.wait, prices.block
        self.record["message_price"] = prices.message
        self.link()


class RouterObservation(ObservationArrays):
    """What a router knows, and which steps of a catalog it can take.

    Only entries that change are written at every step.
    """

    linked = (*ObservationArrays.linked, "chains", "conditional", "nominal_gaps", "pool_scalings")

    def __init__(
        self, scenario: Scenario, catalog: tuple[Step, ...], time_step: float, with_state: bool
    ) -> None:
        """Allocate, and store the constants.

        Args:
            scenario: The system.
            catalog: What the A actions mean.
            time_step: Time units per tick of the system's clock.
            with_state: Whether the observation ends with the state.

        Raises:
            PolicyError: A step names a pool that the scenario does not have.
        """
        constants = Constants.of(scenario, catalog, time_step, with_state)
        self.chains, self.conditional = constants.chains, constants.conditional
        self.nominal_gaps, self.pool_scalings = constants.nominal_gaps, constants.pool_scalings
        super().__init__(scenario, constants.observation.size, len(catalog))
        self.observation[:], self.mask[:] = constants.observation, constants.mask
        self.record["conditional_count"], self.record["with_state"] = constants.conditional.size, with_state

    def clone_into(self, observation: Array, mask: Array, outcome: Array, record: Array) -> RouterObservation:
        """Return an equal observation that uses these arrays."""
        other = shallow_copy(self)
        other.move(observation, mask, outcome, record)
        return other

    def move(self, observation: Array, mask: Array, outcome: Array, record: Array) -> None:
        """Move the content to these arrays, and use them from now on."""
        arrays = {"observation": observation, "mask": mask, "outcome": outcome, "record": record}
        for name, array in arrays.items():
            array[...] = getattr(self, name)
            setattr(self, name, array)
        self._write_addresses(ObservationArrays.linked)  # the constants stay where they are


def nominal_gaps(scenario: Scenario, time_step: float) -> npt.NDArray[np.float64]:
    """Return the mean gap in ticks between a router's arrivals, (R,); inf if none."""
    rates: npt.NDArray[np.float64] = np.array(scenario.router_shares) * (
        scenario.total_arrival_rate * time_step
    )
    with np.errstate(divide="ignore"):
        return 1.0 / rates
