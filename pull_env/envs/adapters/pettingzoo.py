"""Each router an agent, for PettingZoo: one at a time, or all at once.

`aec_env`: one customer is one step, and its router acts, by a step of the catalog of `pull_env/Router-v0`.
`parallel_env`: one period is one step, and each router sets its own mixture, as the one agent of
`pull_env/Control-v0` does for all. Needs `pip install "pull-env[pettingzoo]"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from pull_env.envs.base import Observation
from pull_env.envs.control import ControlEnv
from pull_env.envs.router import RouterEnv
from pull_env.scenario.validation import check_argument

try:
    from pettingzoo import AECEnv, ParallelEnv
except ModuleNotFoundError:
    raise ModuleNotFoundError("pettingzoo is missing: pip install 'pull-env[pettingzoo]'") from None

OUTCOMES = ("cost", "wait", "blocked", "messages")
Actions = Mapping[str, npt.ArrayLike]


class Routers:
    """The agents' names and spaces, and the inner env that they act in."""

    def __init__(self, env: RouterEnv | ControlEnv, reward: str) -> None:
        """Name the routers of `env`; see `aec_env` for `reward`."""
        check_argument.choice("reward", reward, ("shared", "own"))
        self.reward = reward
        self.render_mode = env.render_mode
        self.possible_agents = [f"router_{k}" for k in range(env.scenario.routers)]
        self.agents: list[str] = []  # none before `reset`
        self.observation_spaces: dict[str, spaces.Space[Any]] = {
            agent: deepcopy(env.observation_space) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, spaces.Space[Any]] = {
            agent: deepcopy(env.action_space) for agent in self.possible_agents
        }
        self._inner = env

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space of `agent`."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of `agent`."""
        return self.action_spaces[agent]

    def render(self) -> Any:
        """Return a picture from the inner env."""
        return self._inner.render()

    def close(self) -> None:
        """Close the inner env."""
        self._inner.close()

    def _begin(
        self, seed: int | None, options: Mapping[str, Any] | None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset the inner env; ignore unknown options, as PettingZoo's tests demand."""
        known = {"episode": options["episode"]} if options and "episode" in options else None
        self.agents = self.possible_agents[:]
        return self._inner.reset(seed=seed, options=known)


class AECRouters(Routers, AECEnv):  # type: ignore[misc]  # PettingZoo may be missing
    """Routers that act one at a time, for their customers; see `aec_env`."""

    metadata = {"name": "pull_env_router_v0", "render_modes": RouterEnv.metadata["render_modes"]}  # noqa: RUF012
    _inner: RouterEnv

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode as `RouterEnv` does."""
        self._observation, info = self._begin(seed, options)
        self._skip_agent_selection = None  # PettingZoo's: who acts after the dead
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._info(k, info) for k, agent in enumerate(self.agents)}
        self._select(info)

    def step(self, action: Any) -> None:
        """Assign the current customer by `action`; None for an agent that has ended.

        Raises:
            ResetNeeded: The episode has not begun, or all agents have left it.
            ValueError: There is no such action.
        """
        if not self.agents:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        agent = self.agent_selection
        if self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._observation, reward, _, truncated, info = self._inner.step(action)
        self._cumulative_rewards[agent] = 0.0
        if self.reward == "shared":
            self.rewards = dict.fromkeys(self.agents, reward)
        else:
            self.rewards = dict.fromkeys(self.agents, 0.0) | {agent: reward}
        self._accumulate_rewards()
        self.infos[agent] = self.infos[agent] | {name: info[name] for name in OUTCOMES}
        if truncated:
            self.truncations = dict.fromkeys(self.agents, True)
            self._deads_step_first()
        else:
            self._select(info)

    def observe(self, agent: str) -> Observation:
        """Return what `agent` knows now, whether or not it acts next, (entries,) float32."""
        if agent == self.agent_selection and not self.truncations[agent]:
            return self._observation.copy()
        return self._inner.observe(self.possible_agents.index(agent))[0]

    def _select(self, info: Mapping[str, Any]) -> None:
        """Select the router at which the next customer has arrived."""
        agent = self.possible_agents[info["router"]]
        self.agent_selection = agent
        self.infos[agent] = self.infos[agent] | {name: info[name] for name in ("time", "action_mask")}

    def _info(self, router: int, info: Mapping[str, Any]) -> dict[str, Any]:
        """Return the info of a router that has not assigned a customer yet."""
        mask = self._inner.observe(router)[1]
        return {**{name: info[name] for name in OUTCOMES}, "time": info["time"], "action_mask": mask}


class ParallelRouters(Routers, ParallelEnv):  # type: ignore[misc]  # PettingZoo may be missing
    """Routers that all set their mixtures at once; see `parallel_env`."""

    metadata = {"name": "pull_env_control_v0", "render_modes": ControlEnv.metadata["render_modes"]}  # noqa: RUF012
    _inner: ControlEnv

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode as `ControlEnv` does."""
        self._begin(seed, options)
        return self._observations(), self._infos()

    def step(
        self, actions: Actions
    ) -> tuple[
        dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Let each router follow the mixture of its action for the next period.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: An agent is missing or unknown, or an action has another shape or is not finite.
        """
        if not self.agents:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        if set(actions) != set(self.agents):
            raise ValueError(f"actions are of {', '.join(actions)}: they must be of {', '.join(self.agents)}")
        self._inner.run_period(np.stack([self._inner.clip(actions[agent]) for agent in self.agents]))
        observations, infos = self._observations(), self._infos()
        rewards = dict(zip(self.agents, self._rewards(), strict=True))
        terminations = dict.fromkeys(self.agents, False)
        truncations = dict.fromkeys(self.agents, self._inner.ended)
        if self._inner.ended:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def _observations(self) -> dict[str, Observation]:
        accounts = self._inner.complete_accounts()
        return {agent: accounts.observe_one(k) for k, agent in enumerate(self.agents)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        """Return the means over the customers of each router."""
        accounts, time = self._inner.complete_accounts(), {"time": self._inner.time}
        return {agent: accounts.means(accounts.accounts[[k]]) | time for k, agent in enumerate(self.agents)}

    def _rewards(self) -> list[float]:
        """Return minus the cost of each agent, per customer of all routers."""
        routers = self._inner.complete_accounts().accounts
        costs = routers["cost"] / routers["customers"].sum()
        if self.reward == "shared":
            costs[:] = costs.sum()
        rewards: list[float] = (0.0 - costs).tolist()
        return rewards
