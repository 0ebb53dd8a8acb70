"""Kernel and naive twin agree, bit by bit, with slow or lost messages and faults."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from pull_env import Drain, Faults, News, Pool, Prices, Scenario
from pull_env.kernels import state
from pull_env.scenario.laws import Empirical
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import calendar_workload
from tests.oracles.cases import KEEP_ALL, all_policies, feeds, quick, systems
from tests.oracles.twins import FAULT_COUNTS, pair, run_both, state_of
from tests.oracles.workloads import WORKLOADS
from tests.scenario.test_arrivals import arrivals, laws

MIXED = Scenario((Pool(3, 2.0, 4), Pool(4, 1.0)), routers=3, load=0.8)
CASES = {
    "constant delay": {"news": News(delay=0.4)},
    "exponential delay": {"news": News(delay=0.4, law="exponential")},
    "impatient": {"news": News(delay=0.4, law="exponential", timeout=0.5)},
    "loss": {"news": News(loss=0.3)},
    "loss, repaired": {"news": News(delay=0.1, loss=0.3, repeat=1.0)},
    "repeated": {"news": News(repeat=0.7)},
    "failures": {"faults": Faults(up=8.0, down=3.0)},
    "failures lose": {"faults": Faults(up=8.0, down=3.0, customers="lost")},
    "failures interrupt": {"faults": Faults(up=3.0, down=1.0, customers="restart")},
    "slow": {"faults": Faults(normal=5.0, slow=4.0, factor=0.3)},
    "one pool": {"faults": Faults(up=4.0, down=3.0, normal=2.0, slow=2.0, pools=(1,))},
    "restarts": {"faults": Faults(restart=4.0)},
    "drained": {"faults": Faults(drains=(Drain(0, 3.0, 9.0), Drain(1, 0.0, 2.0), Drain(1, 20.0)))},
    "all": {
        "news": News(delay=0.2, law="exponential", loss=0.2, repeat=2.0),
        "faults": Faults(
            up=9.0,
            down=2.0,
            customers="lost",
            normal=6.0,
            slow=3.0,
            restart=10.0,
            drains=(Drain(0, 5.0, 8.0), Drain(1, 30.0, 40.0)),
        ),
    },
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", ["pull", "jiq", "jbt(3)", "lwl", "pull-min(2)", "probe-until-idle"])
def test_every_fault(case, name):
    scenario = replace(MIXED, **case)
    run_both(
        *pair(scenario, baselines.make(name), 3, 1, calendar_workload(scenario), extra_flags=KEEP_ALL),
        stops=(1, 40, 300),
    )


@pytest.mark.parametrize("policy", all_policies()[::5], ids=lambda policy: policy.name)
def test_many_policies_under_all_at_once(policy):
    scenario = replace(MIXED, **WORKLOADS["all"], **CASES["all"])
    run_both(*pair(scenario, policy, 5, workload=calendar_workload(scenario)), stops=(1, 40, 200))


def test_a_search_goes_on_until_somebody_answers():
    """If waiting is free one answer is enough, but there must be one."""
    scenario = replace(MIXED, prices=Prices(wait=0.0), faults=Faults(up=1.0, down=2.0))
    simulator, run, naive = pair(scenario, baselines.make("pandora"), 2, workload=calendar_workload(scenario))
    run_both(simulator, run, naive, stops=(1, 40, 300))
    assert naive.count["probes"] > 1.4 * 341  # requests, and answers to a third of them


times = st.floats(0.3, 20)
news = st.builds(
    News,
    st.just(0.0) | st.floats(0.01, 3),
    st.sampled_from(["constant", "exponential"]),
    st.just(0.0) | st.floats(0, 0.9),
    st.none() | st.floats(0.3, 5),
    st.none() | st.floats(0, 3),
)


@st.composite
def faults(draw, pools):
    """Draw faults of any kind, for a scenario with `pools` pools."""
    numbers = st.integers(0, pools - 1)
    drains = st.tuples(numbers, st.floats(0, 10), st.none() | times).map(
        lambda drain: Drain(drain[0], drain[1], drain[2] and drain[1] + drain[2])
    )
    some = {name: draw(times) for name in ("up", "down", "normal", "slow")}
    given_pairs = [pair for pair in (("up", "down"), ("normal", "slow")) if draw(st.booleans())]
    return Faults(
        **{name: some[name] for names in given_pairs for name in names},
        customers=draw(st.sampled_from(["wait", "lost", "restart"])),
        factor=draw(st.floats(0.1, 2)),
        restart=draw(st.none() | times),
        pools=draw(st.none() | st.lists(numbers, max_size=2).map(tuple)),
        drains=without_overlap(draw(st.lists(drains, max_size=3))),
    )


def without_overlap(drains):
    """Return the drains without those that overlap earlier ones."""
    kept = []
    for drain in drains:
        if not any(drain.pool == other.pool and drain.overlaps(other) for other in kept):
            kept.append(drain)
    return tuple(kept)


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    systems(),
    news,
    st.none() | arrivals.filter(quick),
    st.none() | laws.filter(lambda law: not isinstance(law, Empirical)),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_random_faults(data, system, messages, kind, law, stops):
    """Any policy, arrivals, service and faults: the same state, customers conserved."""
    scenario = system["scenario"]
    scenario = replace(scenario, news=messages, faults=data.draw(faults(len(scenario.pools))))
    workload = system["workload"] or feeds(scenario, customers=300)
    if kind or law:
        scenario = replace(scenario, arrivals=kind, service=law)
        workload = calendar_workload(scenario)
    run_both(*pair(**{**system, "scenario": scenario, "workload": workload}), stops)


@pytest.mark.parametrize("policy", all_policies(), ids=lambda policy: policy.name)
def test_without_delay_and_loss_nothing_changes(policy):
    """Bit by bit, though every message takes the path of one that may be late or lost."""
    states = []
    for flag in (0, state.FAULTS):
        simulator = Simulator(
            MIXED,
            policy.steps,
            policy.announce,
            memory=policy.memory,
            extra_flags=flag | KEEP_ALL,
            workload=calendar_workload(MIXED),
        )
        simulator.reset(4)
        simulator.run(encode(policy.steps, MIXED), 2000)
        state_now = state_of(simulator)
        states.append({key: state_now[key] for key in (states[0] if states else state_now)})
        assert not any(simulator.arrays.head[name][0] for name in FAULT_COUNTS)
    streams = [each.pop("streams") for each in states]
    assert states[0] == states[1]
    assert streams[0][:4] == streams[1][:4]
