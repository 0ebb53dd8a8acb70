"""What is measured from outside a process, and the bytes of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from pull_env.bench import processes
from pull_env.bench.subjects import system


@pytest.mark.parametrize("name", ["pull", "jiq", "jsq"])
def test_bytes_by_server_and_slot_give_the_size_of_other_systems(name: str) -> None:
    policy = baselines.make(name)
    server, slot = (m.median for m in processes.footprint(policy))
    small, large = (processes.array_bytes(system(n, 3), policy) for n in (3000, 7000))
    assert large - small == 4000 * (server + 3 * slot)


def test_the_peak_is_that_of_the_process_alone() -> None:
    ballast = np.ones(100_000_000)  # 800 MB, which a process started from here would be charged with
    _, peak = processes.simulate_in_child(system(2), baselines.make("pull"), 1000, 0)
    assert peak is not None
    assert 50e6 < peak < 600e6
    assert ballast.size


def test_a_process_that_fails_is_reported() -> None:
    with pytest.raises(OSError, match="has ended with status 1: ZeroDivisionError"):
        processes.run_python(("-c", "1 / 0"))
