"""A run that looks ahead does what the naive twin does, to the bit, wherever it is stopped."""

import pytest

from pull_env import Pool, Scenario
from pull_env.kernels import run, state
from pull_env.policy.policy import Send
from pull_env.simulation import simulator as system
from pull_env.simulation.kernel_data.step_records import needs_calendar, protocol_flags, required_flags
from pull_env.simulation.simulator import Simulator
from tests.kernels.test_twin import SCENARIOS, all_policies, pair, run_both


def is_plain(policy):
    """Whether the kernels have a loop of its own for a policy, by the Markov clock."""
    announce = policy.announce and policy.announce.on(SCENARIOS["one router"])
    traits = required_flags(policy.steps, announce) | protocol_flags(announce, False, False, False)
    return traits == state.PLAIN and not needs_calendar(policy.steps)


PLAIN = [policy for policy in all_policies() if is_plain(policy)]


@pytest.mark.parametrize("policy", PLAIN, ids=lambda policy: policy.name)
def test_every_plain_policy(policy, monkeypatch):
    monkeypatch.setattr(system, "LARGE", 0)
    for seed, name in enumerate(("finite buffers", "unequal shares", "equal rates")):
        simulator, go, naive = pair(SCENARIOS[name], policy, seed)
        assert simulator._rollout is run.rollout_prefetch
        run_both(simulator, go, naive, stops=(1, 0, 2, 40, 159))


def test_only_large_systems_look_ahead():
    for n, expected in ((system.LARGE - 2, run.rollout_plain), (system.LARGE, run.rollout_prefetch)):
        scenario = Scenario((Pool(n // 2, 1.25), Pool(n // 2, 0.75)), routers=2, load=0.8)
        assert Simulator(scenario, (Send(),), None)._rollout is expected
