"""The race: what is unstable does not win, and a search is no worse than well-known policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from baselines import make
from baselines.tune import race as racing
from baselines.tune.race import Log, Plan, race
from pull_env import Pool, Scenario, load_scenario
from pull_env.simulation.progress import Report

TINY = Plan(
    trials=24, shortest=1024, rungs=(1, 4), finalists=2, chosen_by=4096, reported=4096, replications=4
)


def ignore(done: int) -> None:
    """Report no progress."""


REPORT: Report = ignore


def test_what_is_unstable_does_not_win(tmp_path: Path) -> None:
    scenario = Scenario((Pool(10, 1.9), Pool(10, 0.1)), routers=2, load=0.9)
    log = Log(tmp_path / "log.jsonl", scenario, TINY, 0, 1)
    finalists = [make("random"), make("pull-weighted")]
    assert not log.measure(finalists[0], "choose", 40_000, None).stable
    assert racing.choose(log, finalists, REPORT) == finalists[1]
    with pytest.raises(ValueError, match="no stable policy was found"):
        racing.choose(log, finalists[:1], REPORT)


def test_a_better_search_than_chance(tmp_path: Path) -> None:
    """Of the first candidates some are well known: what is found must not be worse than any of them."""
    scenario = load_scenario("small-mixed")
    log = Log(tmp_path / "log.jsonl", scenario, TINY, 3, 1)
    best = race(log, REPORT)[0]
    costs = [log.measure(policy, "search", 4096, 512).cost.mean for policy in (best, make("pull-fastest"))]
    assert costs[0] <= costs[1]
