"""Environments to learn in that are in motion already: a policy filled each before the learner came."""

from __future__ import annotations

from typing import Any

from pull_env.envs.adapters.stable_baselines3 import Observations, VecRouter
from pull_env.policy.catalog import MOST_PROBED, mean_service_time
from pull_env.policy.policy import Announce, Policy, Probe, Step, Take
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.warmup import warmup_customers

FILLED = 2_000_000  # customers, over all environments: a second or two


class SettledRouters(VecRouter):
    """`VecRouter`, where an episode after a reset begins when a chain of steps has placed customers.

    From an empty system the first customers of an episode find all servers idle: in a large system that is
    most of what a learner would see.
    """

    def __init__(
        self, scenario: Scenario, envs: int, fill: tuple[Step, ...], filled: int, **arguments: Any
    ) -> None:
        """Build `envs` environments, each to be filled with `filled` customers; else as `VecRouter`."""
        self._fill, self._fill_customers = fill, filled
        super().__init__(scenario, envs, **arguments)

    def reset(self) -> Observations:
        """Start an episode of every env, and fill it; an episode that follows another is not filled."""
        super().reset()
        if self._fill_customers:
            for k in range(self.num_envs):
                self.reset_infos[k] = self.envs.call_one(k, "skip", self._fill, self._fill_customers)[1]
        return self.envs.observations()


def fill_customers(scenario: Scenario, envs: int) -> int:
    """Return with how many customers each env is filled: until it is steady, or for some seconds."""
    if scenario.replay is not None:
        return 0
    return min(warmup_customers(scenario, None), FILLED // envs)


def plain_rule(scenario: Scenario) -> Policy:
    """Return the rule to take a message, else to probe until a wait is short: nowhere a bad one."""
    wait = mean_service_time(scenario)
    probe = Probe(weights="rate", at_most=MOST_PROBED, stop_at=wait, rank="delay")
    return Policy("take, then probe", (Take(order="fastest"), probe), Announce())
