"""Memories longer than a vector, against the naive twin."""

import pytest

from pull_env.policy.policy import Announce, Memory, Policy, Probe, Recall, Send, Take
from pull_env.scenario.scenario import Pool, Scenario
from tests.oracles.twins import pair, run_both


@pytest.mark.parametrize(
    "memory", [Memory(10), Memory(20, by_pool=False), Memory(34, by_pool=False)], ids=["pool", "most", "all"]
)
@pytest.mark.parametrize("steps", [(Take(), Recall(), Send()), (Probe(at_most=3, recall=True),)])
def test_memories_of_several_vectors(memory, steps):
    """Entries are handled by 8; only the first pool begins at a multiple of 8."""
    scenario = Scenario((Pool(19, 1.0), Pool(15, 0.6)), routers=2, load=0.95)
    policy = Policy("remembers", steps, Announce(threshold=1), memory)
    run_both(*pair(scenario, policy, 4), stops=(100, 300, 600))
