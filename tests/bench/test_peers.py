"""The simulators that the benchmark compares with: each simulates the same system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import baselines
from pull_env import simulate
from pull_env.bench import peers, subjects

LENGTHS = {"SimPy": 22_000, "Ciw": 11_000, "Cimba": 200_000}
MARGIN = 1_000


@pytest.mark.slow
@pytest.mark.parametrize("name", list(peers.PEERS))
def test_a_peer_has_the_response_of_simulate(name: str) -> None:
    """Its mean lies among those of as many customers by `simulate`, and not among those of a similar policy.

    That of `simulate` is taken from E[N] (Little): its response has less noise than one that was clocked.
    """
    if name not in peers.installed():
        pytest.skip(f"{name} is not installed")
    scenario, counted = subjects.system(peers.SERVERS), LENGTHS[name] - 2 * MARGIN

    def runs(policy: str) -> tuple[float, float]:
        found = simulate(scenario, baselines.make(policy), 64 * counted, warmup=MARGIN, replications=64)
        samples = np.array(found.mean_number.samples) / scenario.total_arrival_rate
        return float(samples.mean()), float(samples.std(ddof=1))

    response, _ = peers.time_peer(name, LENGTHS[name], MARGIN, seed=0)
    (mean, spread), (other, other_spread) = runs("power-of-d(2)"), runs("power-of-d(3)")
    assert abs(response - mean) < 4 * spread
    assert abs(response - other) > 4 * other_spread


def test_the_bench_extra_has_all_peers() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extra = text.partition("\nbench = [")[2].partition("\n]")[0]
    assert all(f'"{module}>=' in extra for module, _, _ in peers.PEERS.values())
