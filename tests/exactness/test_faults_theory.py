"""Troubles against Markov chains solved here, closed forms, and identities between runs."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import baselines
from pull_env import Drain, Faults, News, Policy, Pool, Scenario, Send, simulate
from pull_env.scenario.laws import Deterministic
from pull_env.simulation.workload import calendar_workload

ONE = Scenario((Pool(1, 1.0),), load=0.6)
RANDOM = baselines.make("random")


def stationary(start, moves):
    """Return the stationary law, state: probability, of a chain that `moves` to (state, rate)."""
    numbers, order = {start: 0}, [start]
    rows = []
    for state in order:
        for target, rate in moves(state):
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            rows.append((numbers[state], numbers[target], rate))
    generator = np.zeros((len(order), len(order)))
    for source, target, rate in rows:
        generator[source, target] += rate
        generator[source, source] -= rate
    generator[:, 0] = 1.0  # in place of one balance equation, which follows from the others
    law = np.linalg.solve(generator.T, np.eye(len(order))[0])
    return dict(zip(order, law, strict=True))


def mean(law, value):
    return sum(value(state) * chance for state, chance in law.items())


def check(estimate, exact):
    """The exact value lies within twice the half-width of the 95 % interval."""
    assert estimate.count > 5
    assert abs(estimate.mean - exact) < max(2 * (estimate.mean - estimate.low), 1e-12), (estimate, exact)


@pytest.mark.parametrize("customers", ["wait", "lost"])
def test_failures_of_a_single_server(customers):
    arrivals, fails, returns, longest = 0.6, 0.05, 0.2, 80

    def moves(state):
        queue, up = state
        if not up:
            yield (queue, True), returns
            return
        yield (0 if customers == "lost" else queue, False), fails
        if queue:
            yield (queue - 1, True), 1.0
        if queue < longest:
            yield (queue + 1, True), arrivals

    law = stationary((0, True), moves)
    scenario = replace(ONE, faults=Faults(up=1 / fails, down=1 / returns, customers=customers))
    result = simulate(scenario, RANDOM, 800_000, seed=1)
    check(result.p_block, mean(law, lambda s: not s[1]))
    check(result.mean_number, mean(law, lambda s: s[0]))
    check(result.busy[0], mean(law, lambda s: s[0] > 0))
    accepted = arrivals * mean(law, lambda s: s[1])
    check(result.response, mean(law, lambda s: s[0]) / accepted)  # Little
    check(result.p_wait, arrivals * mean(law, lambda s: s[1] and s[0] > 0) / accepted)
    if customers == "lost":
        check(result.p_lost, fails * mean(law, lambda s: s[0] * s[1]) / arrivals)
    else:
        assert result.p_lost.mean == 0


def test_slow_periods_of_a_single_server():
    slows, recovers, factor, arrivals = 0.02, 0.1, 0.25, 0.5

    def moves(state):
        queue, slow = state
        yield (queue, not slow), recovers if slow else slows
        if queue:
            yield (queue - 1, slow), factor if slow else 1.0
        if queue < 150:
            yield (queue + 1, slow), arrivals

    law = stationary((0, False), moves)
    faults = Faults(normal=1 / slows, slow=1 / recovers, factor=factor)
    result = simulate(replace(ONE, load=arrivals, faults=faults), RANDOM, 2_000_000, seed=2)
    check(result.mean_number, mean(law, lambda s: s[0]))
    check(result.busy[0], mean(law, lambda s: s[0] > 0))


@pytest.mark.parametrize(
    ("customers", "completion"),
    [("wait", 1.0 + 0.5 / 2.0), ("restart", (1 / 0.5 + 1 / 2.0) * math.expm1(0.5))],
)
def test_how_long_an_interrupted_service_takes(customers, completion):
    """A fixed requirement of 1, failures at rate .5, returns at rate 2: it goes on, or starts anew each time."""
    faults = Faults(up=2.0, down=0.5, customers=customers)
    result = simulate(replace(ONE, load=0.2, service=Deterministic(), faults=faults), RANDOM, 400_000, seed=3)
    difference = result.response.mean - result.wait.mean
    assert difference == pytest.approx(completion, rel=0.01)


def test_late_lost_and_forgotten_messages():
    """Two servers of two places and one router, which restarts: by all that can happen, and how often."""
    arrivals, delivery, loss, restarts, most = 1.3, 2.0, 0.2, 0.1, 5

    def departs(server):
        queue, held, flying, _ = server
        if queue > 1:
            return [((queue - 1, held, flying, False), 1.0)]
        told = (0, held, min(flying + 1, most), True)
        return [(told, 1.0 - loss), ((0, held, flying, False), loss)]

    def moves(state):
        holders = [k for k in (0, 1) if state[k][1]]
        for k in holders or (0, 1):
            queue, _, flying, _ = state[k]
            joined = (min(queue + 1, 2), False, flying, False)
            yield with_server(state, k, joined), arrivals / len(holders or (0, 1))
        for k, (queue, _, flying, current) in enumerate(state):
            if queue:
                for changed, rate in departs(state[k]):
                    yield with_server(state, k, changed), rate
            if current:
                yield with_server(state, k, (queue, True, flying - 1, False)), delivery
            if flying > current:
                yield with_server(state, k, (queue, True, flying - 1, current)), delivery * (flying - current)
        yield tuple((queue, False, *rest) for queue, _, *rest in state), restarts

    def with_server(state, k, server):
        return (server, state[1]) if k == 0 else (state[0], server)

    def full(state):
        """Share of customers that find their server full, and of those that find it busy."""
        holders = [s for s in state if s[1]] or list(state)
        return np.array([np.mean([s[0] == 2 for s in holders]), np.mean([s[0] == 1 for s in holders])])

    law = stationary(((0, True, 0, False), (0, True, 0, False)), moves)
    assert mean(law, lambda s: s[0][2] == most) < 1e-4
    scenario = Scenario(
        (Pool(2, 1.0, 2),),
        arrival_rate=arrivals,
        news=News(delay=1 / delivery, law="exponential", loss=loss),
        faults=Faults(restart=1 / restarts),
    )
    result = simulate(scenario, baselines.make("pull"), 1_500_000, seed=4)
    p_block, p_wait = mean(law, full)
    pulls = mean(law, lambda state: sum(server[0] == 1 for server in state)) / arrivals
    stale = mean(law, lambda state: sum(server[2] - server[3] for server in state)) * delivery / arrivals
    check(result.p_block, p_block)
    check(result.p_wait, p_wait / (1 - p_block))
    check(result.messages["pull"], pulls)
    check(result.missed, loss * pulls)
    check(result.stale, stale)
    assert result.messages["remove"].mean == 0  # the only router knows where it sent its customers


@pytest.mark.parametrize("name", ["power-of-d(2)", "probe-until-idle(5)", "jsq"])
def test_answers_cost_waiting(name):
    """A constant delay changes nothing but the wait: by a round trip for all at once, or for each by itself."""
    scenario = Scenario((Pool(6, 1.0),), load=0.7)
    policy, run = baselines.make(name), {"seed": 5, "warmup": 1000}
    soon = simulate(scenario, policy, 50_000, workload=calendar_workload(scenario), **run)
    late = simulate(replace(scenario, news=News(delay=0.25)), policy, 50_000, **run)
    trips = late.messages["probe"].mean / 2 if name.startswith("probe") else 1
    assert late.messages == soon.messages
    assert late.p_wait == soon.p_wait
    assert late.wait.mean - soon.wait.mean == pytest.approx(0.5 * trips, rel=1e-9)
    assert late.mean_number.mean - soon.mean_number.mean == pytest.approx(
        0.5 * trips * 4.2, rel=0.02
    )  # Little


def test_lost_answers():
    """A request that gets lost is not answered; a lost answer was sent. With no answer the first one asked serves."""
    loss, asked = 0.3, 2
    scenario = Scenario((Pool(50, 1.0),), load=0.5, news=News(loss=loss))
    result = simulate(scenario, baselines.make("power-of-d(2)"), 200_000, seed=6)
    check(result.messages["probe"], asked * (1 + (1 - loss)))
    check(result.missed, asked * (loss + (1 - loss) * loss))


@pytest.mark.parametrize("every", [0.5, 3.0])
def test_an_idle_server_announces_itself_again(every):
    """One server, one router: a message when it becomes idle, and one more for each interval it stays so."""
    arrivals = 0.4
    result = simulate(
        replace(ONE, load=arrivals, news=News(repeat=every)), baselines.make("pull"), 200_000, seed=7
    )
    check(result.messages["pull"], (1 - arrivals) * (1 + 1 / math.expm1(arrivals * every)))


def test_repeated_messages_repair_what_got_lost():
    scenario = Scenario((Pool(20, 1.0),), routers=2, load=0.7)
    waits = [
        simulate(replace(scenario, news=news), baselines.make("pull"), 200_000, seed=8).p_wait
        for news in (News(loss=0.5), News(loss=0.5, repeat=0.5))
    ]
    assert waits[1].high < 0.8 * waits[0].low


@pytest.mark.parametrize("until", [None, 1e9])
def test_a_drained_pool_accepts_nothing(until):
    scenario = Scenario((Pool(2, 1.0), Pool(1, 2.0)), load=0.4, faults=Faults(drains=(Drain(1, 0.0, until),)))
    blind = simulate(scenario, Policy("uniform", (Send(),)), 200_000, seed=9)
    check(blind.p_block, 1 / 3)
    assert blind.busy[1].mean == 0
    for name in ("jsq", "balanced(2)"):
        seen = simulate(scenario, baselines.make(name), 50_000, seed=9)
        assert seen.busy[1].mean == 0
        if name == "jsq":
            assert seen.p_block.mean == 0  # who sees all sends nobody there
    pulled = simulate(scenario, baselines.make("pull"), 50_000, seed=9)
    assert 0 < pulled.p_block.mean < blind.p_block.mean / 2


@pytest.mark.parametrize("customers", ["wait", "lost", "restart"])
def test_failures_do_not_depend_on_the_policy(customers):
    """Common random numbers: who sees nothing and who sees all meet servers that are down equally often."""
    scenario = Scenario((Pool(5, 1.0),), load=0.3, faults=Faults(up=5.0, down=5.0, customers=customers))
    first, second = (
        simulate(scenario, policy, 40_000, seed=10, warmup=0).p_block
        for policy in (Policy("blind", (Send(),)), Policy("one of all", (Send(weights="rate"),)))
    )
    check(first, 0.5)
    assert abs(first.mean - second.mean) < 4 * first.error


@pytest.mark.parametrize(("name", "case"), list(product(["pull", "jiq", "balanced(2)"], ["news", "faults"])))
def test_common_random_numbers_whatever_the_workers(name, case):
    cases = {"news": News(delay=0.2, loss=0.1, repeat=1.0), "faults": Faults(up=5.0, down=1.0, restart=9.0)}
    scenario = replace(Scenario((Pool(5, 1.0),), routers=2, load=0.6), **{case: cases[case]})
    runs = [simulate(scenario, baselines.make(name), 8000, seed=11, workers=workers) for workers in (1, 2)]
    assert runs[0] == runs[1]
