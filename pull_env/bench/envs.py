"""Env steps a second: one env, many, on one thread and on several, and envs that do nothing.

Actions are drawn at random from the catalog: two thirds of them probe up to eight servers. What a step costs
depends on the action, so that many envs are also timed with one kind of action only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

import pull_env
from pull_env.bench.timing import Measurement, throughput
from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.policy.policy import Probe, Step
from pull_env.scenario.scenario import Scenario

ID = "pull_env/Router-v0"
STEPS = "steps a second"
ACTIONS = 640  # drawn beforehand for a single env
BATCHED = 4_096  # and for a batch, over all envs
MANY = 256


class NoOp(gymnasium.Env[Any, Any]):
    """An env that does nothing: its step costs what copying the answer costs."""

    def __init__(self) -> None:
        """Take over the spaces of `RouterEnv`."""
        env = RouterEnv()
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._seen = np.zeros(env.observation_space.shape or (), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Return a constant."""
        super().reset(seed=seed)
        return self._seen.copy(), {}

    def step(self, action: Any) -> Any:
        """Return a constant."""
        return self._seen.copy(), 0.0, False, False, {}


class NoOps(VectorEnv[Any, Any, Any]):
    """Many envs that do nothing: their step costs what fresh arrays cost."""

    def __init__(self, num_envs: int) -> None:
        """Take over the spaces of `RouterEnv`."""
        self.num_envs, env = num_envs, RouterEnv()
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._seen = np.zeros(self.observation_space.shape or (), np.float32)

    def reset(self, **arguments: Any) -> Any:
        """Return a constant."""
        return self._seen.copy(), {}

    def step(self, actions: Any) -> Any:
        """Return a constant."""
        flags = np.zeros((2, self.num_envs), np.bool_)
        return self._seen.copy(), np.zeros(self.num_envs), *flags, {}


def two_speeds(n: int) -> Scenario:
    """Return `two-speeds` with n servers, an even number."""
    scenario = pull_env.load_scenario("two-speeds")
    return dataclasses.replace(
        scenario, pools=tuple(dataclasses.replace(pool, size=n // 2) for pool in scenario.pools)
    )


def one(env: Any, seconds: float) -> tuple[float, ...]:
    """Return the steps a second of a single env; it restarts where an episode ends, as its users do."""
    actions = np.random.default_rng(0).integers(env.action_space.n, size=ACTIONS).tolist()

    def block() -> None:
        step = env.step
        for action in actions:
            if step(action)[3]:
                env.reset()

    env.reset(seed=0)
    block()
    return throughput([block], ACTIONS, seconds)


def many(envs: Any, seconds: float, allowed: Sequence[int] | None = None) -> tuple[float, ...]:
    """Return the steps a second of a batch of envs, restarts included; it is closed then.

    Args:
        envs: The batch.
        seconds: Length of a timing.
        allowed: The actions to draw from; None: all.
    """
    generator, steps = np.random.default_rng(0), max(1, BATCHED // envs.num_envs)
    choice = np.arange(envs.single_action_space.n) if allowed is None else np.array(allowed)
    actions = generator.choice(choice, size=(steps, envs.num_envs))

    def block() -> None:
        for each in actions:
            envs.step(each)

    envs.reset(seed=0)
    block()
    rates = throughput([block], steps * envs.num_envs, seconds)
    envs.close()
    return rates


def no_op(seconds: float) -> Iterator[Measurement]:
    """Yield what Gymnasium itself allows, of one env and of many."""
    name = "an env that does nothing"
    yield Measurement("envs", name, STEPS, one(NoOp(), seconds), envs=1)
    yield Measurement("envs", name, STEPS, many(NoOps(MANY), seconds), envs=MANY)


def singles(n: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps a second of one env, and of 256 that Gymnasium steps one by one."""
    scenario = two_speeds(n)
    made = gymnasium.make(ID, scenario=scenario)
    for name, env in (("one, unwrapped", RouterEnv(scenario)), ("one, gymnasium.make", made)):
        yield Measurement("envs", name, STEPS, one(env, seconds), envs=1, scenario=scenario)
    stepped = many(gymnasium.make_vec(ID, MANY, "sync", scenario=scenario), seconds)
    yield Measurement("envs", "SyncVectorEnv", STEPS, stepped, envs=MANY, scenario=scenario)


def vector(n: int, num_envs: int, threads: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps a second of `num_envs` envs that one call steps."""
    scenario = two_speeds(n)
    stepped = many(RouterVectorEnv(num_envs, scenario=scenario, workers=threads), seconds)
    yield Measurement("envs", "gymnasium.make_vec", STEPS, stepped, threads, num_envs, scenario=scenario)


def by_kind(n: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps a second of many envs that are all given one kind of action, on one thread."""
    scenario = two_speeds(n)
    for kind, actions in kinds(RouterEnv(scenario).catalog).items():
        stepped = many(RouterVectorEnv(MANY, scenario=scenario, workers=1), seconds, actions)
        yield Measurement("envs", f"make_vec, only {kind}", STEPS, stepped, envs=MANY, scenario=scenario)


def kinds(catalog: Sequence[Step]) -> dict[str, list[int]]:
    """Return the actions of a catalog by what they do, in whichever pool."""
    found: dict[str, list[int]] = {}
    for action, step in enumerate(catalog):
        kind = type(step).__name__.lower()
        kind += f" until a wait of {step.stop_at:g}" if isinstance(step, Probe) else ""
        found.setdefault(kind, []).append(action)
    return found
