"""How rates are timed."""

from __future__ import annotations

import time
from functools import partial

import pytest

from pull_env.bench import timing


def test_a_rate_is_what_was_done_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def block() -> None:
        clock[0] += 0.375

    assert timing.throughput([block], 6, 1.0, timings=2) == (16.0, 16.0)  # three blocks, until 1.125


def test_threads_add_up() -> None:
    one, two = (timing.throughput([partial(time.sleep, 0.01)] * k, 1, 0.1) for k in (1, 2))
    assert 1.5 * max(one) < max(two) < 2.5 * 100
