"""Small systems against the exact stationary law of their Markov chain, by narrow intervals."""

import pytest

import baselines
from pull_env import Policy, Pool, Scenario, simulate
from tests.oracles.exact_values import PULL, THREE_SERVERS, TWO_SERVERS
from tests.oracles.exactness import LEVEL, measure, meets, single_servers

pytestmark = pytest.mark.slow
RUN = {"replications": 64, "seed": 1}

PULL_MEASURES = (
    "mean_number",
    "response",
    "p_block",
    "p_wait",
    "p_random",
    "pull_per_accepted",
    "remove_per_accepted",
)


@pytest.mark.parametrize("case", PULL, ids=str)
def test_pull(case):
    rates, buffers, routers, arrival_rate, *exact = case
    scenario = single_servers(rates, buffers, routers=routers, arrival_rate=arrival_rate)
    result = simulate(scenario, baselines.make("pull"), 40_000_000, **RUN)
    for name, value in zip(PULL_MEASURES, exact, strict=True):
        meets(measure(result, name), value, what=name)


@pytest.mark.parametrize("policy", TWO_SERVERS, ids=lambda policy: getattr(policy, "name", policy))
def test_two_servers(policy):
    scenario = single_servers((1, 2), (5, 5), arrival_rate=2.4)
    made = policy if isinstance(policy, Policy) else baselines.make(policy)
    few_blocked = round(4e6 / TWO_SERVERS[policy][2])  # the rarer, the more customers it takes
    result = simulate(scenario, made, few_blocked, **RUN)
    for name, value in zip(("mean_number", "response", "p_block"), TWO_SERVERS[policy], strict=True):
        meets(measure(result, name), value, what=name)


@pytest.mark.parametrize(("size", "arrival_rate", "p_block"), [(1, 2.0, 0.2857142857), (10, 24.0, 0.0701842)])
def test_pull_without_waiting_room_is_a_loss_system(size, arrival_rate, p_block):
    scenario = Scenario(pools=(Pool(size, 1.0, 1), Pool(size, 2.0, 1)), arrival_rate=arrival_rate)
    result = simulate(scenario, baselines.make("pull"), 40_000_000, **RUN)
    meets(result.p_block, p_block)
    assert result.wait.mean == 0.0


# Measures of THREE_SERVERS.
MEASURES = ("mean_number", "response", "p_block", "p_wait", "pull", "remove", "probe", "busy 0", "busy 1")


def test_every_kind_of_policy_has_an_exact_value():
    known = {name.partition("(")[0] for name in THREE_SERVERS}
    elsewhere = {"round-robin", "weighted-round-robin", "lwl", "jbt-log", "power-of-d-memory", "lsq"}
    elsewhere |= {"probe-until", "pandora"}
    assert set(baselines.POLICIES) - known == elsewhere  # all are solved in tests/theory/exact/test_solver.py


@pytest.mark.parametrize("name", THREE_SERVERS)
def test_three_servers_two_routers(name):
    scenario = single_servers((1, 1, 2), (2, 2, 3), routers=2, arrival_rate=3.2)
    rare = THREE_SERVERS[name][2] < 0.1  # few are blocked
    result = simulate(scenario, baselines.make(name), 30_000_000 if rare else 16_000_000, **RUN)
    for measured, value in zip(MEASURES, THREE_SERVERS[name], strict=True):
        meets(measure(result, measured), value, what=measured)


# Rates 1 and 2 without limits, arrival rate 2.4: E[N].
UNLIMITED = {"jsq": 5.020606, "jfsq": 4.768659, "sed": 4.747566, "balanced(2)": 5.314523}


@pytest.mark.parametrize("name", UNLIMITED)
def test_two_servers_unlimited(name):
    scenario = Scenario(pools=(Pool(1, 1.0), Pool(1, 2.0)), arrival_rate=2.4)
    result = simulate(scenario, baselines.make(name), 40_000_000, **RUN)
    assert result.stable
    meets(result.mean_number, UNLIMITED[name])


@pytest.mark.parametrize(("name", "exact"), [("pull", 12.853671), ("jiq", 12.853257)])
def test_pull_of_two_unequal_servers_unlimited(name, exact):
    """Both buffers cut at 90 would give 12.814435 for PULL: the slow server's queue has a long tail."""
    scenario = Scenario(pools=(Pool(1, 1.0), Pool(1, 2.0)), arrival_rate=2.4)
    result = simulate(scenario, baselines.make(name), 60_000_000, **RUN)
    meets(result.mean_number, exact, width=0.016)


def test_an_interval_that_misses_fails():
    scenario = single_servers((1, 2), (5, 5), arrival_rate=2.4)
    result = simulate(scenario, baselines.make("sed"), 10_000_000, **RUN)
    wrong = result.mean_number.mean + 2 * result.mean_number.half_width(LEVEL)
    with pytest.raises(AssertionError, match="exact"):
        meets(result.mean_number, wrong)
    with pytest.raises(AssertionError, match="half-width"):
        meets(result.mean_number, 3.03752542, width=1e-6)
