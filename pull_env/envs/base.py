"""Base classes of the envs: seeds, episodes, options, copies and rendering.

A `SystemEnv` runs a simulator; one step may assign any number of customers. In a `CustomerEnv` one step
assigns one customer, and the action is an index.
"""

from __future__ import annotations

import operator
import struct
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded

from pull_env.kernels.envs.batch import ENDED
from pull_env.policy.policy import Announce, Memory, Step, as_announce, as_memory
from pull_env.scenario.scenario import ScenarioLike, as_scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.kernel_data.view import ObservationArrays
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for

Observation = npt.NDArray[np.float32]
Action = TypeVar("Action")

IDLE_SERVERS_ANNOUNCE = Announce(threshold=1)
read_outcome = struct.Struct("@dd?qqd").unpack_from  # the fields of OUTCOME, faster than numpy reads them


class SystemEnv(gym.Env[Observation, Action]):
    """Episodes of a simulated scenario; a subclass defines the actions.

    Attributes:
        scenario: The system with its prices.
        announce: The pull protocol of its servers.
        customers: Customers per episode.
        memory: What a router remembers.
        simulator: The state of the system.
        entropy: The seed of the episodes; None before the first reset.
        episode: Number of the current episode, from 0; -1 before the first reset.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  declared so by Gymnasium
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    simulator: Simulator
    _observed: ObservationArrays

    def __init__(
        self,
        scenario: ScenarioLike,
        announce: Announce | Mapping[str, Any] | None,
        customers: int,
        memory: Memory | Mapping[str, Any] | int,
        render_mode: str | None,
    ) -> None:
        """Check the arguments that all envs share.

        Raises:
            ValueError: An argument is not allowed; the message names it, its value, and what is.
        """
        self.scenario = as_scenario(scenario)
        self.announce = as_announce(announce)
        self.customers = check_argument.whole("customers", customers, 2)
        self.memory = as_memory(memory)
        check_argument.optional(
            check_argument.choice, "render_mode", render_mode, self.metadata["render_modes"]
        )
        self.render_mode = render_mode
        self.entropy: int | None = None
        self.episode = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode, or the first one of `seed`; see the class.

        Raises:
            ValueError: An option is unknown or has a value that is not allowed.
        """
        super().reset(seed=seed)
        episode = self._read_options(options or {})
        if seed is not None:
            self.entropy, self.episode = int(seed), -1
        elif self.entropy is None:
            self.entropy = int(self.np_random.integers(2**63))
        self.episode = self.episode + 1 if episode is None else episode
        self.simulator.reset(self.entropy, self.episode)
        self._observed.record["left"] = self.customers
        self._link()
        return self._observe_start()

    def skip(self, steps: Sequence[Step], customers: int) -> tuple[Observation, dict[str, Any]]:
        """Assign customers by the chain `steps` without observing, at kernel speed.

        Args:
            steps: From the catalog if there is one, `Send`, or `Take` in any order except oldest.
            customers: How many; they do not count towards the end of the episode.

        Returns:
            The same as `reset`, for the customer that comes next.

        Raises:
            ValueError: A step reads what this env does not keep, the last one may find no server, or a trace
                ended.
            ResetNeeded: No episode has begun.
        """
        if not self.begun:
            raise ResetNeeded("skip needs reset before it")
        self.simulator.check(tuple(steps))
        assigned = self.simulator.run(encode(tuple(steps), self.scenario), customers)
        if not self.simulator.has_customer:
            self._observed.record["left"] = 0
            raise ValueError(f"customers is {customers}: the trace ended after {assigned}")
        return self._observe_start()

    def render(self) -> Any:
        """Return a picture of the system; without a `render_mode` warn, return None.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self.render_mode is None:
            gym.logger.warn("render needs gymnasium.make(..., render_mode='ansi') or 'rgb_array'")
            return None
        if not self.begun:
            raise ResetNeeded("render needs reset before it")
        from pull_env.rendering import RENDERERS  # here, as it imports scipy

        return RENDERERS[self.render_mode](self.simulator)

    @property
    def begun(self) -> bool:
        """Whether an episode has begun."""
        return self.episode >= 0

    @property
    def ended(self) -> bool:
        """Whether no customer is left to assign: the episode has ended or not begun."""
        return bool(self._observed.record["left"][0] == 0)

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Restore a copied or unpickled env, whose arrays have new addresses."""
        self.__dict__.update(attributes)
        self._link()

    @abstractmethod
    def _observe_start(self) -> tuple[Observation, dict[str, Any]]:
        """Return observation and info before a first step: no cost yet."""

    @abstractmethod
    def _link(self) -> None:
        """Store the addresses of the arrays: a look-up costs as much as a kernel step."""

    def _read_options(self, options: Mapping[str, Any]) -> int | None:
        """Return the number of the episode if given."""
        episode = check_argument.known_keys("options", options, ("episode",)).get("episode")
        return check_argument.optional(check_argument.whole, "options.episode", episode, 0)

    def _build(self, steps: tuple[Step, ...], extra_flags: int) -> float:
        """Build a simulator that keeps what `steps` read; return its tick in time units.

        Args:
            steps: Steps that will assign customers.
            extra_flags: What to keep besides, KEEP_* bits.
        """
        workload = workload_for(self.scenario, steps)
        self.simulator = Simulator(
            self.scenario,
            steps,
            self.announce,
            memory=self.memory,
            extra_flags=extra_flags,
            workload=workload,
        )
        return float(self.simulator.arrays.head["time_step"][0])


class CustomerEnv(SystemEnv[np.int64]):
    """An env in which one step assigns one customer; a subclass prepares `_observed`."""

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions can act now, (actions,) flags; see the class.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if not self.begun:
            raise ResetNeeded("action_masks needs reset before it")
        return self._observed.mask.astype(np.bool_)

    def observe(self, router: int) -> tuple[Observation, npt.NDArray[np.int8]]:
        """Return the observation and mask of any router.

        Raises:
            ResetNeeded: No episode has begun.
            ValueError: There is no such router.
        """
        if not self.begun:
            raise ResetNeeded("observe needs reset before it")
        router = check_argument.whole("router", router, 0, self.scenario.routers - 1)
        self._write_observation(router)
        observation, mask = self._observed.observation.copy(), self._observed.mask.copy()
        if self.simulator.has_customer:
            self._write_observation(int(self.simulator.arrays.head["router"][0]))
        return observation, mask

    def _index(self, action: np.int64 | int) -> int:
        """Return the action as an int, if there is such an action."""
        index = operator.index(action)
        if not 0 <= index < self._actions:
            raise check_argument.refusal("action", index, f"a whole number from 0 to {self._actions - 1}")
        return index

    def _prepare_step(self, refusal: int) -> None:
        """Make the next step possible, after a kernel refused it with the code `refusal`."""
        if refusal == ENDED:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        self.simulator.supply()

    def _observe_start(self) -> tuple[Observation, dict[str, Any]]:
        self._write_observation(int(self.simulator.arrays.head["router"][0]))
        outcome = self._observed.outcome
        outcome["cost"] = outcome["wait"] = outcome["messages"] = 0
        outcome["lost"] = False
        observation, *_, info = self._result(int(self._observed.record["left"][0]))
        return observation, info

    def _link(self) -> None:
        self._system_address, self._observed_address = self.simulator.address, self._observed.address
        self._observed.record["system"] = self._system_address
        self._actions = self._observed.mask.size

    @abstractmethod
    def _write_observation(self, router: int) -> None:
        """Write what `router` observes now to `_observed`."""

    def _result(self, left: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Return what `step` returns, in new arrays; `left`: customers left."""
        observed = self._observed
        cost, wait, blocked, messages, router, time = read_outcome(observed.outcome)  # type: ignore[arg-type]
        info = {
            "cost": cost,
            "wait": wait,
            "blocked": blocked,
            "messages": messages,
            "router": router,
            "time": time,
            "action_mask": observed.mask.copy(),
        }
        return observed.observation.copy(), 0.0 - cost, False, left == 0, info
