"""`predict`: what theory knows of a scenario and a policy.

Policies are recognised by their steps, not by their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.policy.policy import Cycle, Inspect, Policy, Probe, Send, Take, Weights
from pull_env.scenario.scenario import Pool, Scenario, ScenarioLike, as_scenario
from pull_env.theory import bounds, formulas
from pull_env.theory.choices import choices_limit
from pull_env.theory.pull_fluid import pull_fluid
from pull_env.theory.pull_mean_field import Limit, pull_many_routers

Kind = Literal["exact", "limit", "bound"]


@dataclass(frozen=True)
class Known:
    """A value that theory gives.

    Attributes:
        value: The value, in the units of `Result`.
        kind: `exact` for this system; `limit`, as n grows with pools in proportion; `bound` on all policies.
        source: The theorem or model.
    """

    value: float
    kind: Kind
    source: str


Prediction = dict[str, Known]  # by measure: names in `Result`, `busy 0`, `busy 1`, ..., kinds of messages


def predict(scenario: ScenarioLike, policy: PolicyLike) -> Prediction | None:
    """Return what is known for a pair, or None; `lower_bounds` always holds.

    Limits are as n grows with pools in proportion: of PULL at R = 1 with one router, at constant n / R with
    more. Nothing is known of unstable systems, nor if arrivals or service are not Markov, except for random
    routing to unlimited queues of general service.

    >>> predict(Scenario((Pool(2),), load=0.5), Policy("blind", (Send(),)))["response"]
    Known(value=2.0, kind='exact', source='independent M/M/1 queues')
    """
    scenario = as_scenario(scenario)
    policy = as_policy(policy, scenario)
    step = policy.steps[0]
    if policy.network is not None:
        return None
    if scenario.never_blocks and scenario.nominal_load >= 1.0:
        return None
    if not scenario.markov and not (isinstance(step, Send) and _single_queues_known(scenario)):
        return None
    try:
        if scenario.servers == 1:
            return _single_queues(scenario, (1.0,))
        if isinstance(step, Send):
            return _blind(scenario, policy, step.pool, step.weights, 0.0)
        if isinstance(step, Probe):
            return None if step.recall else _probe(scenario, policy, step)
        if isinstance(step, Inspect):
            return _one_queue(scenario, policy) if step.rank == "work" else None
        if isinstance(step, Cycle):
            return _round_robin(scenario, policy, step)
        return _pull(scenario, policy)
    except ValueError:  # no theorem covers this system: an unlimited queue grows
        return None


def lower_bounds(scenario: ScenarioLike) -> Prediction:
    """Return what holds for every policy: `bounds.pooling_bounds`, by measure."""
    pooled = bounds.pooling_bounds(scenario)
    names = ("wait", "response", "p_block", "mean_number")
    return {name: Known(getattr(pooled, name), "bound", "all servers pooled into one") for name in names}


def _blind(
    scenario: Scenario, policy: Policy, pool: int | None, weights: Weights, probes: float
) -> Prediction:
    """Predict random routing: independent queues with Poisson arrivals."""
    pools = scenario.pools
    weights_by_pool = [p.size * (p.rate if weights == "rate" else 1.0) for p in pools]
    if pool is not None:
        weights_by_pool = [w if j == pool else 0.0 for j, w in enumerate(weights_by_pool)]
    chances = tuple(w / math.fsum(weights_by_pool) for w in weights_by_pool)
    return _single_queues(scenario, chances) | _probes(policy, probes, "exact", "blind choice")


def _single_queues(scenario: Scenario, chances: Sequence[float]) -> Prediction:
    """Return the mixture of independent queues, by the `chances` of pools."""
    response, blocked, waited, busy = 0.0, 0.0, 0.0, []
    for pool, chance in zip(scenario.pools, chances, strict=True):
        arrival = scenario.total_arrival_rate * chance / pool.size
        if chance == 0.0:
            busy.append(0.0)
        elif pool.buffer is None:
            busy.append(arrival / pool.rate)
            response += chance * _response(scenario, arrival, pool.rate)
            waited += chance * busy[-1]
        else:
            block = formulas.mm1b_blocking(arrival, pool.rate, pool.buffer)
            busy.append(arrival * (1.0 - block) / pool.rate)
            response += chance * formulas.mm1b_mean_number(arrival, pool.rate, pool.buffer) / arrival
            waited += chance * (busy[-1] - block)
            blocked += chance * block
    accepted = 1.0 - blocked
    source = "independent M/M/1 queues" if scenario.never_blocks else "independent M/M/1/B queues"
    if not scenario.markov:
        source = "independent M/G/1 queues, Pollaczek and Khinchine"
    return _known(scenario, "exact", source, response / accepted, waited / accepted, blocked, busy)


def _response(scenario: Scenario, arrival: float, rate: float) -> float:
    if scenario.markov or scenario.service is None:
        return formulas.mm1_response(arrival, rate)
    return formulas.mg1_response(arrival, rate, scenario.service.scv)


def _single_queues_known(scenario: Scenario) -> bool:
    """Tell whether random routing makes M/G/1 queues with a finite mean wait."""
    poisson = replace(scenario, service=None).markov
    return (
        poisson and scenario.never_blocks and scenario.service is not None and scenario.service.scv < math.inf
    )


def _probe(scenario: Scenario, policy: Policy, step: Probe) -> Prediction | None:
    pools, equal = scenario.pools, _equal_rates(scenario)
    candidates = scenario.servers if step.pool is None else pools[step.pool].size
    probed = step.at_most if step.replace else min(step.at_most, candidates)
    if probed == 1 or (candidates == 1 and step.stop_at is None):
        return _blind(scenario, policy, step.pool, step.weights, 2.0 * probed)
    if probed == scenario.servers and not step.replace and step.rank == "work" and step.stop_at is None:
        return _one_queue(scenario, policy)
    interchangeable = equal or step.pool is not None
    by_queue = step.rank == "queue" or (step.rank in ("delay", "queue then speed") and interchangeable)
    if not by_queue or step.stop_at not in (None, 0) or (probed == candidates and not step.replace):
        return None  # a limit with a constant number of probes says nothing if all are probed
    rates: list[float] = [p.rate if step.weights == "rate" else 1.0 for p in pools]
    if step.pool is not None:
        rates = [float(j == step.pool) for j in range(len(pools))]
    limit = choices_limit(pools, scenario.nominal_load, probed, weights=rates)
    model = "mean field of the shortest of d queues"
    if scenario.never_blocks and step.pool is None:
        model = "supermarket model" if equal else "balanced routing" if step.weights == "rate" else model
    source = f"{model}, n to infinity"
    sizes = [p.size * rate for p, rate in zip(pools, rates, strict=True)]
    busy = math.fsum(s * b for s, b in zip(sizes, limit.busy, strict=True)) / math.fsum(sizes)
    count = probed if step.stop_at is None else math.fsum(busy**k for k in range(probed))
    return _limit(scenario, limit, source) | _probes(policy, 2.0 * count, "limit", source)


def _one_queue(scenario: Scenario, policy: Policy) -> Prediction | None:
    """Predict least work left on equal servers, which is one queue for all."""
    if not _equal_rates(scenario) or not scenario.never_blocks:
        return None
    n, arrival, rate = scenario.servers, scenario.total_arrival_rate, scenario.pools[0].rate
    p_wait = formulas.erlang_c(n, arrival / rate)
    busy = [scenario.nominal_load] * len(scenario.pools)
    source = "M/M/n, Erlang C"
    known = _known(scenario, "exact", source, formulas.mmc_response(n, arrival, rate), p_wait, 0.0, busy)
    return known | _probes(policy, 2.0 * n, "exact", source)


def _round_robin(scenario: Scenario, policy: Policy, step: Cycle) -> Prediction | None:
    """Predict round robin with one router.

    Every server gets each n-th customer: gaps of n exponential stages.
    """
    one_turn = step.weights == "uniform" or len(scenario.pools) == 1
    if scenario.routers > 1 or not one_turn or not scenario.never_blocks:
        return None
    n, arrival = scenario.servers, scenario.total_arrival_rate
    shares = [pool.size / n for pool in scenario.pools]
    waits = [formulas.round_robin_p_wait(n, arrival, pool.rate) for pool in scenario.pools]
    responses = [1.0 / (pool.rate * (1.0 - z)) for pool, z in zip(scenario.pools, waits, strict=True)]
    busy = [arrival / n / pool.rate for pool in scenario.pools]
    known = _known(scenario, "exact", "E_n/M/1", _mean(shares, responses), _mean(shares, waits), 0.0, busy)
    return known | _probes(policy, 0.0, "exact", "blind choice")


def _pull(scenario: Scenario, policy: Policy) -> Prediction | None:
    """Predict PULL and policies with the same distribution of queues.

    With one router no message is ever stale, and the first idle server may be as good as any.
    """
    take, announce = policy.steps[0], policy.announce and policy.announce.on(scenario)
    fallback = policy.steps[1] if len(policy.steps) > 1 else None
    equal, alike, one_router = _equal_rates(scenario), _interchangeable(scenario), scenario.routers == 1
    if not isinstance(take, Take) or not isinstance(fallback, Send) or announce is None:
        return None
    if len(scenario.pools) > 1 and (take.pool is not None or fallback.pool is not None):
        return None
    if fallback.weights == "rate" and not equal:
        return None
    single = announce.threshold == 1
    as_random = alike or (one_router and (equal or take.order == "oldest"))
    if take.order != "random" and not (single and as_random):
        return None
    if not announce.withdraw and not (one_router and single):
        return None
    if not one_router and not (single and announce.recipient == "uniform"):
        return None
    if single and one_router and scenario.servers == 2 and equal and scenario.never_blocks:
        return _two_servers(scenario)
    if one_router:
        return None if _saturates(scenario) else _fluid(scenario, announce.threshold)
    if max(scenario.router_shares) - min(scenario.router_shares) > 1e-12:
        return None
    r = scenario.servers / scenario.routers
    limit = pull_many_routers(scenario.pools, scenario.nominal_load, r)
    source = "PULL mean field, n and R to infinity at n / R"
    messages = {"pull": limit.pull, "remove": limit.remove, "probe": 0.0}
    return _limit(scenario, limit, source) | _messages(messages, "limit", source)


def _two_servers(scenario: Scenario) -> Prediction:
    number = formulas.jiq_two_servers_mean_number(scenario.nominal_load)
    response = number / scenario.total_arrival_rate
    source = "join-idle-queue, two equal servers"
    values = {"mean_number": number, "response": response, "p_block": 0.0}
    values |= {"wait": response - 1.0 / scenario.pools[0].rate}
    values |= {f"busy {j}": scenario.nominal_load for j in range(len(scenario.pools))}
    return _messages(values, "exact", source, total=False)


def _fluid(scenario: Scenario, threshold: int) -> Prediction:
    limit = pull_fluid(scenario.pools, scenario.nominal_load, threshold)
    source = "PULL fluid limit, n to infinity" if threshold == 1 else "JBT many servers, n to infinity"
    known = _limit(scenario, limit, source)
    if threshold == 1:
        known |= _messages({"pull": 1.0, "remove": 0.0, "probe": 0.0}, "limit", source)
    return known


def _saturates(scenario: Scenario) -> bool:
    """Tell whether the slowest unlimited servers saturate under PULL with one router.

    If they are always busy, all others are busy with probability q, by Erlang C for the customers that they
    get, which is exact for one other server and an estimate for more; each slow one gets Lambda q / n.
    """
    unlimited = [pool.rate for pool in scenario.pools if pool.buffer is None]
    if not unlimited or _equal_rates(scenario):
        return False
    n, arrival, slowest = scenario.servers, scenario.total_arrival_rate, min(unlimited)
    others = [pool for pool in scenario.pools if pool.rate > slowest or pool.buffer is not None]
    count = sum(pool.size for pool in others)
    rate = math.fsum(pool.size * pool.rate for pool in others) / max(count, 1)

    # C decreases in q: if it is above the critical q there, C = q at a larger q.
    critical = slowest * n / arrival
    if not count or critical > 1.0:
        return False
    offered = arrival * (1.0 - critical * (n - count) / n) / rate
    return offered >= count or formulas.erlang_c(count, offered) >= critical


def _equal_rates(scenario: Scenario) -> bool:
    """Tell whether all servers have one rate."""
    return len({pool.rate for pool in scenario.pools}) == 1


def _interchangeable(scenario: Scenario) -> bool:
    """Tell whether all servers have one rate and one buffer."""
    return len({Pool(1, pool.rate, pool.buffer) for pool in scenario.pools}) == 1


def _mean(shares: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(share * value for share, value in zip(shares, values, strict=True))


def _limit(scenario: Scenario, limit: Limit, source: str) -> Prediction:
    return _known(scenario, "limit", source, limit.response, limit.p_wait, limit.p_block, limit.busy)


def _known(
    scenario: Scenario,
    kind: Kind,
    source: str,
    response: float,
    p_wait: float,
    p_block: float,
    busy: Sequence[float],
) -> Prediction:
    """Return the measures by name; wait and mean number follow from the arguments."""
    accepted = scenario.total_arrival_rate * (1.0 - p_block)
    served = math.fsum(pool.size * share for pool, share in zip(scenario.pools, busy, strict=True))
    values = {
        "wait": max(0.0, response - served / accepted),
        "response": response,
        "p_wait": p_wait,
        "p_block": p_block,
        "mean_number": accepted * response,
        **{f"busy {j}": share for j, share in enumerate(busy)},
    }
    return {name: Known(float(value), kind, source) for name, value in values.items()}


def _probes(policy: Policy, probes: float, kind: Kind, source: str) -> Prediction:
    """Return the messages of a policy that only probes."""
    if policy.announce is not None:
        return {}
    return _messages({"pull": 0.0, "remove": 0.0, "probe": probes}, kind, source)


def _messages(values: Mapping[str, float], kind: Kind, source: str, total: bool = True) -> Prediction:
    summed = {"total": math.fsum(values.values())} if total else {}
    return {name: Known(float(value), kind, source) for name, value in {**values, **summed}.items()}
