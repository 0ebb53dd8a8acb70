"""`RouterEnv`, in Gymnasium `pull_env/Router-v0`: one agent acts for whichever router is asked."""

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
    """A router decides where each customer goes, and what it asks before.

    ## Description

    Customers arrive at R routers in front of J pools of servers. The agent acts for whichever router is
    asked: **one customer is one step**. It picks a step from a catalog: use a pull-message, recall an earlier
    answer, send blind, or probe servers one at a time until an answer is good enough. Knowing more costs
    messages, knowing less costs waiting.

    ## Action space

    `Discrete`: an index into `catalog`. The default catalog for J pools has 3J + 4(J + 1) entries:

    | action | step |
    |---|---|
    | 0 ... J-1 | take: assign to a server of pool j whose pull-message the router holds |
    | J ... 2J-1 | recall: assign to the server of pool j with the least remembered queue |
    | 2J ... 3J-1 | send: assign to a random server of pool j |
    | 3J + 4j + w | probe at most 8 servers of pool j, assign to the one of least expected delay |
    | 7J + w | the same over all servers, drawn in proportion to their rates |

    A probe asks one server after the other, and stops at an answer that promises a wait of 0, 0.5, 1 or 2
    mean service times (w = 0 ... 3) or less.

    Every action is always legal: a take without a message, and a recall of nothing, send to that pool (over
    all pools, in proportion to the rates). `action_masks()` and `info["action_mask"]` tell which actions are
    real.

    ## Observation space

    `Box(0, 1, (9J + 4,), float32)`: what the router at hand knows, nothing else. Times are in mean service
    times, n / capacity; x / (1 + x) maps an unbounded x to [0, 1]. Recent means weigh the latest by 1/16;
    means of waits and shares are 0 before there was anything to count.

    | index | meaning | low | high |
    |---|---|---|---|
    | 9j | size of pool j, as a share of all servers | 0 | 1 |
    | 9j + 1 | its service rate, relative to the fastest pool | 0 | 1 |
    | 9j + 2 | its buffer B, as B / (1 + B); 1: no limit | 0 | 1 |
    | 9j + 3 | pull-messages h that the router holds from it, as h / (1 + h) | 0 | 1 |
    | 9j + 4 | wait w promised by the least remembered queue, as w / (1 + w); 1: nothing remembered | 0 | 1 |
    | 9j + 5 | age a of that memory, as a / (1 + a); 1: nothing remembered | 0 | 1 |
    | 9j + 6 | recent mean w of the waits that probes of the pool promised, as w / (1 + w) | 0 | 1 |
    | 9j + 7 | recent share of probes of the pool that found an idle server | 0 | 1 |
    | 9j + 8 | mean age a of the messages held, as a / (1 + a), any that leaves being of it; 1: none | 0 | 1 |
    | 9J | own recent arrival rate: nominal gap / (nominal gap + recent mean gap); 0.5: as expected | 0 | 1 |
    | 9J + 1 | recent share of own customers that found no pull-message | 0 | 1 |
    | 9J + 2 | price of a message, worth a wait of m, as m / (m + 0.05); 1: waiting is free | 0 | 1 |
    | 9J + 3 | nominal load, as min(load, 1.5) / 1.5 | 0 | 1 |

    With `observation="with-state"` there follows, from index `local_size` on, what only a simulator sees, for
    a critic in training; a router must not act on it:

    | index - local_size | meaning | low | high |
    |---|---|---|---|
    | 5j + q | share of the servers of pool j that hold q customers, q = 0 ... 3 | 0 | 1 |
    | 5j + 4 | share of the servers of pool j that hold 4 or more | 0 | 1 |
    | 5J | share of the routers that hold no pull-message | 0 | 1 |
    | 5J + 1 | share of all messages out that the router at hand holds | 0 | 1 |
    | 5J + 2 | phase of modulated arrivals as the customer came: its number, by that of the last one; in a day
    (1 + sine) / 2; 0 for all other arrivals | 0 | 1 |
    | 5J + 3 | share of all servers that accept nothing, as they are down or drained | 0 | 1 |

    `pull_env.simulation.kernel_data.view.observation_names` names every entry. The length depends on J only.

    ## Reward

    Minus the cost that the step caused: `prices.wait` x wait, or `prices.block` if the customer is blocked,
    and `prices.message` x messages of all kinds from the customer's arrival to the next one. The wait is the
    mean given the queue found, or with a trace the realised one. So the rewards of N customers sum to -N x
    cost of the run.

    ## Info

    `reset` and `step` give the same keys. Of the customer placed: `wait` (float), `blocked` (bool),
    `messages` (int), `cost` (float); of the moment at which the next one arrives: `router` (int), which is
    now asked, -1 when a trace has ended, `time` (float, in time units), and `action_mask` ((actions,) int8).

    ## Start

    The system is empty, every server has announced itself to a random router, and the first customer has
    arrived. An episode of `reset(seed=s)` is replication 0 of `simulate(seed=s)`; each `reset()` after it is
    the next replication, and `options={"episode": k}` is replication k.

    ## End

    Never terminated, as the task goes on without end. Truncated after `customers` customers, or when a trace
    ends; then the observation is that of the router asked last.

    ## Arguments

    * `scenario`: a preset's name, the path of a TOML file, a mapping, or a `Scenario`.
    * `catalog`: a list of steps, or of tables with their `kind`; None: the default.
    * `announce`: the pull protocol, an `Announce` or a table of its fields; None: servers announce nothing.
    * `customers`: customers an episode, at least 2.
    * `memory`: servers that a router remembers in each pool; or a `Memory`, or a table of its fields.
    * `observation`: `local` or `with-state`.
    * `render_mode`: None, `ansi` (`render` returns a text) or `rgb_array` (it returns (height, 960, 3)
      uint8 pixels). `gymnasium.make(..., render_mode="human")` shows them in a window, which needs pygame.

    With plain values for all of them `env.spec.to_json()` can be read back.

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
        tick = self._build((*self.catalog, Recall()), kept)
        self._observed = RouterObservation(self.scenario, self.catalog, tick, self.with_state)
        self._link()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Assign the current customer by entry `action` of the catalog, and run to the next one.

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
        """Move the arrays into these rows of a batch; see `Arrays.gather` and `RouterObservation.move`."""
        self.simulator.arrays.gather(room)
        self._observed.move(*rows)
        self._link()

    def _observe(self, router: int) -> None:
        observe(self._system_address, router, self._observed_address)

    def _link(self) -> None:
        super()._link()
        self._chains_address = int(self._observed.chains.ctypes.data)


@cache
def compiled_step() -> Callable[[int, int, int], int]:
    """Return the kernel of `step`, compiled on first use: making an env stays fast."""
    return direct(step_env)
