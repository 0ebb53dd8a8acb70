"""`MORouterEnv`, in Gymnasium `pull_env/MORouter-v0`: a reward for each of the things that cost."""

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
    """`RouterEnv` with a vector as its reward, by the conventions of MO-Gymnasium: its wrappers work on it.

    Everything but the reward is as there, `info["cost"]` included.

    ## Reward

    `reward_space`: `Box((-inf, -inf, -1), 0, (3,), float64)`. Each entry is minus a quantity that a step
    caused, so that more is better:

    | entry | minus | low | high |
    |---|---|---|---|
    | 0 | wait of the customer placed, in time units; 0 if it is blocked | -inf | 0 |
    | 1 | messages of all kinds, from the customer's arrival to the next one | -inf | 0 |
    | 2 | 1 if the customer is blocked, else 0 | -1 | 0 |

    With `weights` the weighted sum is the reward of `RouterEnv`:
    `mo_gymnasium.wrappers.LinearReward(env, weight=env.unwrapped.weights)`.

    ## Versions

    * v0: the first.

    Attributes:
        reward_space: The space of rewards.
        reward_dim: Their number of entries.
        weights: (3,) prices of a wait, a message and a block, as the scenario has them.

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
        """Take what `RouterEnv` takes."""
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
