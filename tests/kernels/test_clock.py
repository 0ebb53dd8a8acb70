"""The clocks against the naive twin: all workloads, and feeds that end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from pull_env import Pool, Scenario
from pull_env.scenario.arrivals import HotRouter
from pull_env.scenario.laws import Empirical
from pull_env.simulation.kernel_data.customers import Customers
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import calendar_workload
from tests.oracles.cases import KEEP_ALL, SCENARIOS, all_policies, feeds, quick, systems
from tests.oracles.twins import pair, run_both
from tests.oracles.workloads import WORKLOADS
from tests.scenario.test_arrivals import arrivals, laws

MIXED = Scenario((Pool(3, 2.0, 4), Pool(4, 1.0)), routers=3, load=0.8)


@pytest.mark.parametrize("parts", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("name", ["pull", "jiq", "lwl", "probe-until-idle"])
def test_every_workload(parts, name):
    scenario = replace(MIXED, **parts)
    simulator, run, naive = pair(
        scenario, baselines.make(name), 3, 1, calendar_workload(scenario), extra_flags=KEEP_ALL
    )
    run_both(simulator, run, naive, stops=(1, 40, 400))


@pytest.mark.parametrize("policy", all_policies()[::3], ids=lambda policy: policy.name)
def test_many_policies_under_all_at_once(policy):
    scenario = replace(MIXED, **WORKLOADS["all"])
    run_both(*pair(scenario, policy, 5, workload=calendar_workload(scenario)), stops=(1, 40, 200))


@settings(max_examples=60, deadline=None)
@given(
    systems(),
    st.none() | arrivals.filter(quick),
    st.none() | laws.filter(lambda law: not isinstance(law, Empirical)),
    st.none() | st.builds(HotRouter, st.floats(0.01, 1), st.floats(0.1, 100)),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_random_combinations(system, kind, law, hot, stops):
    """`run_both` compares all state, and checks that customers are conserved."""
    scenario = replace(system["scenario"], arrivals=kind, service=law)
    if hot and scenario.routers > 1:
        scenario = replace(scenario, shares=hot)
    run_both(*pair(**{**system, "scenario": scenario, "workload": calendar_workload(scenario)}), stops)


@pytest.mark.parametrize("routers", [[0, 1, 2, 3], [-1, 0, 1, 2]])
def test_a_feed_with_routers_that_are_not_there(routers):
    class Feed:
        def __init__(self, sequence):
            pass

        def draw(self, count):
            return Customers([1.0] * 4, [1.0] * 4, routers)

    policy = baselines.make("random")
    simulator = Simulator(MIXED, policy.steps, policy.announce, workload=Feed)
    with pytest.raises(ValueError, match=r"workload gave routers .*: they must be from 0 to 2"):
        simulator.reset(0)


@pytest.mark.parametrize("customers", [0, 1, 2, 96, 97, 98, 250])
def test_feed_ends(customers):
    scenario = SCENARIOS["finite buffers"]
    policy = baselines.make("pull")
    stops = (0, 1, 95, 1, 1, 100, 100)
    run_both(*pair(scenario, policy, 1, workload=feeds(scenario, customers=customers)), stops)
