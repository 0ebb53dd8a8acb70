"""Env steps a second: one env, many, on one thread and on several, and an env that does nothing.

Actions are drawn at random from the catalog: two thirds of them probe up to eight servers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

import pull_env
from pull_env.bench.timing import Measurement, throughput
from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.scenario import Scenario

ID = "pull_env/Router-v0"
STEPS = "steps a second"
ACTIONS = 640  # drawn beforehand for a single env
BATCHED = 4_096  # and for a batch, over all envs


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


def many(envs: Any, seconds: float) -> tuple[float, ...]:
    """Return the steps a second of a batch of envs, restarts included; it is closed then."""
    generator, steps = np.random.default_rng(0), max(1, BATCHED // envs.num_envs)
    actions = generator.integers(envs.single_action_space.n, size=(steps, envs.num_envs))

    def block() -> None:
        for each in actions:
            envs.step(each)

    envs.reset(seed=0)
    block()
    rates = throughput([block], steps * envs.num_envs, seconds)
    envs.close()
    return rates


def no_op(seconds: float) -> Iterator[Measurement]:
    """Yield what Gymnasium itself allows."""
    yield Measurement("envs", "an env that does nothing", STEPS, one(NoOp(), seconds), envs=1)


def singles(n: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps a second of one env, and of 256 that Gymnasium steps one by one."""
    scenario = two_speeds(n)
    made = gymnasium.make(ID, scenario=scenario)
    for name, env in (("one, unwrapped", RouterEnv(scenario)), ("one, gymnasium.make", made)):
        yield Measurement("envs", name, STEPS, one(env, seconds), envs=1, scenario=scenario)
    stepped = many(gymnasium.make_vec(ID, 256, "sync", scenario=scenario), seconds)
    yield Measurement("envs", "SyncVectorEnv", STEPS, stepped, envs=256, scenario=scenario)


def vector(n: int, num_envs: int, threads: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps a second of `num_envs` envs that one call steps."""
    scenario = two_speeds(n)
    stepped = many(RouterVectorEnv(num_envs, scenario=scenario, workers=threads), seconds)
    yield Measurement("envs", "gymnasium.make_vec", STEPS, stepped, threads, num_envs, scenario=scenario)
