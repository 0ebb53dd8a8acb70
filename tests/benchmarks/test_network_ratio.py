"""The guard of a network's speed: a decision against the loop of fixed work of `test_ratio`, in turns.

Where the compiler makes no vector instructions, a decision takes four times as long.
"""

from __future__ import annotations

import numpy as np

from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from tests.benchmarks.test_ratio import STEPS, reference, seconds
from tests.oracles.networks import network

MEASURED = 85.0  # a decision of two layers of 64 in steps of the loop: median of ten runs of this test
BOUND = 2.0 * MEASURED

DECISIONS, ROUNDS = 2_000, 200


def ratio():
    """Return the time of a decision in steps of the loop: least times, undisturbed by other processes."""
    compiled, fixed = CompiledNetwork(network(22, 64, 64, 18)), reference()
    observations = np.random.default_rng(0).random((DECISIONS, 22), np.float32)
    compiled.preferences(observations)
    fixed()  # compiles
    ours = [seconds(lambda: compiled.preferences(observations)) for _ in range(ROUNDS)]
    times = np.array([(own, seconds(fixed)) for own in ours])
    a_decision, a_step = times.min(axis=0) / (DECISIONS, STEPS)
    return a_decision / a_step


def test_a_decision_is_made_of_vector_instructions():
    measured = ratio()
    assert measured <= BOUND, f"a decision takes {measured:.1f} steps of the loop, was {MEASURED:.1f}"


if __name__ == "__main__":
    for _ in range(10):
        print(f"{ratio():.2f}", flush=True)
