"""The routers as agents of their own, for PettingZoo: one at a time, or all at once.

`aec_env`: one customer is one step, and the router that is asked acts, by a step of the catalog of
`pull_env/Router-v0`. `parallel_env`: one period is one step, and each router sets a mixture of its own, as
the one agent of `pull_env/Control-v0` does for all. Needs `pip install "pull-env[pettingzoo]"`.
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
    """What both views share: the names of the agents, their spaces, and an env that they act in."""

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
        """Return the space of what `agent` sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of what `agent` may do."""
        return self.action_spaces[agent]

    def render(self) -> Any:
        """Return what the env within draws."""
        return self._inner.render()

    def close(self) -> None:
        """Release nothing, as nothing is held."""
        self._inner.close()

    def _begin(
        self, seed: int | None, options: Mapping[str, Any] | None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset the env within. Options that it does not know are let pass, as PettingZoo's tests demand."""
        known = {"episode": options["episode"]} if options and "episode" in options else None
        self.agents = self.possible_agents[:]
        return self._inner.reset(seed=seed, options=known)


class AECRouters(Routers, AECEnv):  # type: ignore[misc]  # PettingZoo may be missing
    """Routers that act one at a time, whoever is asked; see `aec_env`."""

    metadata = {"name": "pull_env_router_v0", "render_modes": RouterEnv.metadata["render_modes"]}  # noqa: RUF012
    _inner: RouterEnv

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start the next episode of the seed, or with `seed` its first, as `RouterEnv` does."""
        self._seen, info = self._begin(seed, options)
        self._skip_agent_selection = None  # PettingZoo's own: who is asked after the dead
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._info(k, info) for k, agent in enumerate(self.agents)}
        self._ask(info)

    def step(self, action: Any) -> None:
        """Place the customer at hand by `action` of the asked router, an index; dead agents pass with None.

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
        self._seen, reward, _, truncated, info = self._inner.step(action)
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
            self._ask(info)

    def observe(self, agent: str) -> Observation:
        """Return what `agent` knows now, whether it is asked or not, (entries,) float32."""
        if agent == self.agent_selection and not self.truncations[agent]:
            return self._seen.copy()
        return self._inner.look(self.possible_agents.index(agent))[0]

    def _ask(self, info: Mapping[str, Any]) -> None:
        """Let the router act to which the next customer has come."""
        agent = self.possible_agents[info["router"]]
        self.agent_selection = agent
        self.infos[agent] = self.infos[agent] | {name: info[name] for name in ("time", "action_mask")}

    def _info(self, router: int, info: Mapping[str, Any]) -> dict[str, Any]:
        """Return the info of a router that has not placed a customer yet."""
        mask = self._inner.look(router)[1]
        return {**{name: info[name] for name in OUTCOMES}, "time": info["time"], "action_mask": mask}


class ParallelRouters(Routers, ParallelEnv):  # type: ignore[misc]  # PettingZoo may be missing
    """Routers that set their mixtures all at once; see `parallel_env`."""

    metadata = {"name": "pull_env_control_v0", "render_modes": ControlEnv.metadata["render_modes"]}  # noqa: RUF012
    _inner: ControlEnv

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start the next episode of the seed, or with `seed` its first, as `ControlEnv` does."""
        self._begin(seed, options)
        return self._observations(), self._infos()

    def step(
        self, actions: Actions
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Let each router play the mixture of its action for the next period.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
            ValueError: An agent is missing or unknown, or an action has another shape or is not finite.
        """
        if not self.agents:
            raise ResetNeeded("step needs reset before it: the episode has not begun, or has ended")
        if set(actions) != set(self.agents):
            raise ValueError(f"actions are of {', '.join(actions)}: they must be of {', '.join(self.agents)}")
        self._inner.play(np.stack([self._inner.check(actions[agent]) for agent in self.agents]))
        observations, infos = self._observations(), self._infos()
        rewards = dict(zip(self.agents, self._rewards(), strict=True))
        terminations = dict.fromkeys(self.agents, False)
        truncations = dict.fromkeys(self.agents, self._inner.ended)
        if self._inner.ended:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def _observations(self) -> dict[str, Observation]:
        books = self._inner.survey()
        return {agent: books.observe_one(k) for k, agent in enumerate(self.agents)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        """Return the means of every router over its own customers."""
        books, time = self._inner.survey(), {"time": self._inner.time}
        return {agent: books.means(books.accounts[[k]]) | time for k, agent in enumerate(self.agents)}

    def _rewards(self) -> list[float]:
        """Return minus the cost of each agent, as a mean over the customers of all routers."""
        accounts = self._inner.survey().accounts
        costs = accounts["cost"] / accounts["customers"].sum()
        if self.reward == "shared":
            costs[:] = costs.sum()
        rewards: list[float] = (0.0 - costs).tolist()
        return rewards
