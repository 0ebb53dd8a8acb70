"""Policies in a `RouterEnv`: by their own steps, or by its catalog."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from pull_env.envs.base import Observation
from pull_env.envs.router import RouterEnv, compiled_step
from pull_env.kernels.state import KEEP_MEMORY
from pull_env.policy.policy import Policy, PolicyError, Recall, Send, Step, Take
from pull_env.scenario.scenario import ScenarioLike, as_scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.kernel_data.step_records import encode, required_flags
from pull_env.simulation.kernel_data.view import local_size, pool_entries
from pull_env.simulation.policy_runner import check_fit

Floats = npt.NDArray[np.float64]
State = TypeVar("State")


@dataclass(frozen=True)
class Played:
    """Sums over the customers of an episode, in float64."""

    customers: int
    reward: float  # minus the cost of all customers
    wait: float  # time in queue of the accepted customers
    blocked: int
    messages: int


class PolicyEnv(RouterEnv):
    """A `RouterEnv` in which a policy assigns the customers.

    It has the policy's pull protocol and memory, and its steps as the catalog. From the same seed, it and
    `simulate` end in bit-identical state.
    """

    def __init__(self, policy: Policy, scenario: ScenarioLike = "two-speeds", **arguments: Any) -> None:
        """Build the env; `arguments` are further ones of `RouterEnv`.

        Raises:
            ValueError: The policy does not fit the scenario, or an argument is not allowed.
        """
        scenario = as_scenario(scenario)
        check_fit(policy, scenario)
        super().__init__(
            scenario, catalog=policy.steps, announce=policy.announce, memory=policy.memory, **arguments
        )
        self._chain = encode(policy.steps, scenario)
        self._network = None if policy.network is None else CompiledNetwork(policy.network)

    def step(self, action: Any = None) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Assign the current customer by the policy, whatever `action` is.

        Raises:
            ResetNeeded: The episode has not begun, or has ended.
        """
        if self._network is not None:
            return super().step(self._network.decide(self._system_address, self._observed_address))
        left = compiled_step()(self._observed_address, self._chain.ctypes.data, self._chain.size)
        if left < 0:
            self._prepare_step(left)
            return self.step()
        return self._result(left)

    def play(self, customers: int | None = None) -> Played:
        """Step until the episode ends, or `customers` times, and return the sums."""
        count, blocked, messages = 0, 0, 0
        reward = wait = 0.0
        truncated = False
        while not truncated and count != customers:
            _, step_reward, _, truncated, info = self.step()
            count += 1
            reward += step_reward
            wait += info["wait"]
            blocked += info["blocked"]
            messages += info["messages"]
        return Played(count, reward, wait, blocked, messages)


def play(
    policy: Policy, env: gym.Env[Any, Any], customers: int | None = None, *, seed: int | None = None
) -> Played:
    """Play an episode with `policy`, bit-identically to `simulate`.

    The policy's own steps assign the customers, in a `PolicyEnv` with the seed and length of the episode; a
    network needs its own catalog. The env itself is reset, and stays at the start of the episode.

    Args:
        policy: What the routers do.
        env: A `RouterEnv`, wrapped or not.
        customers: Stop after this many; None: at the end of the episode, which is the limit in any case.
        seed: For `reset`; None: the env's next episode.

    Raises:
        ValueError: The env is not a `RouterEnv`, has another pull protocol, memory or catalog than the policy
            needs, or the policy does not fit the scenario.
    """
    router = _router_env(env)
    check_protocol(policy, router)
    runner = PolicyEnv(policy, router.scenario, customers=router.customers)
    env.reset(seed=seed)
    runner.reset(seed=router.entropy, options={"episode": router.episode})
    return runner.play(customers)


def check_protocol(policy: Policy, env: RouterEnv) -> None:
    """Refuse a policy whose pull protocol, memory or catalog `env` lacks.

    Raises:
        ValueError: It does; the message says what to pass to `gymnasium.make`.
    """
    if policy.announce != env.announce:
        needed = policy.to_dict()["announce"]
        raise ValueError(
            f"announce is {env.announce}: {policy.name} needs gymnasium.make(..., announce={needed})"
        )
    if policy.network is not None and policy.steps != env.catalog:
        raise ValueError(
            f"catalog has {len(env.catalog)} steps: {policy.name} needs gymnasium.make(..., "
            f"catalog=...) with its own {len(policy.steps)}"
        )
    remembers = policy.network is not None or required_flags(policy.steps, None) & KEEP_MEMORY
    if policy.memory != env.memory and remembers:
        needed = policy.to_dict()["memory"]
        raise ValueError(f"memory is {env.memory}: {policy.name} needs gymnasium.make(..., memory={needed})")


class Driver:
    """A classical policy with the `predict` of Stable-Baselines3 models.

    It draws catalog entries as the policy draws servers: taking a message from any pool becomes taking one
    from pool j with probability proportional to the messages held, and a random choice becomes one in pool j
    with probability proportional to its size or capacity. The results have the same distribution as with
    `play`, but other random numbers: those of the driver.
    """

    def __init__(self, policy: Policy, env: gym.Env[Any, Any], seed: int | None = None) -> None:
        """Map the steps of the policy to entries of the env's catalog.

        Args:
            policy: What the routers do.
            env: A `RouterEnv`, wrapped or not, whose catalog is used.
            seed: Of the driver's random choices; None: from the operating system.

        Raises:
            ValueError: The env is not a `RouterEnv` or has another pull protocol than the policy, or its
                catalog has no counterpart of a step, which the message names; `play` needs none.
        """
        router = _router_env(env)
        if policy.network is not None:
            raise PolicyError(f"{policy.name} follows a network, not a chain of steps; use pull_env.play")
        check_protocol(policy, router)
        self._size = local_size(router.scenario)
        self._rates = np.array([pool.rate for pool in router.scenario.pools])
        self._sizes = np.array([pool.size for pool in router.scenario.pools], np.float64)
        self._held = pool_entries(router.scenario, "messages held")
        self._remembered = pool_entries(router.scenario, "remembered wait")
        self._choices = [self._translate(policy, k, router.catalog) for k in range(len(policy.steps))]
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
            observation: (entries,) or (batch, entries); entries of the state may follow and are ignored.
            state: Returned unchanged: what the policy must remember is in the observation.
            episode_start: Not used.
            deterministic: Not used: randomness is part of a classical policy.

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
        for step, entries in self._choices:
            weights = self._weights(step, rows)
            if entries.size == 1:
                weights = weights.sum(axis=1, keepdims=True)
            cumulative = weights.cumsum(axis=1)
            total = cumulative[:, -1]
            threshold = self._generator.random(len(rows)) * total
            chosen = (cumulative <= threshold[:, None]).sum(axis=1)
            able = (actions < 0) & (total > 0)
            actions[able] = entries[chosen[able]]
        return actions.reshape(np.shape(observation)[:-1]), state

    def _translate(
        self, policy: Policy, k: int, catalog: tuple[Step, ...]
    ) -> tuple[Step, npt.NDArray[np.int64]]:
        """Return step k, and its entries of the catalog: itself, or one for each pool."""
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
        """Return the weight of each pool in the choice of `step`; all 0 if it cannot act.

        Args:
            step: The step.
            rows: (batch, entries) observations.

        Returns:
            (batch, J) numbers, or (batch, 1) for a step that is not split by pool.
        """
        if isinstance(step, Take):
            held = _held(rows[:, self._held])
            if step.pool is not None:
                return held[:, [step.pool]]
            if step.order == "fastest":
                fastest = np.where(held > 0, self._rates, 0.0).max(axis=1, keepdims=True)
                held[self._rates < fastest] = 0.0
            return held
        if isinstance(step, Recall):
            known = (rows[:, self._remembered] < 1.0).astype(np.float64)
            return known if step.pool is None else known[:, [step.pool]]
        share = np.ones(1)
        if isinstance(step, Send) and step.pool is None:
            share = self._sizes * self._rates if step.weights == "rate" else self._sizes
        return np.tile(share, (len(rows), 1))


def _held(observed: Floats) -> Floats:
    """Return the numbers of messages h observed as h / (1 + h)."""
    return np.rint(observed / np.maximum(1.0 - observed, 2.0**-24))


def _plain(step: Step) -> Step:
    """Return the step as catalogs write it: rates in a pool are equal."""
    if isinstance(step, Take) and step.pool is not None and step.order == "fastest":
        return replace(step, order="random")
    return step


def _router_env(env: gym.Env[Any, Any]) -> RouterEnv:
    """Return the `RouterEnv` within the wrappers.

    Raises:
        ValueError: There is none.
    """
    if not isinstance(env.unwrapped, RouterEnv):
        raise check_argument.refusal("env", env, "a RouterEnv, or wrappers around one")
    return env.unwrapped
