"""The cost of a search's candidates, in short runs and in validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.policy_runner import PolicyRunner
from pull_env.simulation.results import Recorder, Result, gains, measures
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate

if TYPE_CHECKING:
    from agents.search.cma_es import Args


def candidate_costs(args: Args, scenario: Scenario, policies: Sequence[Policy], seed: int) -> list[float]:
    """Return the cost of each policy in short runs, all on the same streams."""
    customers = -(-args.customers // args.replications)
    run = seed, args.warmup, customers, args.replications
    with ThreadPoolExecutor(args.workers or os.cpu_count()) as pool:
        return list(pool.map(lambda policy: mean_cost(scenario, policy, *run), policies))


def mean_cost(
    scenario: Scenario, policy: Policy, seed: int, warmup: int, customers: int, replications: int = 1
) -> float:
    """Return the mean cost per customer in short runs.

    Each counts `customers` after a warm-up of `warmup`.
    """
    runner, counts = PolicyRunner(scenario, policy), []
    for replication in range(replications):
        runner.reset(seed, replication)
        runner.run(warmup)
        recorder = Recorder(runner.simulator)
        runner.run(customers)
        recorder.end_batch()
        counts.append(recorder.counts())
    head, pools = np.stack([each.head for each in counts]), np.stack([each.pools for each in counts])
    gained = gains(head[:, 0], head[:, 1]), gains(pools[:, 0], pools[:, 1])
    return float(measures(scenario, *gained, runner.simulator.workload is not None)["cost"].mean())


def validate(args: Args, scenario: Scenario, policy: Policy) -> Result:
    """Return the result of a policy on streams on which no candidates were compared."""
    return simulate(
        scenario,
        policy,
        args.validation_customers,
        seed=spawn_seeds(args.seed, 1, "validate")[0],
        warmup=args.validation_warmup,
        workers=args.workers,
    )


def is_better(result: Result, than: Result) -> bool:
    """Return whether a policy costs less; an unstable one is never better."""
    return result.stable and not (than.stable and than.cost.mean <= result.cost.mean)
