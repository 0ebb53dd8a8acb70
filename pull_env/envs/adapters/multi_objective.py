"""`MORouterEnv`, `pull_env/MORouter-v0`: a vector of rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from pull_env.envs.base import Observation
from pull_env.envs.router import RouterEnv

Rewards = npt.NDArray[np.float64]
Step = tuple[Observation, Rewards, bool, bool, dict[str, Any]]


class MORouterEnv(RouterEnv):
    """`RouterEnv` with a vector as reward, for MO-Gymnasium and its wrappers.

    Everything except the reward is as in `RouterEnv`, `info["cost"]` included.

    ## Reward

    `reward_space`: `Box((-inf, -inf, -1), 0, (3,), float64)`. Each entry is minus a cost of the step, so that
    more is better:

    | index | minus | low | high |
    |---|---|---|---|
    | 0 | wait of the customer, in time units; 0 if it is blocked | -inf | 0 |
    | 1 | messages of all kinds, from the customer's arrival to the next one | -inf | 0 |
    | 2 | 1 if the customer is blocked, else 0 | -1 | 0 |

    With `weights` the weighted sum is the reward of `RouterEnv`:
    `mo_gymnasium.wrappers.LinearReward(env, weight=env.unwrapped.weights)`.

    ## Versions

    * v0: the first.

    Attributes:
        reward_space: The space of rewards.
        reward_dim: Its number of entries.
        weights: (3,) the scenario's prices of a wait, a message and a blocked customer.

    Example:
        >>> import gymnasium
        >>> import pull_env.envs.registration
        >>> env = gymnasium.make("pull_env/MORouter-v0", scenario="finite-buffers")
        >>> _ = env.reset(seed=0)
        >>> _, reward, _, _, info = env.step(24)  # probe over all servers, at most 8, for an idle one
        >>> reward.tolist() == [-info["wait"], -info["messages"], -info["blocked"]]
        True
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """Take the arguments of `RouterEnv`."""
        super().__init__(*args, **keywords)
        self.reward_space = spaces.Box(np.array([-np.inf, -np.inf, -1.0]), np.zeros(3), dtype=np.float64)
        self.reward_dim = 3
        prices = self.scenario.prices
        self.weights = np.array([prices.wait, prices.message, prices.block])

    def step(self, action: np.int64 | int) -> Step:  # type: ignore[override]  # Gymnasium has scalars only
        """Step as `RouterEnv`, with the reward as a vector."""
        observation, _, terminated, truncated, info = super().step(action)
        costs = np.array([info["wait"], info["messages"], info["blocked"]], np.float64)
        return observation, 0.0 - costs, terminated, truncated, info
