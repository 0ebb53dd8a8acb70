"""The layout of what `RouterEnv` shows, and the arrays that the kernels write it to.

Symbols: J pools, R routers, A actions, L entries of an observation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from pull_env.envs.catalog import mean_service_time, with_fallback
from pull_env.kernels import observe
from pull_env.policy import Step
from pull_env.scenario import Prices, Scenario
from pull_env.system import Array, encode

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
)
ROUTER_NAMES = ("arrival rate", "found no message", "message price", "load")
POOL_STATE_NAMES = ("idle", "queue 1", "queue 2", "queue 3", "queue 4 or more")
STATE_NAMES = ("routers without message", "share of messages", "arrival phase")


def observation_names(scenario: Scenario, with_state: bool = False) -> tuple[str, ...]:
    """Return the name of every entry of an observation, (L,) texts, such as `pool 0: messages held`."""
    pools = range(len(scenario.pools))
    names = [f"pool {pool}: {name}" for pool in pools for name in POOL_NAMES]
    names += [f"router: {name}" for name in ROUTER_NAMES]
    if with_state:
        names += [f"state of pool {pool}: {name}" for pool in pools for name in POOL_STATE_NAMES]
        names += [f"state: {name}" for name in STATE_NAMES]
    return tuple(names)


def local_size(scenario: Scenario) -> int:
    """Return how many entries a router knows itself; those of the state come after."""
    return len(scenario.pools) * observe.POOL_ENTRIES + observe.ROUTER_ENTRIES


def observation_size(scenario: Scenario, with_state: bool = False) -> int:
    """Return the length L of an observation, which depends on J only."""
    state = len(scenario.pools) * observe.POOL_STATE_ENTRIES + observe.STATE_ENTRIES
    return local_size(scenario) + (state if with_state else 0)


def observation_box(scenario: Scenario, with_state: bool = False) -> spaces.Box[np.float32]:
    """Return the space of observations, [0, 1]^L in float32."""
    return spaces.Box(0.0, 1.0, (observation_size(scenario, with_state),), np.float32)


def observed_price(prices: Prices, service: float) -> float:
    """Return the observed price of a message: m / (m + 0.05), where it costs as much as a wait of m.

    Args:
        prices: The prices; where waiting costs nothing the result is 1.
        service: Mean service time, the unit of m.
    """
    scale = PRICE_SCALE * prices.wait * service  # multiplied out: m itself may be too large for a float
    return 1.0 if scale == 0.0 else prices.message / (prices.message + scale)


class Sight:
    """The arrays of one env that the kernels write through its VIEW record, and the constants in it.

    Attributes:
        observation: (L,) float32, overwritten at every step.
        mask: (A,) int8, overwritten at every step.
        outcome: () OUTCOME, overwritten at every step.
    """

    linked: tuple[str, ...] = ("observation", "mask", "outcome")  # arrays whose addresses the record holds

    def __init__(self, scenario: Scenario, entries: int, actions: int) -> None:
        """Allocate for L `entries` and A `actions`, and note the constants of the scenario."""
        self.observation = np.zeros(entries, np.float32)
        self.mask = np.zeros(actions, np.int8)
        self.outcome: Array = np.zeros((), observe.OUTCOME)
        self._record: npt.NDArray[Any] = np.zeros(1, observe.VIEW)
        prices, service = scenario.prices, mean_service_time(scenario)
        self._record["actions"] = actions
        self._record["service"] = service
        self._record["fastest"] = max(pool.rate for pool in scenario.pools)
        self._record["load"] = min(scenario.nominal_load, LARGEST_LOAD) / LARGEST_LOAD
        self._record["price"] = observed_price(prices, service)
        self._record["wait_price"], self._record["block_price"] = prices.wait, prices.block
        self._record["message_price"] = prices.message
        self._link()

    @property
    def address(self) -> int:
        """What the kernels know the record by."""
        return int(self._record.ctypes.data)

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    def _link(self) -> None:
        """Write the addresses of all arrays where the kernels read them."""
        for name in self.linked:
            self._record[name] = getattr(self, name).ctypes.data


class View(Sight):
    """The arrays of an env whose actions are steps of a catalog: what a router knows, and what it may do.

    Attributes:
        chains: (A, CHAIN_STEPS) STEP, what the actions mean.
        gaps: (R,) float64, nominal mean time between a router's arrivals, in ticks.
    """

    linked = (*Sight.linked, "chains", "gaps")

    def __init__(self, scenario: Scenario, catalog: tuple[Step, ...], tick: float, with_state: bool) -> None:
        """Allocate, and note the constants.

        Args:
            scenario: The system.
            catalog: What the A actions mean.
            tick: Time units a tick of the system's clock.
            with_state: Whether the observation ends with the state.

        Raises:
            PolicyError: A step names a pool that the scenario does not have.
        """
        chains = encode(tuple(part for step in catalog for part in with_fallback(step)), scenario)
        self.chains: Array = chains.reshape(len(catalog), observe.CHAIN_STEPS)
        self.gaps = nominal_gaps(scenario, tick)
        super().__init__(scenario, observation_size(scenario, with_state), len(catalog))
        self._record["with_state"] = with_state


def nominal_gaps(scenario: Scenario, tick: float) -> npt.NDArray[np.float64]:
    """Return the mean time between a router's arrivals, (R,) numbers in ticks; infinite if it gets none."""
    rates: npt.NDArray[np.float64] = np.array(scenario.router_shares) * (scenario.total_arrival_rate * tick)
    with np.errstate(divide="ignore"):
        return 1.0 / rates
