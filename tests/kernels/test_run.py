"""The simulator against its naive twin, bit by bit: every policy, on both clocks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from pull_env.kernels import state
from pull_env.policy.policy import Announce, Memory, Policy, Recall, Send, Take
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.simulation.kernel_data.step_records import needs_calendar
from tests.oracles.cases import KEEP_ALL, SCENARIOS, Exponential, Simultaneous, all_policies, feeds, systems
from tests.oracles.twins import pair, run_both


@pytest.mark.parametrize("policy", all_policies(), ids=lambda policy: policy.name)
@pytest.mark.parametrize("clock", ["markov", "calendar"])
def test_every_policy(policy, clock):
    if clock == "markov" and needs_calendar(policy.steps):
        pytest.skip("only the calendar clock knows the work left")
    for seed, scenario in enumerate(SCENARIOS.values()):
        workload = feeds(scenario) if clock == "calendar" else None
        run_both(*pair(scenario, policy, seed, workload=workload), stops=(1, 40, 159))


@pytest.mark.parametrize(
    "kind", [None, Exponential, Simultaneous], ids=["markov", "exponential", "simultaneous"]
)
@pytest.mark.parametrize("name", ["pull-min", "jiq", "jbt(3)", "sed", "probe-until-idle"])
def test_long_run(name, kind):
    scenario = Scenario((Pool(6, 0.5, 8), Pool(5, 1.0), Pool(4, 2.0, 1)), routers=3, load=0.9)
    workload = kind and feeds(scenario, kind)
    run_both(
        *pair(scenario, baselines.make(name), 7, 1, workload, extra_flags=KEEP_ALL), stops=(500, 1000, 1500)
    )


def test_a_threshold_without_limit():
    """Without limits of threshold and buffers every server is always available."""
    scenario = Scenario((Pool(2, 0.5), Pool(1, 2.0)), routers=2, load=1.0)
    policy = Policy("no limit", (Take(), Recall(), Send()), Announce(growth=1.0), Memory(2))
    assert policy.announce.on(scenario).threshold == 2**30
    run_both(*pair(scenario, policy, 3), stops=(1, 40, 300))


@settings(max_examples=300, deadline=None)
@given(systems(), st.lists(st.integers(0, 60), min_size=1, max_size=4), st.sampled_from([2, 3, state.LEVELS]))
def test_random_systems(system, stops, levels):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEVELS", levels)  # few levels: most queues are beyond the last
        run_both(*pair(**system), stops)
