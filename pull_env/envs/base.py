"""What all envs share: a scenario in motion, its seeds and episodes, their end, and copies that go on.

Two levels: a `SystemEnv` runs a simulator, however many customers an action decides on; in a `CustomerEnv`
one customer is one step, and an action is an index.
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

from pull_env.policy.policy import Announce, Memory, Step, as_announce, as_memory
from pull_env.scenario.scenario import ScenarioLike, as_scenario
from pull_env.simulation.kernel_data.step_records import encode, needs_calendar
from pull_env.simulation.kernel_data.view import ObservationArrays
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import poisson, workload_of

Observation = npt.NDArray[np.float32]
Action = TypeVar("Action")

IDLE_SERVERS_ANNOUNCE = Announce(threshold=1)


read_outcome = struct.Struct("@dd?qqd").unpack_from  # the fields of OUTCOME, faster than numpy gives them


class SystemEnv(gym.Env[Observation, Action]):
    """A scenario in motion, in episodes. A child prepares `simulator`, and says what an action does.

    Attributes:
        scenario: The system with its prices.
        announce: The pull protocol of its servers.
        customers: Customers of an episode.
        memory: What a router remembers.
        simulator: The system's state.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  declared so by Gymnasium
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    options: tuple[str, ...] = ("episode",)  # keys that `reset(options=...)` knows
    simulator: Simulator

    def __init__(
        self,
        scenario: ScenarioLike,
        announce: Announce | Mapping[str, Any] | None,
        customers: int,
        memory: Memory | Mapping[str, Any] | int,
        render_mode: str | None,
    ) -> None:
        """Check the arguments that all envs have.

        Raises:
            ValueError: An argument is not allowed; the message names it, its value, and what is.
        """
        self.scenario = as_scenario(scenario)
        self.announce = as_announce(announce)
        self.customers = whole("customers", customers, least=2)
        self.memory = as_memory(memory)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}: it must be None, 'ansi' or 'rgb_array'")
        self.render_mode = render_mode
        self._entropy: int | None = None
        self._episode = -1
        self._left = self._fed = 0  # customers until the end of the episode, and until the next feed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode of the seed, or with `seed` its first; see the class.

        Raises:
            ValueError: An option is unknown, or has a value that is not allowed.
        """
        super().reset(seed=seed)
        episode = self._read_options(options or {})
        if seed is not None:
            self._entropy, self._episode = int(seed), -1
        elif self._entropy is None:
            self._entropy = int(self.np_random.integers(2**63))
        self._episode = self._episode + 1 if episode is None else episode
        self.simulator.reset(self._entropy, self._episode)
        self._fed = self.simulator.supply()
        self._set_left(self.customers)
        self._link()
        return self._look()

    def skip(self, steps: Sequence[Step], customers: int) -> tuple[Observation, dict[str, Any]]:
        """Let customers be placed by the chain `steps`, unseen and uncounted, at the kernel's speed.

        Args:
            steps: Those of the catalog if there is one, `Send`, or `Take` in any order but the oldest.
            customers: How many; they do not count towards the end of the episode.

        Returns:
            What `reset` returns, of the customer then at hand.

        Raises:
            ValueError: A step reads what this env does not keep, the last may find no server, or a trace has
                ended.
            ResetNeeded: No episode has begun.
        """
        if not self.begun:
            raise ResetNeeded("skip needs reset before it")
        self.simulator.check(tuple(steps))
        placed = self.simulator.run(encode(tuple(steps), self.scenario), customers)
        if not self.simulator.waiting_customer:
            self._set_left(0)
            raise ValueError(f"customers is {customers}: the trace ended after {placed}")
        self._fed = self.simulator.supply()
        return self._look()

    def render(self) -> Any:
        """Return a picture of this moment, as `render_mode` says; None, and a warning, where it is None.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self.render_mode is None:
            gym.logger.warn("render needs gymnasium.make(..., render_mode='ansi') or 'rgb_array'")
            return None
        if not self.begun:
            raise ResetNeeded("render needs reset before it")
        from pull_env.rendering import RENDERERS  # only here: they import scipy

        return RENDERERS[self.render_mode](self.simulator)

    @property
    def begun(self) -> bool:
        """Whether an episode has begun."""
        return self._episode >= 0

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled parts, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    @abstractmethod
    def _look(self) -> tuple[Observation, dict[str, Any]]:
        """Return what there is to see before the first step: nothing was caused yet."""

    @abstractmethod
    def _link(self) -> None:
        """Look up the addresses once: that costs as much as a step of the kernel."""

    def _set_left(self, customers: int) -> None:
        """Note how many customers are left until the end of the episode."""
        self._left = customers

    def _read_options(self, options: Mapping[str, Any]) -> int | None:
        """Return the number of the episode, where it is given."""
        for key in options:
            if key not in self.options:
                known = " and ".join(repr(name) for name in self.options)
                raise ValueError(f"options has an unknown key {key!r}: known are {known}")
        episode = options.get("episode")
        return None if episode is None else whole("options['episode']", episode, least=0)

    def _build(self, steps: tuple[Step, ...], extra_flags: int) -> float:
        """Build a simulator for `steps`; return the time units of its tick."""
        workload = workload_of(self.scenario)
        if workload is None and needs_calendar(steps):
            workload = poisson(self.scenario)
        self.simulator = Simulator(
            self.scenario,
            steps,
            self.announce,
            memory=self.memory,
            extra_flags=extra_flags,
            workload=workload,
        )
        self._left = self._fed = 0
        return float(self.simulator.arrays.head["time_step"][0])


class CustomerEnv(SystemEnv[np.int64]):
    """An env in which one customer is one step, and the action an index. A child prepares `_observed`."""

    _observed: ObservationArrays

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are real, (actions,) flags; see the class.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if not self.begun:
            raise ResetNeeded("action_masks needs reset before it")
        return self._observed.mask.astype(np.bool_)

    def look(self, router: int) -> tuple[Observation, npt.NDArray[np.int8]]:
        """Return what `router` sees now, and its mask, whether it is asked or not.

        Raises:
            ResetNeeded: No episode has begun.
            ValueError: There is no such router.
        """
        if not self.begun:
            raise ResetNeeded("look needs reset before it")
        if not 0 <= router < self.scenario.routers:
            raise ValueError(f"router is {router}: it must be from 0 to {self.scenario.routers - 1}")
        self._observe(router)
        seen = self._observed.observation.copy(), self._observed.mask.copy()
        if self.simulator.waiting_customer:
            self._observe(int(self.simulator.arrays.head["router"][0]))
        return seen

    def _number(self, action: np.int64 | int) -> int:
        """Return the action as a whole number that there is."""
        number = operator.index(action)
        if not 0 <= number < self._actions:
            raise ValueError(f"action is {action}: it must be a whole number from 0 to {self._actions - 1}")
        return number

    def _begin(self) -> None:
        """Make sure that there is a customer at hand, and another one to follow."""
        if self._left == 0:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        if self._fed == 0:
            self._fed = self.simulator.supply()

    def _end(self) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Count the customer placed, and answer."""
        self._fed -= 1
        self._left -= 1
        answer = self._answer(self._left)
        self._left = 0 if answer[3] else self._left
        return answer

    def _look(self) -> tuple[Observation, dict[str, Any]]:
        self._observe(int(self.simulator.arrays.head["router"][0]))
        outcome = self._observed.outcome
        outcome["cost"] = outcome["wait"] = outcome["messages"] = 0
        outcome["lost"] = False
        observation, *_, info = self._answer(self._left)
        return observation, info

    def _link(self) -> None:
        self._system_address, self._observed_address = self.simulator.address, self._observed.address
        self._actions = self._observed.mask.size

    @abstractmethod
    def _observe(self, router: int) -> None:
        """Write what `router` sees now to the view."""

    def _answer(self, left: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Pack what the kernel wrote into fresh arrays and plain numbers; `left` to the episode."""
        view = self._observed
        cost, wait, blocked, messages, router, time = read_outcome(view.outcome)  # type: ignore[arg-type]
        info = {
            "cost": cost,
            "wait": wait,
            "blocked": blocked,
            "messages": messages,
            "router": router,
            "time": time,
            "action_mask": view.mask.copy(),
        }
        return view.observation.copy(), 0.0 - cost, False, left == 0 or router < 0, info


def whole(name: str, value: object, least: int) -> int:
    """Return `value` if it is a whole number from `least`.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be a whole number from {least}")
    return int(value)
