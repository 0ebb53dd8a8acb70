"""The threads of a vector env: they sleep, wake, refuse, and end with it."""

import gc
import threading
import time

import numpy as np
import pytest

from pull_env.envs import batch_threads
from pull_env.envs.vector import RouterVectorEnv
from pull_env.kernels.envs.batch_threads import SLEEPING


def threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("pull_env-")}


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("spin_limit", [0, 1, 20_000])
def test_a_worker_that_slept_runs_the_next_task(spin_limit, monkeypatch):
    monkeypatch.setattr(batch_threads, "SPIN_LIMIT", spin_limit)
    one, many = (RouterVectorEnv(6, scenario="two-speeds", workers=workers) for workers in (1, 3))
    one.reset(seed=0), many.reset(seed=0)
    rng = np.random.default_rng(0)
    for k in range(400):
        actions = rng.integers(18, size=6)
        assert np.array_equal(one.step(actions)[0], many.step(actions)[0])
        if k % 100 == 0:
            wait_until(lambda: (many._batch._threads._tasks["state"][:3] == SLEEPING).all())
    many.close()


def test_no_env_is_stepped_where_an_action_is_refused():
    envs = RouterVectorEnv(4, workers=2)
    envs.reset(seed=0)
    envs.step([0, 0, 0, 0])
    for actions in ([18, 0, 0, 0], [0, 0, 0, -1]):
        with pytest.raises(ValueError, match="it must be a whole number from 0 to 17"):
            envs.step(actions)
    assert [env.simulator.placed for env in envs.envs] == [1, 1, 1, 1]
    envs.close()


def test_threads_end_when_the_env_is_closed_or_forgotten():
    before = threads()
    closed, forgotten = (RouterVectorEnv(4, workers=3) for _ in range(2))
    for envs in (closed, forgotten):
        envs.reset(seed=0)
        envs.step([0, 1, 2, 3])
    assert len(threads() - before) == 4
    closed.close()
    wait_until(lambda: len(threads() - before) == 2)
    del envs, forgotten
    gc.collect()
    wait_until(lambda: threads() <= before)


def test_a_thread_that_has_just_been_woken_can_be_stopped(monkeypatch):
    """An env may be closed before the thread has seen the wake event."""
    monkeypatch.setattr(batch_threads, "run_tasks", lambda address, spin_limit: time.sleep(0.3))
    before = threads()
    single = batch_threads.BatchThreads(0, [(0, 1), (1, 2)])
    batch_threads._set(single._wake_events[0])
    batch_threads._set(single._wake_events[0])
    single.close()
    wait_until(lambda: threads() <= before)
