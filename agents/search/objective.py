"""What the candidates of a search cost: in short runs on common customers, and by a validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.policy_runner import PolicyRunner
from pull_env.simulation.results import Result, gains, measures
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate

if TYPE_CHECKING:
    from agents.search.cma_es import Args


def costs(args: Args, scenario: Scenario, policies: Sequence[Policy], seed: int) -> list[float]:
    """Return the cost of each policy in short runs, all on the same customers."""
    with ThreadPoolExecutor(args.workers or os.cpu_count()) as pool:
        return list(pool.map(lambda policy: cost(args, scenario, policy, seed), policies))


def cost(args: Args, scenario: Scenario, policy: Policy, seed: int) -> float:
    """Return the mean cost of a customer in short runs, as long and as many as `args` say."""
    each = -(-args.customers // args.replications)
    return short_cost(scenario, policy, seed, args.warmup, each, args.replications)


def short_cost(
    scenario: Scenario, policy: Policy, seed: int, warmup: int, customers: int, replications: int = 1
) -> float:
    """Return the mean cost of a customer in runs of `customers` each, after `warmup` that are left out."""
    runner, counters = PolicyRunner(scenario, policy), []
    arrays = runner.simulator.arrays
    for replication in range(replications):
        runner.reset(seed, replication)
        for part in (warmup, customers):
            runner.run(part)
            counters.append((arrays.head[0].copy(), arrays.pools.copy()))
    head, pools = (np.array(each) for each in zip(*counters, strict=True))
    gained = gains(head[::2], head[1::2]), gains(pools[::2], pools[1::2])
    return float(measures(scenario, *gained, runner.simulator.workload is not None)["cost"].mean())


def validate(args: Args, scenario: Scenario, policy: Policy) -> Result:
    """Return what a policy costs on customers that no candidate was compared on."""
    return simulate(
        scenario,
        policy,
        args.validation_customers,
        seed=spawn_seeds(args.seed, 1, "validate")[0],
        warmup=args.validation_warmup,
        workers=args.workers,
    )


def better(result: Result, than: Result) -> bool:
    """Return whether a policy costs less, an unstable one being the worst."""
    return result.stable and not (than.stable and than.cost.mean <= result.cost.mean)
