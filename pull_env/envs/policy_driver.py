"""Let a classical policy drive a `RouterEnv`: by its own steps, to the bit, or by the catalog."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from pull_env.envs.base import Observation
from pull_env.envs.router import RouterEnv
from pull_env.kernels.envs.observe import POOL_ENTRIES
from pull_env.policy.policy import Policy, PolicyError, Recall, Send, Step, Take
from pull_env.simulation.kernel_data.view import POOL_NAMES, local_size

Floats = npt.NDArray[np.float64]
State = TypeVar("State")

HELD, REMEMBERED = POOL_NAMES.index("messages held"), POOL_NAMES.index("remembered wait")


@dataclass(frozen=True)
class Played:
    """What an episode came to; sums over its customers, in float64."""

    customers: int
    reward: float  # minus the cost of all customers
    wait: float  # time in queue of the accepted customers
    blocked: int
    messages: int


def play(
    policy: Policy, env: gym.Env[Any, Any], customers: int | None = None, *, seed: int | None = None
) -> Played:
    """Play an episode in which every router follows `policy`, to the bit as `simulate` runs it.

    The policy's own steps place the customers, whatever the catalog holds; a network needs its own catalog.
    The episode begins with a reset, as the env must keep what these steps read; it goes past wrappers, which
    would expect actions.

    Args:
        policy: What the routers do.
        env: A `RouterEnv`, wrapped or not.
        customers: Stop after this many; None: where the env truncates the episode, which ends it in any case.
        seed: For `reset`; None: the env's next episode.

    Raises:
        ValueError: The env is not a `RouterEnv`, has another pull protocol, memory or catalog than the policy
            needs, or the policy does not fit the scenario.
    """
    router = _router_env(env)
    env.reset(seed=seed, options={"policy": policy})
    count, blocked, messages = 0, 0, 0
    reward = wait = 0.0
    truncated = False
    while not truncated and count != customers:
        _, step_reward, _, truncated, info = router.play_step()
        count += 1
        reward += step_reward
        wait += info["wait"]
        blocked += info["blocked"]
        messages += info["messages"]
    return Played(count, reward, wait, blocked, messages)


class Driver:
    """A classical policy that acts on observations, with the `predict` of Stable-Baselines3's models.

    It picks catalog entries as the policy picks servers: a message of any pool is a message of pool j with a
    probability in proportion to the messages held, and a blind choice is one of pool j in proportion to its
    size or capacity. The env then behaves as in `play`, in law, and not to the bit, as the chance of these
    choices is the driver's own.
    """

    def __init__(self, policy: Policy, env: gym.Env[Any, Any], seed: int | None = None) -> None:
        """Translate the steps of the policy into entries of the env's catalog.

        Args:
            policy: What the routers do.
            env: A `RouterEnv`, wrapped or not, whose catalog is used.
            seed: Of the driver's own choices; None: from the operating system.

        Raises:
            ValueError: The env is not a `RouterEnv` or has another pull protocol than the policy, or its
                catalog has no counterpart of a step; the message names the step, and `play` does without.
        """
        router = _router_env(env)
        if policy.network is not None:
            raise PolicyError(f"{policy.name} follows a network, not a chain of steps; use pull_env.play")
        router.check_protocol(policy)
        self._size = local_size(router.scenario)
        self._rates = np.array([pool.rate for pool in router.scenario.pools])
        self._sizes = np.array([pool.size for pool in router.scenario.pools], np.float64)
        self._moves = [self._translate(policy, k, router.catalog) for k in range(len(policy.steps))]
        self._generator = np.random.default_rng(seed)

    def predict(
        self,
        observation: Observation,
        state: State | None = None,
        episode_start: npt.NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[npt.NDArray[np.int64], State | None]:
        """Choose the action of each observation.

        Args:
            observation: (entries,) or (batch, entries); entries of the state may follow, and are not looked
                at.
            state: Returned as it is: what the policy must remember lies in the observation.
            episode_start: Not used.
            deterministic: Not used: the chance in a classical policy's choices is part of it.

        Returns:
            The actions, () or (batch,), and `state`.

        Raises:
            ValueError: The observation is too short for the pools of the env.
        """
        rows = np.atleast_2d(np.asarray(observation, np.float64))
        if rows.shape[-1] < self._size:
            raise ValueError(
                f"observation has {rows.shape[-1]} entries: "
                f"it must have {self._size} at least, for {self._rates.size} pools"
            )
        actions = np.full(len(rows), -1)
        for step, entries in self._moves:
            weights = self._weights(step, rows)
            if entries.size == 1:
                weights = weights.sum(axis=1, keepdims=True)
            cumulative = weights.cumsum(axis=1)
            total = cumulative[:, -1]
            drawn = self._generator.random(len(rows)) * total
            pick = (cumulative <= drawn[:, None]).sum(axis=1)
            able = (actions < 0) & (total > 0)
            actions[able] = entries[pick[able]]
        return actions.reshape(np.shape(observation)[:-1]), state

    def _translate(
        self, policy: Policy, k: int, catalog: tuple[Step, ...]
    ) -> tuple[Step, npt.NDArray[np.int64]]:
        """Return step k, and the entries of the catalog that it may become: itself, or one for each pool."""
        step = policy.steps[k]
        entries: list[Step] = [_plain(step)]
        if entries[0] not in catalog and getattr(step, "pool", None) is None:
            if isinstance(step, Take) and step.order != "oldest":
                entries = [Take(pool) for pool in range(self._rates.size)]
            elif isinstance(step, Send):
                entries = [Send(pool) for pool in range(self._rates.size)]
        if not all(entry in catalog for entry in entries):
            raise PolicyError(
                f"steps[{k}] is {step}: the catalog has no counterpart of it; use pull_env.play"
            )
        return step, np.array([catalog.index(entry) for entry in entries])

    def _weights(self, step: Step, rows: Floats) -> Floats:
        """Return how likely the step leads to each pool, up to a factor; all 0 where it cannot act.

        Args:
            step: The step.
            rows: (batch, entries) observations.

        Returns:
            (batch, J) numbers, or (batch, 1) for a step that is not split by pool.
        """
        if isinstance(step, Take):
            held = _held(self._column(rows, HELD))
            if step.pool is not None:
                return held[:, [step.pool]]
            if step.order == "fastest":
                fastest = np.where(held > 0, self._rates, 0.0).max(axis=1, keepdims=True)
                held[self._rates < fastest] = 0.0
            return held
        if isinstance(step, Recall):
            known = (self._column(rows, REMEMBERED) < 1.0).astype(np.float64)
            return known if step.pool is None else known[:, [step.pool]]
        share = np.ones(1)
        if isinstance(step, Send) and step.pool is None:
            share = self._sizes * self._rates if step.weights == "rate" else self._sizes
        return np.tile(share, (len(rows), 1))

    def _column(self, rows: Floats, entry: int) -> Floats:
        """Return one entry of every pool's block, (batch, J)."""
        return rows[:, entry : POOL_ENTRIES * self._rates.size : POOL_ENTRIES]


def _held(observed: Floats) -> Floats:
    """Return the numbers of messages h that were observed as h / (1 + h)."""
    held: Floats = np.rint(observed / np.maximum(1.0 - observed, 2.0**-24))
    return held


def _plain(step: Step) -> Step:
    """Return the step as a catalog spells it: within a pool rates are equal, so that `fastest` means any."""
    if isinstance(step, Take) and step.pool is not None and step.order == "fastest":
        return replace(step, order="random")
    return step


def _router_env(env: gym.Env[Any, Any]) -> RouterEnv:
    """Return the `RouterEnv` within the wrappers.

    Raises:
        ValueError: There is none.
    """
    if not isinstance(env.unwrapped, RouterEnv):
        raise ValueError(f"env is {env}: it must be a RouterEnv, or wrappers around one")
    return env.unwrapped
