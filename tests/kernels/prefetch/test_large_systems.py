"""A run with prefetching equals the naive twin, bit by bit, wherever it stops."""

import pytest

from pull_env import Pool, Scenario
from pull_env.kernels import run, state
from pull_env.policy.policy import Send
from pull_env.simulation import simulator as system
from pull_env.simulation.kernel_data.step_records import needs_calendar, protocol_flags, required_flags
from pull_env.simulation.simulator import Simulator
from tests.oracles.cases import SCENARIOS, all_policies
from tests.oracles.twins import pair, run_both


def is_plain(policy):
    """Return whether the kernels run a policy by `rollout_plain`, on the Markov clock."""
    announce = policy.announce and policy.announce.on(SCENARIOS["one router"])
    flags = required_flags(policy.steps, announce) | protocol_flags(announce, False, False, False)
    return flags == state.PLAIN and not needs_calendar(policy.steps)


PLAIN = [policy for policy in all_policies() if is_plain(policy)]


@pytest.mark.parametrize("policy", PLAIN, ids=lambda policy: policy.name)
def test_every_plain_policy(policy, monkeypatch):
    monkeypatch.setattr(system, "LARGE", 0)
    for seed, name in enumerate(("finite buffers", "unequal shares", "equal rates")):
        simulator, go, naive = pair(SCENARIOS[name], policy, seed)
        assert simulator._rollout is run.rollout_prefetch
        run_both(simulator, go, naive, stops=(1, 0, 2, 40, 159))


def test_only_large_systems_prefetch():
    for n, expected in ((system.LARGE - 2, run.rollout_plain), (system.LARGE, run.rollout_prefetch)):
        scenario = Scenario((Pool(n // 2, 1.25), Pool(n // 2, 0.75)), routers=2, load=0.8)
        assert Simulator(scenario, (Send(),), None)._rollout is expected
