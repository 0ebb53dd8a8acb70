"""What holds exactly: bookkeeping within a run, and policies that are one and the same in law."""

from dataclasses import replace

import numpy as np
import pytest

import baselines
from pull_env import Pool, Prices, Scenario, simulate
from tests.oracles.exactness import agrees

pytestmark = pytest.mark.slow

SCENARIOS = {
    "finite": Scenario((Pool(3, 2.0, 4), Pool(4, 1.0, 2)), routers=3, load=0.9),
    "unlimited": Scenario((Pool(3, 1.5), Pool(4, 1.0)), routers=2, load=0.7, shares=(0.7, 0.3)),
}
ENTRIES = [baselines.make(name, **({"r": 2} if name == "jbt" else {})) for name in baselines.POLICIES]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("policy", ENTRIES, ids=lambda policy: policy.name)
def test_flow_and_little(scenario, policy):
    """sum mu_j E[busy_j] = Lambda (1 - P(block)), and E[N] = Lambda (1 - P(block)) E[response]."""
    result = simulate(scenario, policy, 4_000_000, replications=16, seed=1)
    assert result.stable
    through = scenario.total_arrival_rate * (1 - result.p_block.mean)
    work = sum(p.size * p.rate * b.mean for p, b in zip(scenario.pools, result.busy, strict=True))
    assert work == pytest.approx(through, rel=0.003)
    assert result.mean_number.mean == pytest.approx(through * result.response.mean, rel=0.005)
    assert result.messages["total"].mean == pytest.approx(
        sum(result.messages[kind].mean for kind in ("pull", "remove", "probe", "update")), rel=1e-12
    )
    prices = scenario.prices
    cost = (
        prices.wait * result.wait.mean * (1 - result.p_block.mean)
        + prices.message * result.messages["total"].mean
        + prices.block * result.p_block.mean
    )
    assert result.cost.mean == pytest.approx(cost, rel=1e-4)  # of means, against the mean over replications


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("name", ["pull", "pull-weighted", "pull-fastest", "pull-min", "jiq"])
def test_pull_messages_an_accepted_customer(scenario, name):
    """Each idle server sends one message, and each customer that does not wait ends an idle period."""
    result = simulate(scenario, baselines.make(name), 8_000_000, replications=16, seed=2)
    sent = np.array(result.messages["pull"].samples) / (1 - np.array(result.p_block.samples))
    served = 1 - np.array(result.p_wait.samples)
    assert np.abs(sent - served).max() < 1e-4  # but for the servers that are idle at either end


def same(first, second, scenario, customers=8_000_000, seeds=(3, 4)):
    run = {"replications": 16}
    one = simulate(scenario, baselines.make(first), customers, seed=seeds[0], **run)
    other = simulate(scenario, baselines.make(second), customers, seed=seeds[1], **run)
    for name in ("wait", "p_wait", "p_block", "mean_number"):
        agrees(getattr(one, name), getattr(other, name), width=0.025, what=name)


MIXED = Scenario((Pool(2, 1.0, 2), Pool(2, 2.0, 2)), load=0.9)
EQUAL = Scenario((Pool(4, 1.5, 2),), load=0.9)


@pytest.mark.parametrize(
    ("first", "second", "scenario"),
    [
        ("jbt(1)", "pull", MIXED),
        ("jbt(1)", "jiq", EQUAL),
        ("pull", "jiq", EQUAL),
        ("power-of-d(1)", "random", MIXED),
        ("balanced(1)", "weighted", MIXED),
        ("power-of-d(4)", "jsq", MIXED),
        ("sed", "jsq", EQUAL),
        ("sed-d(2)", "balanced(2)", EQUAL),
        ("pull-min(1)", "pull", MIXED),
    ],
)
def test_policies_equal_in_law(first, second, scenario):
    same(first, second, scenario)


@pytest.mark.parametrize("policy", ENTRIES, ids=lambda policy: policy.name)
def test_one_server_is_a_single_queue(policy):
    """M/M/1/4 at load .9: P(block) and E[N] of its birth-death chain, whatever the policy."""
    scenario = Scenario((Pool(1, 2.0, 4),), load=0.9)
    result = simulate(scenario, policy, 4_000_000, replications=16, seed=5)
    law = 0.9 ** np.arange(5) / (0.9 ** np.arange(5)).sum()
    assert abs(result.p_block.mean - law[4]) < result.p_block.half_width(0.999) < 0.015 * law[4]
    assert abs(result.mean_number.mean - law @ np.arange(5)) < result.mean_number.half_width(0.999) < 0.02


@pytest.mark.parametrize(
    "name", ["random", "weighted", "power-of-d(2)", "balanced(2)", "sed-d(2)", "jsq", "jfsq", "sed"]
)
def test_routers_do_not_matter_to_policies_that_keep_nothing(name):
    one = Scenario(MIXED.pools, routers=1, load=0.9)
    many = Scenario(MIXED.pools, routers=7, load=0.9)
    few, more = (simulate(s, baselines.make(name), 8_000_000, replications=16, seed=6) for s in (one, many))
    for measured in ("wait", "p_wait", "p_block", "mean_number"):
        agrees(getattr(few, measured), getattr(more, measured), width=0.025, what=measured)


def scaled(policy, factor):
    """The policy with the wait at which it stops in time units shorter by `factor`."""
    stops = [getattr(step, "stop_at", None) for step in policy.steps]
    steps = [s if not t else replace(s, stop_at=t / factor) for s, t in zip(policy.steps, stops, strict=True)]
    return replace(policy, steps=tuple(steps))


@pytest.mark.parametrize("policy", ENTRIES, ids=lambda policy: policy.name)
def test_scaling_all_rates_scales_time(policy):
    slow = Scenario((Pool(2, 1.0, 3), Pool(2, 2.0, 5)), routers=2, load=0.9)
    prices = Prices(wait=4.0)  # so that asking costs a quarter of the time
    fast = Scenario((Pool(2, 4.0, 3), Pool(2, 8.0, 5)), routers=2, load=0.9, prices=prices)  # by 4: exact
    one, other = (
        simulate(s, p, 200_000, replications=4, seed=7)
        for s, p in ((slow, policy), (fast, scaled(policy, 4.0)))
    )
    assert one.wait.mean == 4 * other.wait.mean
    assert one.p_block == other.p_block
    assert one.messages == other.messages
