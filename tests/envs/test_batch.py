"""`Batch`: its threads, and that their number changes nothing."""

import numpy as np

from pull_env.envs import batch
from pull_env.envs.vector import RouterVectorEnv
from tests.oracles.env_twins import assert_same


def test_the_same_whatever_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(batch, "ENVS_PER_THREAD", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    automatic = RouterVectorEnv(7, scenario="two-speeds", customers=9)
    assert automatic._batch.chunks == [(0, 2), (2, 4), (4, 7)]
    given = [RouterVectorEnv(7, scenario="two-speeds", customers=9, workers=w) for w in (1, 2, 50)]
    assert [len(envs._batch.chunks) for envs in given] == [1, 2, 7]
    answers = []
    for envs in (automatic, *given):
        rng = np.random.default_rng(0)
        answers.append([envs.reset(seed=1)] + [envs.step(rng.integers(18, size=7)) for _ in range(30)])
        envs.close()
    for answer in answers[1:]:
        assert_same(answers[0], answer)


def test_threads_are_not_used_where_they_cost_more_than_they_give():
    """Waking a thread takes as long as some hundred steps: too long for few envs."""
    assert len(RouterVectorEnv(256, scenario="small-mixed")._batch.chunks) == 1
    assert batch.threads(1023) == 1
