"""What is measured within the process: a warm simulator, envs by kind of action."""

from __future__ import annotations

from typing import Any

import pytest

import baselines
from pull_env.bench import subjects, timing
from pull_env.envs.router import RouterEnv


def test_a_simulator_is_warm_before_it_is_timed() -> None:
    run = subjects.WarmRun(subjects.system(20_000), baselines.make("pull"), seconds=0.02)
    assert run.warmup >= 60_000
    assert run.customers > 1
    before = run.warmup
    run()
    assert run.warmup == before


def test_every_action_of_the_catalog_is_of_one_kind() -> None:
    actions_of = subjects.kinds(RouterEnv(subjects.two_speeds(4)).catalog)
    assert {kind: actions_of[kind] for kind in ("take", "recall", "send")} == {
        "take": [0, 1],
        "recall": [2, 3],
        "send": [4, 5],
    }
    probes = [f"probe until a wait of {wait}" for wait in ("0", "0.5", "1", "2")]
    assert list(actions_of) == ["take", "recall", "send", *probes]
    assert sorted(action for actions in actions_of.values() for action in actions) == list(range(18))


@pytest.mark.parametrize("allowed", [None, [2, 5]])
def test_many_envs_are_given_the_actions_allowed(allowed: list[int] | None) -> None:
    given: list[int] = []

    class Watched(subjects.NoOps):
        def step(self, actions: Any) -> Any:
            given.extend(actions.tolist())
            return super().step(actions)

    assert min(subjects.many(Watched(8), 0.0001, allowed)) > 0
    assert set(given) == set(allowed or range(18))


def test_policies_that_need_another_clock_can_be_measured() -> None:
    run = subjects.WarmRun(subjects.system(20), baselines.make("lwl"), seconds=0.002)
    assert timing.throughput([run], run.customers, 0.002, 1)[0] > 0
