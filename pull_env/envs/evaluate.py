"""`evaluate`: score an agent as `simulate` scores a policy."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.policy.policy import Policy, Send, Step, Take
from pull_env.scenario.scenario import ScenarioLike, as_scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.results import Recorder, Result, summarise
from pull_env.simulation.simulate import BATCHES, check_run, run_lengths, simulate
from pull_env.simulation.warmup import warmup_customers


class Agent(Protocol):
    """A model of Stable-Baselines3, or an object with its `predict`."""

    def predict(self, observation: Any, *, deterministic: bool = False) -> tuple[Any, Any]:
        """Return actions, (runs,), for observations, (runs, size), and a state, not used."""
        ...


def evaluate(
    agent: Agent | PolicyLike,
    scenario: ScenarioLike,
    customers: int | None = None,
    *,
    seed: int = 0,
    replications: int = 16,
    warmup: int | None = None,
    fill: PolicyLike | None = None,
    fill_customers: int | None = None,
    deterministic: bool = True,
    progress: bool = False,
    **env: Any,
) -> Result:
    """Let `agent` route the customers of `scenario`; measure what `simulate` measures.

    The replications run side by side, so that one call of the agent serves all of them. Replication k uses
    the streams of (seed, k), as in `simulate`: `statistics.paired` compares the two.

    Each replication begins with the warm-up of `simulate` under `fill`, at the speed of the kernel; then the
    agent routes `warmup` customers that are not counted.

    Args:
        agent: A model of Stable-Baselines3 or sb3-contrib, or any object with its `predict`, which gets
            `action_masks` if it takes them. Or a policy, or its name, which `simulate` then scores.
        scenario: The system, the name of a preset, or the path of a TOML file.
        customers: Counted customers over all replications, rounded up to whole batches; None: 400,000, or a
            whole trace.
        seed: From 0. Use one that was not used in training.
        replications: Independent runs.
        warmup: Customers per replication that the agent routes before the counted ones; None: as many as the
            counted ones, or none of a trace; for a policy, the warm-up of `simulate`.
        fill: The policy that assigns the customers before those; None: PULL, else a server drawn by rate.
        fill_customers: How many per replication; None: the warm-up of `simulate`, or none of a trace.
        deterministic: Whether the agent takes its best action rather than sampling.
        progress: Whether to show a progress bar on standard error.
        **env: Further arguments of `pull_env/Router-v0`: those of the agent's training.

    Raises:
        ValueError: An argument is not allowed, or the agent does not fit the env.
    """
    scenario = as_scenario(scenario)
    check_run(customers, seed, replications, warmup, None)
    if isinstance(agent, Policy | str | os.PathLike | Mapping):
        policy = as_policy(agent, scenario)
        customers = customers or (400_000 if scenario.replay is None else None)
        return simulate(
            scenario,
            policy,
            customers,
            seed=seed,
            replications=replications,
            warmup=warmup,
            progress=progress,
        )
    fill = None if fill is None else as_policy(fill, scenario)
    if fill_customers is None:
        fill_customers = warmup_customers(scenario, None) if scenario.replay is None else 0
    check_argument.whole("fill_customers", fill_customers, 0)
    if scenario.replay is None:
        customers = customers or 400_000
        warmup = -(-customers // replications) if warmup is None else warmup
    warmup, batch = run_lengths(scenario, None, customers, replications, warmup)
    each = warmup + BATCHES * batch
    envs = RouterVectorEnv(
        replications, autoreset_mode="Disabled", scenario=scenario, customers=each + 1, **env
    )  # one customer more than needed: a trace may end with the last one, before its counts are read
    _check_spaces(agent, envs.envs[0])
    masked = "action_masks" in inspect.signature(agent.predict).parameters
    started = time.perf_counter()
    steps = _pull(envs.envs[0]) if fill is None else fill.steps
    for k in range(replications):
        envs.call_one(k, "reset", seed=seed, options={"episode": k})
        if fill_customers:
            envs.call_one(k, "skip", steps, fill_customers)
    observations = envs.observations()
    recorders: list[Recorder] = []
    with progress_bar(f"agent on {scenario.name}", each, progress) as report:
        for customer in range(each):
            if customer == warmup:
                recorders = [Recorder(one.simulator) for one in envs.envs]
            elif recorders and (customer - warmup) % batch == 0:
                _end_batches(recorders)
            extra = {"action_masks": envs.action_masks()} if masked else {}
            actions, _ = agent.predict(observations, deterministic=deterministic, **extra)
            observations = envs.step(actions)[0]
            report(1)
        _end_batches(recorders)
    counts = [recorder.counts() for recorder in recorders]
    return summarise(scenario, counts, seed=seed, warmup=warmup, seconds=time.perf_counter() - started)


def _pull(env: RouterEnv) -> tuple[Step, ...]:
    """Return the steps of PULL, without `Take` if servers announce nothing."""
    return (Send(weights="rate"),) if env.announce is None else (Take(), Send(weights="rate"))


def _end_batches(recorders: list[Recorder]) -> None:
    for recorder in recorders:
        recorder.end_batch()


def _check_spaces(agent: Agent, env: RouterEnv) -> None:
    """Refuse a model of Stable-Baselines3 whose spaces are not those of `env`."""
    for name in ("observation_space", "action_space"):
        expected, given = getattr(agent, name, None), getattr(env, name)
        if expected is not None and expected != given:
            raise ValueError(
                f"the agent's {name} is {expected}: on {env.scenario.name} it must be {given}; an agent "
                "fits scenarios with as many pools as it was trained on, and the same catalog and observation"
            )
