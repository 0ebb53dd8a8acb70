"""`ControlEnv`, in Gymnasium `pull_env/Control-v0`: the agent sets what routers do for many customers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE, Observation, SystemEnv
from pull_env.envs.control_accounts import Books, control_names
from pull_env.kernels import state
from pull_env.kernels.envs import control
from pull_env.policy.catalog import as_catalog, default_catalog
from pull_env.policy.policy import Announce, Memory, Recall, Step
from pull_env.scenario.scenario import ScenarioLike
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.view import RouterObservation
from pull_env.simulation.simulator import Floats


class ControlEnv(SystemEnv[npt.NDArray[np.float32]]):
    """The agent sets, for a period of customers, a mixture of steps that all routers play.

    ## Description

    Customers arrive at R routers in front of J pools of servers. As in `pull_env/Router-v0`, a router places
    its customer by a step of a catalog; here the agent does not choose the step of each customer, but once in
    `period` customers how likely each step is, and how good an answer must be to end a probe. Continuous
    control, for SAC, TD3 and the like: **one period is one step**.

    ## Action space

    `Box(-1, 1, (A + 1,), float32)` for a catalog of A steps. Numbers outside are taken as the nearest within.

    | index | meaning |
    |---|---|
    | k < A | step k has the weight ((1 + x) / 2)^4 in the mixture: 1 at x = 1, 0.06 at 0, none at -1 |
    | A | probes stop at an answer that promises a wait of 2 (1 + x) mean service times or less |

    The weights over their sum are the mixture; if all are 0, all steps are alike. For each customer its
    router draws a step from the mixture among those that can act: a take needs a message, a recall a memory.
    If none with a weight can, it draws among all, and a step that cannot act sends to its pool (over all
    pools, in proportion to the rates). So a weight on take and a small one on probe are "take a message where
    there is one, else probe". Every action is legal.

    The default catalog for J pools has A = 4J + 1 steps:

    | step | meaning |
    |---|---|
    | 0 ... J-1 | take: assign to a server of pool j whose pull-message the router holds |
    | J ... 2J-1 | recall: assign to the server of pool j with the least remembered queue |
    | 2J ... 3J-1 | send: assign to a random server of pool j |
    | 3J ... 4J-1 | probe at most 8 servers of pool j, assign to the one of least expected delay |
    | 4J | the same over all servers, drawn in proportion to their rates |

    In a catalog of your own, a probe without `stop_at` is left as it is; in others the action replaces it.

    ## Observation space

    `Box(0, 1, (9J + 7,), float32)`: means over the period.

    | index | meaning | low | high |
    |---|---|---|---|
    | 0 ... 9J+3 | what asked routers saw, entry by entry as in `pull_env/Router-v0` | 0 | 1 |
    | 9J + 4 + j | share of the customers whose router held a pull-message from pool j | 0 | 1 |
    | 9J + 4 | mean wait w in mean service times, as w / (1 + w) | 0 | 1 |
    | 9J + 5 | share of the customers that were blocked | 0 | 1 |
    | 9J + 6 | messages m a customer, as m / (1 + m) | 0 | 1 |

    `pull_env.envs.control_accounts.control_names` names every entry. After `reset` there was no period
    yet: the means are over what all routers see then, and the last three are 0.

    ## Reward

    Minus the mean cost of the period's customers, where a customer's cost is `prices.wait` x wait, or
    `prices.block` if it is blocked, and `prices.message` x messages from its arrival to the next one. So the
    rewards of an episode of N customers sum to -N / period x cost of the run.

    ## Info

    `reset` and `step` give the same keys: `customers` (int) of the period, means over them: `cost`, `wait`
    (0 for a blocked one), `blocked`, `messages` (floats); and `time` (float, in time units).

    ## Start

    The system is empty, every server has announced itself to a random router, and the first customer has
    arrived. An episode of `reset(seed=s)` is replication 0 of `simulate(seed=s)`; each `reset()` after it is
    the next replication, and `options={"episode": k}` is replication k.

    ## End

    Never terminated, as the task goes on without end. Truncated after `customers` customers, or when a trace
    ends, within a period perhaps.

    ## Arguments

    * `scenario`: a preset's name, the path of a TOML file, a mapping, or a `Scenario`.
    * `catalog`: a list of steps, or of tables with their `kind`; None: the default.
    * `announce`: the pull protocol, an `Announce` or a table of its fields; None: servers announce nothing.
    * `period`: customers a step.
    * `customers`: customers an episode: a multiple of `period`, two periods at least.
    * `memory`: servers that a router remembers in each pool; or a `Memory`, or a table of its fields.
    * `render_mode`: None, `ansi` or `rgb_array`; see `Router-v0`.

    With plain values for all of them `env.spec.to_json()` can be read back.

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
        tick = self._build((*self.catalog, Recall()), state.KEEP_OBSERVATION | state.KEEP_MEMORY)
        self._observed = RouterObservation(self.scenario, self.catalog, tick, with_state=False)
        self._books = Books(self.scenario, self._observed)
        self._link()

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let all routers play the mixture of `action` for the next period.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: The action has another shape, or is not finite.
        """
        self.play(self.check(action))
        info = self._info()
        return self._books.observe_all(), 0.0 - info["cost"], False, self.ended, info

    def check(self, action: npt.ArrayLike) -> Floats:
        """Return `action`, (A + 1,) numbers, within the box.

        Raises:
            ValueError: It has another shape, or is not finite.
        """
        numbers = np.asarray(action, np.float64)
        if numbers.shape != self.action_space.shape or not np.isfinite(numbers).all():
            raise check_argument.refusal("action", action, f"{len(self.catalog) + 1} numbers from -1 to 1")
        return numbers.clip(-1.0, 1.0)

    def play(self, actions: Floats) -> None:
        """Let routers play the mixtures of `actions`, (A + 1,) for all or (R, A + 1), for the next period.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
        """
        if self.ended:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        self._books.open(actions)
        wanted = self.period
        while wanted and self.simulator.has_customer:
            block = min(wanted, self.simulator.supply())
            wanted -= control.play_period(*self._addresses, block)
        left = self._observed.record["left"]
        left[:] = left - self.period if self.simulator.has_customer else 0

    def survey(self) -> Books:
        """Return the books of the period, with what routers see now that placed no customer in it."""
        control.observe_missing(*self._addresses)
        return self._books

    @property
    def time(self) -> float:
        """Now, in time units."""
        return float(self._observed.outcome["time"])

    def _observe_start(self) -> tuple[Observation, dict[str, Any]]:
        self._books.clear()
        return self.survey().observe_all(), self._info()

    def _info(self) -> dict[str, Any]:
        return self._books.means(self._books.accounts) | {"time": self.time}

    def _link(self) -> None:
        self._addresses = self.simulator.address, self._observed.address, self._books.address
