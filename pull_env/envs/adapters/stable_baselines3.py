"""`VecRouter`: many `RouterEnv` with the interface of Stable-Baselines3.

    model = PPO("MlpPolicy", VecRouter("two-speeds", n_envs=256, seed=0))

Import it from `pull_env.sb3`: that imports Stable-Baselines3 and torch, which `import pull_env` must not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.scenario.scenario import Scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.seeds import spawn_seeds

Observations = npt.NDArray[np.float32]
Indices = int | Iterable[int] | None


class VecRouter(VecEnv):
    """`RouterVectorEnv` for Stable-Baselines3 and sb3-contrib.

    Rewards are float32, as the learners expect; the cost in `infos` is float64. Each info has the entries of
    `RouterEnv` and `TimeLimit.truncated`, but no mask, which `env_method("action_masks")` returns; at the end
    of an episode it is the final info, with `terminal_observation`.

    Seeds come from `spawn_seeds`, so that runs of different seeds share no streams.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any] = "two-speeds",
        n_envs: int = 1,
        seed: int | None = None,
        *,
        workers: int | None = None,
        **arguments: Any,
    ) -> None:
        """Build the envs.

        Args:
            scenario: A preset's name, the path of a TOML file, a mapping, or a `Scenario`.
            n_envs: How many.
            seed: From 0, for the first reset; None: from the operating system.
            workers: Threads; None: as many as are worth it.
            **arguments: Further arguments of `RouterEnv`.

        Raises:
            ValueError: An argument is not allowed; the message names it, its value, and what is.
            TypeError: An argument is unknown to `RouterEnv`.
        """
        self.envs = RouterVectorEnv(
            check_argument.whole("n_envs", n_envs, 1),
            scenario=scenario,
            autoreset_mode=AutoresetMode.SAME_STEP,
            workers=workers,
            **arguments,
        )
        super().__init__(n_envs, self.envs.single_observation_space, self.envs.single_action_space)
        self._actions: npt.NDArray[Any] = np.zeros(n_envs, np.int64)
        if seed is not None:
            self.seed(check_argument.whole("seed", seed, 0))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next reset: those of run `seed`, shared by no other run."""
        if seed is None:
            seed = int(np.random.randint(2**32, dtype=np.uint64))  # noqa: NPY002  as Stable-Baselines3 does
        self._seeds = [*spawn_seeds(seed, self.num_envs)]
        return self._seeds

    def reset(self) -> Observations:
        """Start an episode of every env; infos are in `reset_infos`.

        Seeds and options are used once.
        """
        for k, (seed, options) in enumerate(zip(self._seeds, self._options, strict=True)):
            self.reset_infos[k] = self.envs.call_one(k, "reset", seed=seed, options=options)[1]
        self._reset_seeds()
        self._reset_options()
        return self.envs.observations()

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Store the actions, (n_envs,) whole numbers, for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observations, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Step every env; an env that ended has begun its next episode."""
        observations, rewards, _, dones, infos = self.envs.step(self._actions)
        listed = _as_list(infos)
        for k in np.flatnonzero(dones).tolist():
            self.reset_infos[k] = listed[k]
            listed[k] = {name: infos["final_info"][name][k].item() for name in listed[k]}
            listed[k]["terminal_observation"] = infos["final_obs"][k]
        for info, done in zip(listed, dones.tolist(), strict=True):
            info["TimeLimit.truncated"] = done  # the task has no end
        return observations, rewards.astype(np.float32), dones, listed

    def close(self) -> None:
        """Stop the threads."""
        self.envs.close()

    def get_images(self) -> list[Any]:
        """Return a picture of every env."""
        return self.env_method("render")

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the envs."""
        return [env.get_wrapper_attr(attr_name) for env in self._at(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the envs to `value`."""
        for env in self._at(indices):
            env.set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the envs, and return the results."""
        if method_name == "action_masks" and indices is None:
            return list(self.envs.action_masks())  # called at every step
        chosen = self._get_indices(indices)
        return [self.envs.call_one(k, method_name, *method_args, **method_kwargs) for k in chosen]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: Indices = None) -> list[bool]:
        """Return False for each env: wrappers of single envs would slow down a batch."""
        return [False for _ in self._get_indices(indices)]

    def _at(self, indices: Indices) -> list[RouterEnv]:
        return [self.envs.envs[k] for k in self._get_indices(indices)]


def _as_list(infos: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the infos of a batch env by env, as plain numbers."""
    names = ("cost", "wait", "blocked", "messages", "router", "time")
    columns = (infos[name].tolist() for name in names)
    return [
        {"cost": cost, "wait": wait, "blocked": blocked, "messages": messages, "router": router, "time": time}
        for cost, wait, blocked, messages, router, time in zip(*columns, strict=True)
    ]
