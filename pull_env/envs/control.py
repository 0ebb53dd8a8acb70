"""`ControlEnv`, `pull_env/Control-v0`: one action for many customers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE, Observation, SystemEnv
from pull_env.envs.control_accounts import ControlAccounts, control_names
from pull_env.kernels import state
from pull_env.kernels.envs import control
from pull_env.policy.catalog import as_catalog, default_catalog
from pull_env.policy.policy import Announce, Memory, Recall, Step
from pull_env.scenario.scenario import ScenarioLike
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.linked_record import Floats
from pull_env.simulation.kernel_data.view import RouterObservation


class ControlEnv(SystemEnv[npt.NDArray[np.float32]]):
    """The agent sets a mixture of steps that all routers follow for a period.

    ## Description

    Customers arrive at R routers in front of J pools of servers. As in `pull_env/Router-v0`, a router assigns
    its customer by a step of a catalog; but the agent does not choose the step of each customer. Once every
    `period` customers it sets how likely each step is, and how good an answer must be to end a probe. This is
    continuous control, for SAC, TD3 and the like: **one period is one step**.

    ## Action space

    `Box(-1, 1, (A + 1,), float32)` for a catalog of A steps. Numbers x outside are clipped.

    | index | meaning | low | high |
    |---|---|---|---|
    | 0 ... A-1 | the weight ((1 + x) / 2)^4 of each step: 1 at x = 1, 0.06 at 0, 0 at -1 | -1 | 1 |
    | A | probes stop at an answer that promises a wait of at most 2 (1 + x) mean service times | -1 | 1 |

    The mixture is the weights divided by their sum; if all are 0, all steps are equally likely. For each
    customer its router draws a step from the mixture, among those that can act: a take needs a message, a
    recall a memory. If no step with a weight can act, it draws among all, and a step that cannot act sends to
    its pool (without a pool, to all in proportion to the rates). So a weight on take and a small one on probe
    mean "take a message if there is one, else probe". Every action is legal.

    The default catalog for J pools has A = 4J + 1 steps:

    | action | step |
    |---|---|
    | 0 ... J-1 | take: assign to a server of pool j whose pull-message the router holds |
    | J ... 2J-1 | recall: assign to the server of pool j with the least remembered queue |
    | 2J ... 3J-1 | send: assign to a random server of pool j |
    | 3J ... 4J-1 | probe: ask at most 8 servers of pool j, assign to the one with the least expected delay |
    | 4J | probe: the same over all servers, drawn in proportion to their rates |

    In a catalog of your own, the action replaces the `stop_at` of probes that have one.

    ## Observation space

    `Box(0, 1, (10J + 7,), float32)`: means over the customers of the period.

    | index | name | meaning | low | high |
    |---|---|---|---|---|
    | 0 ... 9J+3 | as in Router-v0 | what the customer's router observed at its arrival | 0 | 1 |
    | 9J + 4 + j | pool j: found a message | 1 if its router held a pull-message from the pool | 0 | 1 |
    | 10J + 4 | period: wait | mean wait w in mean service times, as w / (1 + w) | 0 | 1 |
    | 10J + 5 | period: blocked | share of the customers that were blocked | 0 | 1 |
    | 10J + 6 | period: messages | messages m per customer, as m / (1 + m) | 0 | 1 |

    `pull_env.envs.control_accounts.control_names` returns these names. After `reset` there was no period
    yet: the means are over what all routers observe then, and the last three are 0.

    ## Reward

    Minus the mean cost of the period's customers, where a customer's cost is `prices.wait` x wait, or
    `prices.block` if it is blocked, plus `prices.message` x messages from its arrival to the next one. So the
    rewards of an episode of N customers sum to -N / period x cost of the run.

    ## Info

    `reset` and `step` give the same keys: `customers` (int) of the period; the means over them `cost`, `wait`
    (0 for a blocked one), `blocked` and `messages` (floats); and `time` (float, in time units).

    ## Start

    The system is empty, every server has announced itself to a random router, and the first customer has
    arrived. The episode of `reset(seed=s)` is replication 0 of `simulate(seed=s)`; each `reset()` after that
    gives the next replication, and `options={"episode": k}` gives replication k.

    ## End

    Never terminated: the task has no end. Truncated after `customers` customers, or when a trace ends, which
    may cut the last period short.

    ## Arguments

    * `scenario`: a preset's name, the path of a TOML file, a mapping, or a `Scenario`.
    * `catalog`: a list of steps, or of tables with their `kind`; None: the default.
    * `announce`: the pull protocol, an `Announce` or a table of its fields; None: servers announce nothing.
    * `period`: customers per step.
    * `customers`: customers per episode: a multiple of `period`, at least two periods.
    * `memory`: servers that a router remembers in each pool; or a `Memory`, or a table of its fields.
    * `render_mode`: None, `ansi` or `rgb_array`; see `Router-v0`.

    If all are plain values, `env.spec.to_json()` can be read back.

    ## Versions

    * v0: the first.

    Example:
        >>> import gymnasium, numpy
        >>> import pull_env.envs.registration
        >>> env = gymnasium.make("pull_env/Control-v0", scenario="two-speeds", period=50)
        >>> observation, info = env.reset(seed=0)
        >>> observation.shape, env.action_space.shape
        ((27,), (10,))
        >>> action = numpy.full(10, -1, numpy.float32)
        >>> action[8] = 1  # all customers probe over all servers, until one is idle
        >>> observation, reward, terminated, truncated, info = env.step(action)
        >>> info["customers"], reward == -info["cost"], truncated
        (50, True, False)

    Raises:
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "two-speeds",
        *,
        catalog: Sequence[Step | Mapping[str, Any]] | None = None,
        announce: Announce | Mapping[str, Any] | None = IDLE_SERVERS_ANNOUNCE,
        period: int = 100,
        customers: int = 10_000,
        memory: Memory | Mapping[str, Any] | int = 8,
        render_mode: str | None = None,
    ) -> None:
        """Check the arguments; see the class."""
        super().__init__(scenario, announce, customers, memory, render_mode)
        self.period = check_argument.whole("period", period, 1)
        if self.customers % self.period or self.customers < 2 * self.period:
            allowed = f"a multiple of period, {period}, from {2 * period}"
            raise check_argument.refusal("customers", customers, allowed)
        self.catalog: tuple[Step, ...] = (
            default_catalog(self.scenario, (0.0,)) if catalog is None else as_catalog(catalog, self.scenario)
        )
        self.action_space = spaces.Box(-1.0, 1.0, (len(self.catalog) + 1,), np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (len(control_names(self.scenario)),), np.float32)
        time_step = self._build((*self.catalog, Recall()), state.KEEP_OBSERVATION | state.KEEP_MEMORY)
        self._observed = RouterObservation(self.scenario, self.catalog, time_step, with_state=False)
        self._accounts = ControlAccounts(self.scenario, self._observed)
        self._link()

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let all routers follow the mixture of `action` for the next period.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: The action has another shape, or is not finite.
        """
        self.run_period(self.clip(action))
        info = self._info()
        return self._accounts.observe_all(), 0.0 - info["cost"], False, self.ended, info

    def clip(self, action: npt.ArrayLike) -> Floats:
        """Return `action`, (A + 1,) numbers, clipped to the action space.

        Raises:
            ValueError: It has another shape, or is not finite.
        """
        numbers = np.asarray(action, np.float64)
        if numbers.shape != self.action_space.shape or not np.isfinite(numbers).all():
            raise check_argument.refusal("action", action, f"{len(self.catalog) + 1} numbers from -1 to 1")
        return numbers.clip(-1.0, 1.0)

    def run_period(self, actions: Floats) -> None:
        """Let routers follow the mixtures of `actions` for the next period.

        Args:
            actions: (A + 1,) numbers for all routers, or (R, A + 1).

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
        """
        if self.ended:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        self._accounts.open(actions)
        missing = self.period
        while missing and self.simulator.has_customer:
            block = min(missing, self.simulator.supply())
            missing -= control.play_period(*self._addresses, block)
        left = self._observed.record["left"]
        left[:] = left - self.period if self.simulator.has_customer else 0

    def complete_accounts(self) -> ControlAccounts:
        """Return the accounts, where routers without customers observe once."""
        control.observe_missing(*self._addresses)
        return self._accounts

    @property
    def time(self) -> float:
        """Now, in time units."""
        return float(self._observed.outcome["time"])

    def _observe_start(self) -> tuple[Observation, dict[str, Any]]:
        self._accounts.clear()
        return self.complete_accounts().observe_all(), self._info()

    def _info(self) -> dict[str, Any]:
        return self._accounts.means(self._accounts.accounts) | {"time": self.time}

    def _link(self) -> None:
        self._addresses = self.simulator.address, self._observed.address, self._accounts.address
