"""What is measured in this process: customers and env steps per second.

Actions of envs are drawn at random from the catalog: two thirds of them probe up to eight servers. What a
step costs depends on the action, so that batches are also timed with one kind of action only.
"""

from __future__ import annotations

import dataclasses
import time
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
from pull_env.policy.policy import Policy, Probe, Step
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.policy_runner import PolicyRunner

CUSTOMERS = "customers per second"
ROUTERS, ROUTERS_SERVERS = (1, 10, 100, 1000), 10_000
WARMUP_SECONDS = 10.0  # at most: `lwl` looks at every server, and would take hours at a million
BLOCKS = 10  # in a timing, at least

ID, STEPS = "pull_env/Router-v0", "steps per second"
ACTIONS, BATCHED = 640, 4_096  # drawn in advance for a single env; for a batch, over all envs
MANY = 256  # envs


def system(n: int, routers: int = 10) -> Scenario:
    """Return n servers, at least 2, of two speeds, at a load of .8.

    The slow ones are overloaded if servers are chosen blindly: under `random` their queues grow.
    """
    return Scenario((Pool(n - n // 2, 1.25), Pool(n // 2, 0.75)), routers=routers, load=0.8)


class WarmRun:
    """A simulator after its warm-up; a call simulates `customers` more customers.

    Attributes:
        customers: So many take about a tenth of a timing.
        warmup: Customers simulated so far: three per server, or as many as `WARMUP_SECONDS` allows.
    """

    def __init__(self, scenario: Scenario, policy: Policy, seconds: float, episode: int = 0) -> None:
        """Start from an empty system, and warm up.

        Args:
            scenario: The system.
            policy: What its routers follow.
            seconds: Length of a timing.
            episode: Of the seed 0: simulators side by side have streams of their own.
        """
        self._runner = PolicyRunner(scenario, policy)
        self._runner.reset(0, episode)
        self.customers = self.warmup = 1
        self()  # loads the kernels, or compiles them
        deadline, short = time.perf_counter() + WARMUP_SECONDS, True
        while short or (self.warmup < 3 * scenario.servers and time.perf_counter() < deadline):
            start = time.perf_counter()
            self()
            self.warmup += self.customers
            short = time.perf_counter() - start < seconds / (2 * BLOCKS)
            if short:
                self.customers *= 2

    def __call__(self) -> None:
        """Simulate `customers` customers."""
        self._runner.run(self.customers)


def customers(
    kind: str, name: str, scenario: Scenario, policy: Policy, seconds: float
) -> Iterator[Measurement]:
    """Yield the customers per second on one thread."""
    run = WarmRun(scenario, policy, seconds)
    values = throughput([run], run.customers, seconds)
    yield Measurement(kind, name, CUSTOMERS, values, warmup=run.warmup, scenario=scenario, policy=policy)


def by_cores(n: int, policy: Policy, cores: tuple[int, ...], seconds: float) -> Iterator[Measurement]:
    """Yield the customers per second of several simulators, a thread each."""
    scenario = system(n)
    runs = [WarmRun(scenario, policy, seconds, episode) for episode in range(max(cores))]
    count, warmup = runs[0].customers, runs[0].warmup
    for run in runs:
        run.customers = count
    for threads in cores:
        values = throughput(runs[:threads], count, seconds)
        yield Measurement("cores", policy.name, CUSTOMERS, values, threads, None, warmup, scenario, policy)


class NoOp(gymnasium.Env[Any, Any]):
    """An env that does nothing: its step costs what a copy of the observation costs."""

    def __init__(self) -> None:
        """Take over the spaces of `RouterEnv`."""
        env = RouterEnv()
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._observation = np.zeros(env.observation_space.shape or (), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Return a constant."""
        super().reset(seed=seed)
        return self._observation.copy(), {}

    def step(self, action: Any) -> Any:
        """Return a constant."""
        return self._observation.copy(), 0.0, False, False, {}


class NoOps(VectorEnv[Any, Any, Any]):
    """Many envs that do nothing: their step costs what fresh arrays cost."""

    def __init__(self, num_envs: int) -> None:
        """Take over the spaces of `RouterEnv`."""
        self.num_envs, env = num_envs, RouterEnv()
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._observations = np.zeros(self.observation_space.shape or (), np.float32)

    def reset(self, **arguments: Any) -> Any:
        """Return a constant."""
        return self._observations.copy(), {}

    def step(self, actions: Any) -> Any:
        """Return a constant."""
        flags = np.zeros((2, self.num_envs), np.bool_)
        return self._observations.copy(), np.zeros(self.num_envs), *flags, {}


def two_speeds(n: int) -> Scenario:
    """Return `two-speeds` with n servers, an even number."""
    scenario = pull_env.load_scenario("two-speeds")
    pools = tuple(dataclasses.replace(pool, size=n // 2) for pool in scenario.pools)
    return dataclasses.replace(scenario, pools=pools)


def one(env: Any, seconds: float) -> tuple[float, ...]:
    """Return the steps per second of a single env, resets included."""
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
    """Return the steps per second of a batch of envs, resets included; then close it.

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
    """Yield the steps per second of one env, and of 256 in a `SyncVectorEnv`."""
    scenario = two_speeds(n)
    made = gymnasium.make(ID, scenario=scenario)
    for name, env in (("one, unwrapped", RouterEnv(scenario)), ("one, gymnasium.make", made)):
        yield Measurement("envs", name, STEPS, one(env, seconds), envs=1, scenario=scenario)
    rates = many(gymnasium.make_vec(ID, MANY, "sync", scenario=scenario), seconds)
    yield Measurement("envs", "SyncVectorEnv", STEPS, rates, envs=MANY, scenario=scenario)


def vector(n: int, num_envs: int, threads: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps per second of `num_envs` envs that one call steps."""
    scenario = two_speeds(n)
    rates = many(RouterVectorEnv(num_envs, scenario=scenario, workers=threads), seconds)
    yield Measurement("envs", "gymnasium.make_vec", STEPS, rates, threads, num_envs, scenario=scenario)


def by_kind(n: int, seconds: float) -> Iterator[Measurement]:
    """Yield the steps per second of a batch, all actions of one kind."""
    scenario = two_speeds(n)
    for kind, actions in kinds(RouterEnv(scenario).catalog).items():
        rates = many(RouterVectorEnv(MANY, scenario=scenario, workers=1), seconds, actions)
        yield Measurement("envs", f"make_vec, only {kind}", STEPS, rates, envs=MANY, scenario=scenario)


def kinds(catalog: Sequence[Step]) -> dict[str, list[int]]:
    """Return the actions of a catalog by what they do, in whichever pool."""
    actions: dict[str, list[int]] = {}
    for action, step in enumerate(catalog):
        kind = type(step).__name__.lower()
        kind += f" until a wait of {step.stop_at:g}" if isinstance(step, Probe) else ""
        actions.setdefault(kind, []).append(action)
    return actions
