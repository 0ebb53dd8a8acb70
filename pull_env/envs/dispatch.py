"""`DispatchEnv`, `pull_env/Dispatch-v0`: sees all queues, chooses the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from pull_env.envs.base import CustomerEnv, Observation
from pull_env.kernels.envs.dispatch import SERVER_ENTRIES, dispatch, observe_servers
from pull_env.policy.policy import Announce
from pull_env.scenario.scenario import ScenarioLike
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.view import ObservationArrays


class DispatchEnv(CustomerEnv):
    """A router that sees all queues chooses the server of each customer.

    ## Description

    Customers arrive at R routers in front of n servers in J pools. The agent acts for the router at which the
    customer arrives: **one customer is one step**. It sees all servers and chooses one. This is textbook load
    balancing, for small and medium n; looking at all queues costs 2n messages per customer, so in large
    systems `pull_env/Router-v0`, which chooses what to probe, is cheaper.

    ## Action space

    `Discrete(n)`: the server, in the order of the pools. A customer sent to a full server is blocked.
    `action_masks()` and `info["action_mask"]` say which servers have room; if none has, all are marked.

    ## Observation space

    `Box(0, 1, (4n,), float32)`; x / (1 + x) maps an unbounded x to [0, 1].

    | index | meaning | low | high |
    |---|---|---|---|
    | k | customers q at server k, the one in service included, as q / (1 + q) | 0 | 1 |
    | n + k | its service rate, relative to the fastest pool | 0 | 1 |
    | 2n + k | its buffer B, as B / (1 + B); 1: no limit; 0: it accepts nothing now | 0 | 1 |
    | 3n + k | 1: the router holds a pull-message of server k | 0 | 1 |

    ## Reward

    Minus the cost of the step: `prices.wait` x wait, or `prices.block` if the customer is blocked, plus
    `prices.message` x messages: 2n for looking, and those that servers send from the customer's arrival to
    the next one. The wait is its mean given the queue found; with a trace it is the realised wait. So the
    rewards of N customers sum to -N x cost of the run.

    ## Info

    `reset` and `step` give the same keys. For the customer just assigned: `wait` (float), `blocked` (bool),
    `messages` (int), `cost` (float); at the arrival of the next one: `router` (int), at which it arrives, -1
    when a trace has ended, `time` (float, in time units), and `action_mask` ((n,) int8).

    ## Start

    The system is empty, and the first customer has arrived. The episode of `reset(seed=s)` is replication 0
    of `simulate(seed=s)`; each `reset()` after that gives the next replication, and `options={"episode": k}`
    gives replication k.

    ## End

    Never terminated: the task has no end. Truncated after `customers` customers, or when a trace ends; then
    the observation is that of the router with the last customer.

    ## Arguments

    * `scenario`: a preset's name, the path of a TOML file, a mapping, or a `Scenario`.
    * `announce`: the pull protocol, an `Announce` or a table of its fields; None: servers announce nothing,
      as a router that sees all queues needs no pull-messages.
    * `free_information`: whether looking at all queues is free, as in most of the literature.
    * `customers`: customers per episode, at least 2.
    * `render_mode`: None, `ansi` or `rgb_array`; see `Router-v0`.

    If all are plain values, `env.spec.to_json()` can be read back.

    ## Versions

    * v0: the first.

    Example:
        >>> import gymnasium
        >>> import pull_env.envs.registration
        >>> env = gymnasium.make("pull_env/Dispatch-v0", scenario="small-mixed", free_information=True)
        >>> observation, info = env.reset(seed=0)
        >>> observation[:4].tolist(), observation[4:8].tolist()  # queues, relative rates
        ([0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 1.0, 1.0])
        >>> observation, reward, terminated, truncated, info = env.step(2)  # to an idle fast server
        >>> reward, info["messages"], info["action_mask"].tolist()
        (0.0, 0, [1, 1, 1, 1])

    Raises:
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "small-mixed",
        *,
        announce: Announce | Mapping[str, Any] | None = None,
        free_information: bool = False,
        customers: int = 10_000,
        render_mode: str | None = None,
    ) -> None:
        """Check the arguments; see the class."""
        super().__init__(scenario, announce, customers, memory=1, render_mode=render_mode)
        check_argument.flag("free_information", free_information)
        n = self.scenario.servers
        self._messages = 0 if free_information else 2 * n
        self.action_space = spaces.Discrete(n)
        self.observation_space = spaces.Box(0.0, 1.0, (SERVER_ENTRIES * n,), np.float32)
        self._build((), extra_flags=0)
        self._observed = ObservationArrays(self.scenario, SERVER_ENTRIES * n, n)
        self._link()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Assign the current customer to server `action`, and run to the next one.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: There is no such server.
        """
        left = dispatch(self._observed_address, self._index(action), self._messages)
        if left < 0:
            self._prepare_step(left)
            return self.step(action)
        return self._result(left)

    def _write_observation(self, router: int) -> None:
        observe_servers(self._system_address, router, self._observed_address)
