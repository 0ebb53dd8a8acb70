"""`RouterEnv`, `pull_env/Router-v0`: one agent acts for every router."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE, CustomerEnv, Observation
from pull_env.envs.observation import observation_box
from pull_env.kernels import state
from pull_env.kernels.compiler.jit import direct
from pull_env.kernels.envs.batch import CHAIN_BYTES, step_env
from pull_env.kernels.envs.observe import CHAIN_STEPS, observe
from pull_env.policy.catalog import as_catalog
from pull_env.policy.policy import Announce, Memory, Recall, Step
from pull_env.scenario.scenario import ScenarioLike
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.linked_record import Array, shallow_copy
from pull_env.simulation.kernel_data.view import RouterObservation, local_size


class RouterEnv(CustomerEnv):
    """A router decides where each customer goes, and which servers to probe first.

    ## Description

    Customers arrive at R routers in front of J pools of servers. The agent acts for the router at which the
    customer arrives: **one customer is one step**. It picks a step from a catalog: use a pull-message, recall
    an earlier answer, send to a random server, or probe servers one at a time until an answer is good enough.
    Knowing more costs messages, knowing less costs waiting.

    ## Action space

    `Discrete`: an index into `catalog`. The default catalog for J pools has 3J + 4(J + 1) entries:

    | action | step |
    |---|---|
    | 0 ... J-1 | take: assign to a server of pool j whose pull-message the router holds |
    | J ... 2J-1 | recall: assign to the server of pool j with the least remembered queue |
    | 2J ... 3J-1 | send: assign to a random server of pool j |
    | 3J + 4j + w | probe: ask at most 8 servers of pool j, assign to the one with the least expected delay |
    | 7J + w | probe: the same over all servers, drawn in proportion to their rates |

    A probe asks one server after the other, and stops at the first answer that promises a wait of at most 0,
    0.5, 1 or 2 mean service times (w = 0 ... 3).

    Every action is always legal: a take without a message and a recall without a memory send to their pool
    (without a pool, to all in proportion to the rates). `action_masks()` and `info["action_mask"]` say which
    actions can do what they mean.

    ## Observation space

    `Box(0, 1, (9J + 4,), float32)`: what the router with the current customer knows, nothing else. Times are
    in mean service times, n / capacity; x / (1 + x) maps an unbounded x to [0, 1]. Recent means weigh the
    latest value by 1/16; means of waits and shares start at 0.

    | index | name | meaning | low | high |
    |---|---|---|---|---|
    | 9j | pool j: size share | its share of all servers | 0 | 1 |
    | 9j + 1 | pool j: relative rate | its service rate, relative to the fastest pool | 0 | 1 |
    | 9j + 2 | pool j: buffer | its buffer B, as B / (1 + B); 1: no limit | 0 | 1 |
    | 9j + 3 | pool j: messages held | pull-messages h held from it, as h / (1 + h) | 0 | 1 |
    | 9j + 4 | pool j: remembered wait | wait w at the least queue remembered: w / (1 + w); 1: none | 0 | 1 |
    | 9j + 5 | pool j: remembered age | age a of that memory, as a / (1 + a); 1: none | 0 | 1 |
    | 9j + 6 | pool j: probed wait | recent mean wait w promised to probes, as w / (1 + w) | 0 | 1 |
    | 9j + 7 | pool j: probed idle | recent share of probes that found an idle server | 0 | 1 |
    | 9j + 8 | pool j: message age | mean age a of messages held, as a / (1 + a); 1: none held | 0 | 1 |
    | 9J | router: arrival rate | nominal gap / (nominal gap + recent mean gap); 0.5: as expected | 0 | 1 |
    | 9J + 1 | router: found no message | recent share of own customers that found no pull-message | 0 | 1 |
    | 9J + 2 | router: message price | m / (m + 0.05) if it is worth a wait of m; 1: waiting is free | 0 | 1 |
    | 9J + 3 | router: load | nominal load, as min(load, 1.5) / 1.5 | 0 | 1 |

    The mean age assumes that a message that leaves had the mean age.

    With `observation="with-state"`, what only a simulator sees follows from index `local_size` on, for a
    critic in training; a router must not use it:

    | index - local_size | name | meaning | low | high |
    |---|---|---|---|---|
    | 5j | state of pool j: idle | share of its servers that are idle | 0 | 1 |
    | 5j + q | state of pool j: queue q | share of its servers with q customers, q = 1 ... 3 | 0 | 1 |
    | 5j + 4 | state of pool j: queue 4 or more | share of its servers with 4 or more | 0 | 1 |
    | 5J | state: routers without message | share of the routers that hold no pull-message | 0 | 1 |
    | 5J + 1 | state: share of messages | share of all messages held that this router holds | 0 | 1 |
    | 5J + 2 | state: arrival phase | see below | 0 | 1 |
    | 5J + 3 | state: closed | share of all servers that accept nothing: down or drained | 0 | 1 |

    The arrival phase is the phase of modulated arrivals when the customer arrived, divided by the number of
    the last phase; (1 + sine) / 2 for arrivals by time of day; 0 for other arrivals.

    `pull_env.simulation.kernel_data.view.observation_names` returns these names. The length depends on J
    only.

    ## Reward

    Minus the cost of the step: `prices.wait` x wait, or `prices.block` if the customer is blocked, plus
    `prices.message` x messages of all kinds from the customer's arrival to the next one. The wait is its mean
    given the queue found; with a trace it is the realised wait. So the rewards of N customers sum to -N x
    cost of the run.

    ## Info

    `reset` and `step` give the same keys. For the customer just assigned: `wait` (float), `blocked` (bool),
    `messages` (int), `cost` (float); at the arrival of the next one: `router` (int), at which it arrives, -1
    when a trace has ended, `time` (float, in time units), and `action_mask` ((actions,) int8).

    ## Start

    The system is empty, every server has announced itself to a random router, and the first customer has
    arrived. The episode of `reset(seed=s)` is replication 0 of `simulate(seed=s)`; each `reset()` after that
    gives the next replication, and `options={"episode": k}` gives replication k.

    ## End

    Never terminated: the task has no end. Truncated after `customers` customers, or when a trace ends; then
    the observation is that of the router with the last customer.

    ## Arguments

    * `scenario`: a preset's name, the path of a TOML file, a mapping, or a `Scenario`.
    * `catalog`: a list of steps, or of tables with their `kind`; None: the default.
    * `announce`: the pull protocol, an `Announce` or a table of its fields; None: servers announce nothing.
    * `customers`: customers per episode, at least 2.
    * `memory`: servers that a router remembers in each pool; or a `Memory`, or a table of its fields.
    * `observation`: `local` or `with-state`.
    * `render_mode`: None, `ansi` (`render` returns a text) or `rgb_array` (it returns (height, 960, 3)
      uint8 pixels). `gymnasium.make(..., render_mode="human")` opens a window, which needs pygame.

    If all are plain values, `env.spec.to_json()` can be read back.

    ## Versions

    * v0: the first.

    Example:
        >>> import gymnasium
        >>> import pull_env.envs.registration
        >>> env = gymnasium.make("pull_env/Router-v0", scenario="two-speeds")
        >>> observation, info = env.reset(seed=0)
        >>> observation.shape, int(env.action_space.n)
        ((22,), 18)
        >>> observation, reward, terminated, truncated, info = env.step(17)  # probe over all servers
        >>> reward == -info["cost"], terminated, truncated
        (True, False, False)

    Raises:
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """

    _observed: RouterObservation

    def __init__(
        self,
        scenario: ScenarioLike = "two-speeds",
        *,
        catalog: Sequence[Step | Mapping[str, Any]] | None = None,
        announce: Announce | Mapping[str, Any] | None = IDLE_SERVERS_ANNOUNCE,
        customers: int = 10_000,
        memory: Memory | Mapping[str, Any] | int = 8,
        observation: str = "local",
        render_mode: str | None = None,
    ) -> None:
        """Check the arguments; see the class."""
        super().__init__(scenario, announce, customers, memory, render_mode)
        self.catalog = as_catalog(catalog, self.scenario)
        check_argument.choice("observation", observation, ("local", "with-state"))
        self.with_state = observation == "with-state"
        self.local_size = local_size(self.scenario)
        self.action_space = spaces.Discrete(len(self.catalog))
        self.observation_space = observation_box(self.scenario, self.with_state)
        kept = state.KEEP_OBSERVATION | state.KEEP_MEMORY | (state.KEEP_QUEUE_INDEX if self.with_state else 0)
        time_step = self._build((*self.catalog, Recall()), kept)
        self._observed = RouterObservation(self.scenario, self.catalog, time_step, self.with_state)
        self._link()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Assign the current customer by entry `action` of the catalog.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: There is no such action.
        """
        chain = self._chains_address + self._index(action) * CHAIN_BYTES
        left = compiled_step()(self._observed_address, chain, CHAIN_STEPS)
        if left < 0:
            self._prepare_step(left)
            return self.step(action)
        return self._result(left)

    def clone_into(self, room: Array, *rows: Array) -> RouterEnv:
        """Return an env like this one in these rows of a batch; neither may have begun."""
        other = shallow_copy(self)
        other.simulator, other._observed = self.simulator.clone_into(room), self._observed.clone_into(*rows)
        other._link()
        return other

    def move_into(self, room: Array, *rows: Array) -> None:
        """Move the arrays into these rows of a batch."""
        self.simulator.arrays.gather(room)
        self._observed.move(*rows)
        self._link()

    def _write_observation(self, router: int) -> None:
        observe(self._system_address, router, self._observed_address)

    def _link(self) -> None:
        super()._link()
        self._chains_address = int(self._observed.chains.ctypes.data)


@cache
def compiled_step() -> Callable[[int, int, int], int]:
    """Return the kernel of `step`, compiled on first use: making an env stays fast."""
    return direct(step_env)
