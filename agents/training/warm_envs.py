"""Environments in which a policy has assigned customers before the learner."""

from __future__ import annotations

from typing import Any

from pull_env.envs.adapters.stable_baselines3 import Observations, VecRouter
from pull_env.policy.catalog import MOST_PROBED, mean_service_time
from pull_env.policy.policy import Announce, Policy, Probe, Step, Take
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.warmup import warmup_customers


class WarmRouters(VecRouter):
    """`VecRouter` whose first episodes start after a chain has assigned customers.

    In an empty system the first customers of an episode find all servers idle: in a large system that is
    most of what a learner would see.
    """

    def __init__(
        self,
        scenario: Scenario,
        envs: int,
        warmup_steps: tuple[Step, ...],
        warmup_customers: int,
        **arguments: Any,
    ) -> None:
        """Build `envs` environments with `warmup_customers` each; else as `VecRouter`."""
        self._warmup_steps, self._warmup_customers = warmup_steps, warmup_customers
        super().__init__(scenario, envs, **arguments)

    def reset(self) -> Observations:
        """Start an episode of every env with a warm-up; episodes that follow have none."""
        super().reset()
        if self._warmup_customers:
            for k in range(self.num_envs):
                skipped = self.envs.call_one(k, "skip", self._warmup_steps, self._warmup_customers)
                self.reset_infos[k] = skipped[1]
        return self.envs.observations()


def customers_before(scenario: Scenario, envs: int, most: int) -> int:
    """Return the warm-up customers of each env, at most `most` over all envs."""
    return 0 if scenario.replay is not None else min(warmup_customers(scenario, None), most // envs)


def default_warmup_policy(scenario: Scenario) -> Policy:
    """Return a policy that is bad nowhere: take, else probe until a wait is short."""
    wait = mean_service_time(scenario)
    probe = Probe(weights="rate", at_most=MOST_PROBED, stop_at=wait, rank="delay")
    return Policy("take, then probe", (Take(order="fastest"), probe), Announce())
