"""The guard of large systems: a run that looks ahead against one that does not, in one process and in turns.

Where what is fetched is not what is needed, both take the same time.
"""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from pull_env import Pool, Scenario
from pull_env.simulation import simulator as system
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from tests.benchmarks.test_ratio import seconds

MEASURED = {"pull": 0.39, "balanced(2)": 0.39}
BOUND = 0.7

SERVERS, CUSTOMERS, ROUNDS = 1_000_000, 10_000, 60


def simulation(name):
    """Return a call that places `CUSTOMERS` customers by a policy on a million servers, some of them busy."""
    scenario = Scenario((Pool(SERVERS // 2, 1.25), Pool(SERVERS // 2, 0.75)), routers=10, load=0.9)
    policy = baselines.make(name)
    simulator, chain = Simulator(scenario, policy.steps, policy.announce), encode(policy.steps, scenario)
    simulator.reset(0)
    simulator.run(chain, SERVERS)
    return lambda: simulator.run(chain, CUSTOMERS)


def ratio(name):
    """Return the time of a run that looks ahead, over that of one that does not: least times."""
    ahead = simulation(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "LARGE", SERVERS + 1)
        plain = simulation(name)
    times = np.array([(seconds(ahead), seconds(plain)) for _ in range(ROUNDS)])
    looking, waiting = times.min(axis=0)
    return looking / waiting


@pytest.mark.parametrize("name", MEASURED)
def test_a_large_system_does_not_wait_for_its_memory(name):
    found = ratio(name)
    assert found <= BOUND, f"a customer of {name} takes {found:.2f} of the time, and took {MEASURED[name]}"


if __name__ == "__main__":
    for _ in range(5):
        print(*(f"{name}: {ratio(name):.2f}" for name in MEASURED), flush=True)
