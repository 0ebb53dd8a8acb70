"""Boards: seeds are pooled and compared in pairs; one unstable seed makes a policy unstable."""

from __future__ import annotations

import math

import numpy as np

from baselines import make
from baselines.leaderboard import report
from pull_env import load_scenario, simulate
from pull_env.reporting import describe
from pull_env.simulation.statistics import estimate, paired


def test_seeds_are_taken_together_and_compared_in_pairs() -> None:
    scenario, policies = load_scenario("small-mixed"), [make("pull"), make("random")]
    results = [[simulate(scenario, p, 2000, seed=s, replications=3) for s in (0, 1)] for p in policies]
    board = report.board(scenario, list(zip(policies, results, strict=True)))
    (first, best), (second, worst) = board.results
    assert [first, second] == policies
    samples = [np.concatenate([result.cost.samples for result in of_policy]) for of_policy in results]
    assert best.cost == estimate(samples[0])
    assert best.cost.count == 6
    assert paired(worst.cost, best.cost) == estimate(samples[1] - samples[0])
    assert "seeds 0, 1" in board.run


def test_one_unstable_seed_makes_a_policy_unstable() -> None:
    scenario, policy = load_scenario("two-speeds"), make("random")
    results = [simulate(scenario, policy, 20_000, seed=s, warmup=0, replications=2) for s in (0, 1)]
    result = report.pool_seeds(results)
    assert not result.stable
    assert "pool 1" in describe.growth_line(scenario, result.growth)
    assert math.isnan(result.cost.mean)
