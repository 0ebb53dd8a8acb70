"""Exact laws of small systems: against tables of numbers, identities, and simulation of every policy."""

import dataclasses
import math

import pytest

import baselines
from pull_env import (
    Cycle,
    Inspect,
    Policy,
    Pool,
    Prices,
    Probe,
    Recall,
    Scenario,
    Search,
    Send,
    Take,
    simulate,
)
from pull_env.policy.policy import Announce
from pull_env.scenario.scenario import Trace
from pull_env.theory.exact import solve
from pull_env.theory.formulas import erlang_c, mmc_response, mmc_wait
from tests.oracles.exact_values import PULL, THREE_SERVERS, TWO_SERVERS
from tests.oracles.exactness import single_servers


def chosen(name):
    """Return a policy of the table; arguments that it requires are 2."""
    required = {k: 2 for k, p in baselines.POLICIES[name].arguments.items() if p.default is p.empty}
    return baselines.make(name, **required)


@pytest.mark.parametrize("case", PULL, ids=str)
def test_pull(case):
    rates, buffers, routers, arrival_rate, *known = case
    found = solve(
        single_servers(rates, buffers, routers=routers, arrival_rate=arrival_rate), baselines.make("pull")
    )
    pull, remove, accepted = found.messages["pull"], found.messages["remove"], 1 - found.p_block
    values = [found.mean_number, found.response, found.p_block, found.p_wait]
    values += [1 - pull + remove, pull / accepted, remove / accepted]
    assert values == pytest.approx(known, abs=1e-8)


@pytest.mark.parametrize("policy", TWO_SERVERS, ids=lambda policy: getattr(policy, "name", policy))
def test_two_servers(policy):
    made = policy if isinstance(policy, Policy) else baselines.make(policy)
    found = solve(single_servers((1, 2), (5, 5), arrival_rate=2.4), made)
    values = (found.mean_number, found.response, found.p_block)
    assert values == pytest.approx(TWO_SERVERS[policy], abs=1e-7)


@pytest.mark.parametrize(("size", "arrival_rate", "p_block"), [(1, 2.0, 0.2857142857), (10, 24.0, 0.0701842)])
def test_pull_without_waiting_room_is_a_loss_system(size, arrival_rate, p_block):
    """Servers of a pool are alike, so that 20 of them have 11 x 11 states."""
    scenario = Scenario(pools=(Pool(size, 1.0, 1), Pool(size, 2.0, 1)), arrival_rate=arrival_rate)
    found = solve(scenario, baselines.make("pull"))
    assert found.p_block == pytest.approx(p_block, abs=1e-7)
    assert (found.wait, found.states) == (0.0, (size + 1) ** 2)


@pytest.mark.parametrize("name", THREE_SERVERS)
def test_three_servers_two_routers(name):
    scenario = single_servers((1, 1, 2), (2, 2, 3), routers=2, arrival_rate=3.2)
    found = solve(scenario, baselines.make(name))
    messages = [found.messages[kind] for kind in ("pull", "remove", "probe")]
    values = (found.mean_number, found.response, found.p_block, found.p_wait, *messages, *found.busy)
    assert values == pytest.approx(THREE_SERVERS[name], abs=1e-8)


# JIQ: rates, buffers, routers, arrival rate; then E[N], P(block), P(wait), pull-messages an arriving customer.
JIQ = [
    ((1, 2), (2, 2), 2, 2.4, 1.8467467952578311, 0.23207920011806596, 0.4145822666925823, 0.4495544540265006),
    ((1, 1, 2), (2, 2, 1), 2, 3.0, 2.364475714209641, 0.24954329390909255, 0.24491824595566605, 0.5666561659694553),
    ((1, 1, 2), (2, 2, 3), 2, 3.2, 3.0025830903635504, 0.17792469773964678, 0.4261473695578017, 0.47175007462366997),
    ((1, 2), (5, 5), 1, 2.4, 3.66174906334869, 0.06966659510464955, 0.5942018207318753, 0.3775276018188481),
]  # fmt: skip


@pytest.mark.parametrize("case", JIQ, ids=str)
def test_jiq(case):
    rates, buffers, routers, arrival_rate, *known = case
    found = solve(
        single_servers(rates, buffers, routers=routers, arrival_rate=arrival_rate), baselines.make("jiq")
    )
    values = (found.mean_number, found.p_block, found.p_wait, found.messages["pull"])
    assert values == pytest.approx(known, abs=1e-11)


# Rates 1 and 2 without limits, arrival rate 2.4: E[N].
UNLIMITED = {
    "jsq": 5.020606,
    "jfsq": 4.768659,
    "sed": 4.747566,
    "balanced(2)": 5.314523,
    "pull": 12.853671,
    "jiq": 12.853257,
    "pull-weighted": 5.654585,
}


@pytest.mark.parametrize("name", UNLIMITED)
def test_infinite_buffers_are_followed_as_far_as_it_matters(name):
    found = solve(Scenario((Pool(1, 1.0), Pool(1, 2.0)), arrival_rate=2.4), baselines.make(name))
    assert found.mean_number == pytest.approx(UNLIMITED[name], abs=1e-6)
    assert found.p_block < 1e-12


def test_the_digits_that_both_buffers_cut_at_90_give():
    """The oracle has 12.814435 for JIQ of these servers without limits: it is PULL where buffers end at 90."""
    cut = Scenario((Pool(1, 1.0, 90), Pool(1, 2.0, 90)), arrival_rate=2.4)
    assert solve(cut, baselines.make("pull")).mean_number == pytest.approx(12.814435, abs=1e-6)
    assert solve(cut, baselines.make("sed")).mean_number == pytest.approx(UNLIMITED["sed"], abs=1e-6)


TWO_EQUAL = {  # load; E[N] of two equal servers without limits
    0.8: {"jsq": 4.72918, "jbt(8)": 6.41192, "jbt(4)": 5.47094, "jbt(2)": 5.15921, "jiq": 5.53846},
    0.9: {"jsq": 9.85484, "jbt(8)": 11.97918, "jbt(4)": 10.78772, "jbt(2)": 10.90083, "jiq": 12.21429},
    0.95: {"jsq": 19.92461},
}


@pytest.mark.parametrize("load", TWO_EQUAL)
def test_two_equal_servers_without_limits(load):
    for name, mean_number in TWO_EQUAL[load].items():
        found = solve(Scenario((Pool(2),), load=load), baselines.make(name))
        assert found.mean_number == pytest.approx(mean_number, abs=6e-6), name


def same(first, second):
    one, other = (dataclasses.asdict(found) for found in (first, second))
    for name in ("wait", "response", "p_wait", "p_block", "mean_number", "busy"):
        assert one[name] == pytest.approx(other[name], abs=1e-10), name


def test_identities_between_policies():
    mixed = Scenario((Pool(2, 1.0, 3), Pool(1, 2.5, 2)), routers=2, load=0.9)
    alone = dataclasses.replace(mixed, routers=1)
    equal = Scenario((Pool(3, 1.5, 3),), routers=2, load=0.9)
    make = baselines.make
    same(solve(alone, make("jbt(1)")), solve(alone, make("pull")))
    same(solve(mixed, make("power-of-d(1)")), solve(mixed, make("random")))
    same(solve(mixed, make("balanced(1)")), solve(mixed, make("weighted")))
    same(solve(mixed, make("power-of-d(3)")), solve(mixed, make("jsq")))
    same(solve(equal, make("sed")), solve(equal, make("jsq")))
    same(solve(mixed, make("jsq")), solve(alone, make("jsq")))
    # A memory that learns everything at once is a look at all servers; with one router it needs no probes.
    asks = Policy("asks all", (Probe(at_most=3, rank="queue then speed"),))
    same(solve(mixed, asks), solve(mixed, make("jfsq")))


def test_servers_in_one_pool_or_in_two_make_no_difference():
    for name in ("pull", "jiq", "weighted-round-robin", "power-of-d"):
        joint = solve(Scenario((Pool(2, 1.0, 2),), routers=2, load=0.8), chosen(name))
        apart = solve(Scenario((Pool(1, 1.0, 2), Pool(1, 1.0, 2)), routers=2, load=0.8), chosen(name))
        assert joint.mean_number == pytest.approx(apart.mean_number, abs=1e-10), name


def test_round_robin_of_equal_servers_is_a_queue_with_erlang_arrivals():
    """E_2/M/1: the root s of s = (a / (a + 1 - s))^2 in (0, 1), a = 2 x .8, gives the wait s / (1 - s)."""
    root = 0.5
    for _ in range(1000):
        root = (1.6 / (1.6 + 1 - root)) ** 2
    found = solve(Scenario((Pool(2),), load=0.8), baselines.make("round-robin"))
    assert found.wait == pytest.approx(root / (1 - root), rel=1e-8)


def test_least_work_is_first_come_first_served():
    """Of one server it is M/M/1/B; of equal servers with buffers too long to matter, M/M/n."""
    single = Scenario((Pool(1, 2.0, 4),), load=0.9)
    same(solve(single, baselines.make("lwl")), solve(single, baselines.make("random")))
    pair = Scenario((Pool(2, 1.0, 6),), load=0.2)
    found = solve(pair, baselines.make("lwl"))
    assert found.wait == pytest.approx(mmc_wait(2, 0.4), rel=5e-4)
    assert found.p_wait == pytest.approx(erlang_c(2, 0.4), rel=5e-4)


def test_a_search_that_asks_once_is_a_blind_choice_by_rate_that_pays():
    dear = dataclasses.replace(SMALL, prices=Prices(1.0, 1.0, 1.0))
    found, blind = (solve(dear, baselines.make(name)) for name in ("pandora", "pull-fastest"))
    same(found, blind)
    asked = 1 - found.messages["pull"] + found.messages["remove"]  # all messages are taken or withdrawn
    assert found.messages["probe"] == pytest.approx(2 * asked)


def test_sums_and_prices():
    scenario = Scenario((Pool(2, 1.0, 2), Pool(1, 2.0)), routers=2, load=0.8, prices=Prices(2.0, 0.1, 5.0))
    for policy in (baselines.make("pull"), Policy("mixed", (Take(), Probe(stop_at=0.0)), Announce())):
        found = solve(scenario, policy)
        through = scenario.total_arrival_rate * (1 - found.p_block)
        served = sum(p.size * p.rate * busy for p, busy in zip(scenario.pools, found.busy, strict=True))
        assert served == pytest.approx(through, rel=1e-10)
        assert found.mean_number == pytest.approx(through * found.response, rel=1e-10)
        assert found.messages["total"] == pytest.approx(sum(found.messages.values()) / 2)
        paid = 2.0 * found.wait * (1 - found.p_block) + 0.1 * found.messages["total"] + 5.0 * found.p_block
        assert found.cost == pytest.approx(paid, rel=1e-12)
        assert (found.cut[0], math.isnan(found.cost)) == (2, False)


SMALL = Scenario((Pool(2, 1.0, 2), Pool(1, 2.0, 3)), routers=2, load=0.8)
INFINITE = Scenario((Pool(2, 1.0), Pool(1, 2.0)), routers=2, load=0.8)
DEAR = dataclasses.replace(INFINITE, prices=Prices(1.0, 100.0, 1.0))
REFUSED = {
    "unfinished work of some": (SMALL, Policy("probe", (Probe(rank="work"),)), "probes by 'work'"),
    "unfinished work without limit": (INFINITE, baselines.make("lwl"), "ranks by 'work'"),
    "earlier answers": (SMALL, baselines.make("pandora"), "searches by earlier answers"),
    "earlier answers without limit": (DEAR, baselines.make("pandora"), "searches by earlier answers"),
    "a trace": (
        dataclasses.replace(SMALL, arrivals=Trace("a.csv", "time", "size")),
        baselines.make("pull"),
        "trace",
    ),
    "memory without limit": (INFINITE, Policy("recall", (Recall(), Send())), "recalls"),
    "too many states": (INFINITE, baselines.make("pull"), "more than 2,000 states"),
    "too many buffers": (Scenario((Pool(9, 1.0, 9),), load=0.9), baselines.make("jsq"), "up to 9 customers"),
    "too many servers": (Scenario((Pool(101),), load=0.9), baselines.make("jsq"), "at most 100"),
    "overload": (Scenario((Pool(2),), load=1.0), baselines.make("jsq"), "load 1 and no limits"),
    "saturation of the slow server": (
        Scenario((Pool(1, 1.0), Pool(1, 9.0)), load=0.6),
        baselines.make("pull"),
        "more than 2,000 states",
    ),
    "one pool far too slow": (
        Scenario((Pool(1, 1.0), Pool(1, 9.0, 2)), load=5.0),
        baselines.make("random"),
        "more than 2,000 states",
    ),
    "a pool that is not there": (SMALL, Policy("send", (Send(pool=2),)), "pools 0 to 1"),
    "no common unit": (
        Scenario((Pool(1, 1.0, 2), Pool(1, math.pi * 1e-6, 2)), load=0.8),
        baselines.make("weighted-round-robin"),
        "no common unit",
    ),
    "a round robin that takes long to repeat": (
        Scenario((Pool(1, 1.0, 2), Pool(1, 1.0001, 2)), load=0.8),
        baselines.make("weighted-round-robin"),
        "more than 2,000 states",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_solved_is_refused(case):
    scenario, policy, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        solve(scenario, policy, most_states=2_000)


# Simulation: an interval of this level for each of some 1,500 comparisons, of which none should fail by chance.
LEVEL = 1 - 1e-5
SCENARIOS = {
    "two routers": Scenario((Pool(2, 1.0, 2), Pool(1, 2.0, 3)), routers=2, arrival_rate=3.2),
    "one router": Scenario((Pool(2, 1.5, 1), Pool(1, 0.5, 2)), load=0.9),
    "unequal shares": Scenario((Pool(1, 1.0, 3), Pool(1, 3.0, 2)), routers=2, load=1.1, shares=(0.8, 0.2)),
}
# What routers remember multiplies the states: fewer servers for these.
# The chain holds no earlier answers: prices at which one is enough, as no queue promises a wait above 4.
ONCE = Prices(wait=1.0, message=2.0, block=1.0)
SMALLER = {"two routers": Scenario((Pool(1, 1.0, 2), Pool(1, 2.0, 3)), routers=2, arrival_rate=2.4)}
CHAINS = [  # with what no named policy has
    Policy("oldest of a pool", (Take(pool=0, order="oldest"), Cycle(weights="rate")), Announce(threshold=2)),
    Policy("fewest of two", (Take(order="fastest"), Inspect()), Announce(recipient="fewest", sample=2)),
    Policy("stale, below 2", (Take(), Probe(stop_at=0.6, rank="delay")), Announce(2, withdraw=False)),
    # Who holds a customer may get another, after a router looked ahead to when it would idle.
    Policy("below 2, least work", (Take(pool=1), Inspect(rank="work")), Announce(threshold=2)),
]
REMEMBER = [
    Policy("recall", (Recall(), Probe(at_most=3))),
    Policy("recall of a pool", (Recall(pool=0), Probe(pool=0, stop_at=0.5))),
    Policy("take, recall", (Take(order="fastest"), Recall(), Probe(at_most=1)), Announce()),
]


def agrees(scenario, policy, customers=1_500_000):
    """Fail unless the interval of every measure of a simulation holds the exact value."""
    exact = solve(scenario, policy)
    found = simulate(scenario, policy, customers, replications=32, seed=3, workers=1)
    names = ("wait", "response", "p_wait", "p_block", "mean_number", "cost")
    pairs = {name: (getattr(found, name), getattr(exact, name)) for name in names}
    pairs |= {kind: (found.messages[kind], value) for kind, value in exact.messages.items()}
    pairs |= {f"busy {j}": pair for j, pair in enumerate(zip(found.busy, exact.busy, strict=True))}
    for name, (estimate, value) in pairs.items():
        half = max(estimate.half_width(LEVEL), 1e-9)  # a constant has no error but that of rounding
        assert abs(estimate.mean - value) <= half, f"{name}: {estimate.mean} +- {half}, exact {value}"
        assert half <= max(0.05 * value, 0.002), f"{name}: half-width {half} of {value}"


@pytest.mark.slow
@pytest.mark.parametrize("system", SCENARIOS)
@pytest.mark.parametrize("name", sorted(baselines.POLICIES))
def test_every_registered_policy_is_simulated_as_it_is_solved(name, system):
    policy, scenario = chosen(name), SCENARIOS[system]
    if any(getattr(step, "recall", False) for step in policy.steps):
        scenario = SMALLER.get(system, scenario)
    if any(isinstance(step, Search) for step in policy.steps):
        scenario = dataclasses.replace(scenario, prices=ONCE)
    agrees(scenario, policy)


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 3, 10])
def test_least_work_left_of_equal_servers_is_one_queue(servers):
    """Without limits the chain looks ahead too far; but `lwl` is first come, first served, by M/M/n."""
    scenario = Scenario((Pool(servers, 2.0),), routers=2, load=0.8)
    found = simulate(scenario, baselines.make("lwl"), 16_000_000, replications=32, seed=3, workers=1)
    busy = scenario.total_arrival_rate / 2.0
    exact = {
        "wait": mmc_wait(servers, scenario.total_arrival_rate, 2.0),
        "p_wait": erlang_c(servers, busy),
        "mean_number": scenario.total_arrival_rate * mmc_response(servers, scenario.total_arrival_rate, 2.0),
    }
    for name, value in exact.items():
        estimate = getattr(found, name)
        assert abs(estimate.mean - value) <= estimate.half_width(LEVEL) <= 0.03 * value, name
    assert found.messages["probe"].mean == 2 * servers


@pytest.mark.slow
@pytest.mark.parametrize("policy", CHAINS, ids=lambda policy: policy.name)
def test_other_steps_are_simulated_as_they_are_solved(policy):
    agrees(SCENARIOS["two routers"], policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", REMEMBER, ids=lambda policy: policy.name)
def test_what_routers_remember_is_simulated_as_it_is_solved(policy):
    agrees(SCENARIOS["one router"], policy)
