"""What each router of a `ControlEnv` does, observes and pays in a period."""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.envs.base import Observation
from pull_env.kernels.envs import control
from pull_env.policy.catalog import mean_service_time
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.linked_record import Array, Floats, LinkedRecord
from pull_env.simulation.kernel_data.view import RouterObservation, local_size, observation_names

LONGEST_RESERVATION = 4.0  # mean service times
SHARPNESS = 4  # power that turns a number of the box into a weight
PERIOD_NAMES = ("wait", "blocked", "messages")


def control_names(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the entries of an observation of `ControlEnv`."""
    pools = [f"pool {pool}: found a message" for pool in range(len(scenario.pools))]
    return (*observation_names(scenario), *pools, *(f"period: {name}" for name in PERIOD_NAMES))


class ControlAccounts(LinkedRecord):
    """Mixtures of routers in a period, and sums over their customers.

    Attributes:
        accounts: (R,) ACCOUNT, sums over the customers of each router.
        observation_sums: (R, L + J) float64, sums of what they observed.
        mixtures: (R, A) float64, the weights of the steps.
        chains: (R, A, CHAIN_STEPS) STEP, what the actions mean to each router.
    """

    linked = ("mixtures", "chains", "accounts", "observation_sums")

    def __init__(self, scenario: Scenario, observed: RouterObservation) -> None:
        """Allocate for the routers of `scenario` and the actions of `observed`."""
        R, J, entries = scenario.routers, len(scenario.pools), local_size(scenario)
        self._service = mean_service_time(scenario)
        self.chains: Array = np.repeat(observed.chains[None], R, axis=0)
        self._stoppable = observed.chains["stop_at"] >= 0  # (A, CHAIN_STEPS) probes that the action may end
        self.mixtures: Floats = np.zeros((R, observed.chains.shape[0]))
        self.accounts: Array = np.zeros(R, control.ACCOUNT)
        self.observation_sums: Floats = np.zeros((R, entries + J))
        self.record: Array = np.zeros(1, control.CONTROL)
        self.record["entries"] = entries
        self.link()

    def open(self, actions: Floats) -> None:
        """Begin a period of `actions`, (A + 1,) for all routers or (R, A + 1)."""
        self.mixtures[:] = mixture(actions[..., :-1])
        waits = (1.0 + actions[..., -1]) / 2 * LONGEST_RESERVATION * self._service
        self.chains["stop_at"][:, self._stoppable] = waits[..., None]
        self.clear()

    def clear(self) -> None:
        """Set all sums to 0."""
        self.accounts[:] = 0
        self.observation_sums[:] = 0.0

    def observe_all(self) -> Observation:
        """Return the means over the customers of all routers, (L + J + 3,) float32."""
        return self._observe(
            self.observation_sums.sum(axis=0), int(self.accounts["observations"].sum()), self.accounts
        )

    def observe_one(self, router: int) -> Observation:
        """Return the means over the customers of `router`, (L + J + 3,) float32."""
        return self._observe(
            self.observation_sums[router], int(self.accounts["observations"][router]), self.accounts[[router]]
        )

    def means(self, accounts: Array) -> dict[str, Any]:
        """Return the number of customers in `accounts`, and their means, else 0."""
        customers = int(accounts["customers"].sum())
        names = ("cost", "wait", "blocked", "messages")
        return {"customers": customers} | {
            name: float(accounts[name].sum()) / max(customers, 1) for name in names
        }

    def _observe(self, sums: Floats, count: int, accounts: Array) -> Observation:
        means = self.means(accounts)
        wait, messages = means["wait"] / self._service, means["messages"]
        period = (wait / (1 + wait), means["blocked"], messages / (1 + messages))
        return np.append(sums / count, period).astype(np.float32)


def mixture(numbers: Floats) -> Floats:
    """Return the mixtures, (..., A) weights of sum 1, for `numbers` from -1 to 1."""
    weights = ((1.0 + numbers) / 2) ** SHARPNESS
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), 1.0 / weights.shape[-1])
