"""`Result`: what a run measured, made from the counters of its replications."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.state import CALENDAR
from pull_env.kernels.statistics import update_areas
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.statistics import (
    Estimate,
    erlang_quantiles,
    estimate,
    has_drift,
    histogram_quantiles,
    nan_estimate,
)

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

PROBABILITIES = (0.5, 0.9, 0.95, 0.99, 0.999)
KINDS = ("pull", "remove", "probe", "update")
PERIODS = 16  # of all replications, in which a system that is not Markov must grow to be called unstable


@dataclass(frozen=True)
class Result:
    """What a simulation measured. Where `stable` is False no mean is claimed: every estimate is NaN.

    Attributes:
        wait: Time in queue of an accepted customer, before its service starts; time units.
        response: Wait plus service, or until the customer is lost.
        p_wait: Share of accepted customers that found their server busy.
        p_block: Share of all arrivals that were blocked.
        p_lost: Share of all arrivals that were accepted, but lost with a server that failed.
        mean_number: Customers in the system, those that wait for answers included, averaged over time.
        busy: Share of busy servers, averaged over time, a pool each.
        messages: Messages an arriving customer, by kind (pull, remove, probe, update) and in total.
        stale: Pull-messages an arriving customer that did not stand any more when they came.
        missed: Messages an arriving customer that got lost.
        wait_quantiles: Quantiles of the wait of accepted customers, by probability.
        cost: Cost an arriving customer, at the prices of the scenario.
        stable: Whether the drift test found no pool whose queues grow.
        growth: Customers by which a pool grows a time unit, a pool each, over the counted part of the run.
        customers: Counted ones, over all replications.
        warmup: Customers of each replication that came before the counted ones.
        replications: Independent runs.
        seed: The user's.
        seconds: Wall time.
    """

    wait: Estimate
    response: Estimate
    p_wait: Estimate
    p_block: Estimate
    p_lost: Estimate
    mean_number: Estimate
    busy: tuple[Estimate, ...]
    messages: dict[str, Estimate]
    stale: Estimate
    missed: Estimate
    wait_quantiles: dict[float, Estimate]
    cost: Estimate
    stable: bool
    growth: tuple[float, ...]
    customers: int
    warmup: int
    replications: int
    seed: int
    seconds: float = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; an estimate as mean, low, high and count."""
        single = ("wait", "response", "p_wait", "p_block", "p_lost", "mean_number", "stale", "missed", "cost")
        plain = ("stable", "customers", "warmup", "replications", "seed", "seconds")
        return {
            **{name: getattr(self, name).to_dict() for name in single},
            "busy": [value.to_dict() for value in self.busy],
            "messages": {kind: value.to_dict() for kind, value in self.messages.items()},
            "wait_quantiles": {str(p): value.to_dict() for p, value in self.wait_quantiles.items()},
            "growth": list(self.growth),
            **{name: getattr(self, name) for name in plain},
        }


@dataclass(frozen=True)
class Counts:
    """The counters of a run at the ends of its batches; one row more than there are batches."""

    head: Array  # (batches + 1,) HEAD
    pools: Array  # (batches + 1, J) POOL
    law: Array  # (J, longest) int64  counted customers by what they found, up to the last column in use


class Recorder:
    """Keeps the counters of a simulator at the ends of batches."""

    def __init__(self, simulator: Simulator) -> None:
        """Begin the first batch now."""
        self._arrays, self._address = simulator.arrays, simulator.address
        update_areas(self._address)
        self._head, self._pools = [self._arrays.head.copy()], [self._arrays.pools.copy()]
        self._law = self._arrays.histogram

    def end_batch(self) -> None:
        """End a batch, and begin the next."""
        update_areas(self._address)
        self._head.append(self._arrays.head.copy())
        self._pools.append(self._arrays.pools.copy())

    def counts(self) -> Counts:
        """Return what was kept."""
        law = self._arrays.histogram
        used = int(np.flatnonzero(law.any(axis=1))[-1]) + 1
        law = (law[:used] - self._law[:used]).T
        return Counts(np.concatenate(self._head), np.stack(self._pools), law)


def summarise(scenario: Scenario, counts: list[Counts], *, seed: int, warmup: int, seconds: float) -> Result:
    """Return the result behind the counters of replications; batches stand for them where there is one."""
    calendar = bool(counts[0].head["flags"][0] & CALENDAR)
    head = np.stack([c.head for c in counts])  # (replications, batches + 1)
    pools = np.stack([c.pools for c in counts])  # (replications, batches + 1, J)
    longest = max(c.law.shape[1] for c in counts)
    law = np.stack([np.pad(c.law, ((0, 0), (0, longest - c.law.shape[1]))) for c in counts])
    if len(counts) == 1:
        samples = measures(
            scenario, gains(head[0, :-1], head[0, 1:]), gains(pools[0, :-1], pools[0, 1:]), calendar
        )
    else:
        samples = measures(
            scenario, gains(head[:, 0], head[:, -1]), gains(pools[:, 0], pools[:, -1]), calendar
        )
    stable = is_stable(scenario, pools["customers"])
    if calendar:
        quantiles = histogram_quantiles(law, PROBABILITIES)
    else:
        quantiles = erlang_quantiles(law, np.array([pool.rate for pool in scenario.pools]), PROBABILITIES)
    claim: Callable[[Floats], Estimate] = estimate if stable else (lambda values: nan_estimate(values.size))
    elapsed = (head["now"][:, -1] - head["now"][:, 0]) * head["time_step"][:, 0]
    grown = pools["customers"][:, -1] - pools["customers"][:, 0]
    lost = pools["blocked"][:, -1] - pools["blocked"][:, 0]
    return Result(
        wait=claim(samples["wait"]),
        response=claim(samples["response"]),
        p_wait=claim(samples["p_wait"]),
        p_block=claim(samples["p_block"]),
        p_lost=claim(samples["p_lost"]),
        mean_number=claim(samples["mean_number"]),
        busy=tuple(claim(samples[f"busy {j}"]) for j in range(len(scenario.pools))),
        messages={kind: claim(samples[kind]) for kind in (*KINDS, "total")},
        stale=claim(samples["stale"]),
        missed=claim(samples["missed"]),
        wait_quantiles={p: q if stable else nan_estimate(q.count) for p, q in quantiles.items()},
        cost=claim(samples["cost"]),
        stable=stable,
        growth=tuple((grown / elapsed[:, None]).mean(axis=0).tolist()),
        customers=int(law.sum() + lost.sum()),
        warmup=warmup,
        replications=len(counts),
        seed=seed,
        seconds=seconds,
    )


def is_stable(scenario: Scenario, inside: Array) -> bool:
    """Tell whether no pool grows, from its customers at the ends of batches, (replications, batches + 1, J).

    Only pools without a limit can grow for ever. Unlimited systems at a load of 1 or more always do, and a
    trace, which is finite, never does. Bursts and huge requirements let queues grow over several batches in
    a row: where arrivals or service are not Markov, increments are taken over few long periods instead.
    """
    if scenario.replay is not None:
        return True
    if scenario.unlimited and scenario.nominal_load >= 1:
        return False
    if not scenario.markov:
        replications, batches = inside.shape[0], inside.shape[1] - 1
        inside = inside[:, :: max(1, batches // max(2, PERIODS // replications))]
    unlimited = [j for j, pool in enumerate(scenario.pools) if pool.buffer is None]
    return not any(has_drift(inside[:, :, j].astype(np.float64)) for j in unlimited)


def gains(first: Array, last: Array) -> dict[str, Array]:
    """Return by how much each field of a record grew."""
    with np.errstate(invalid="ignore"):  # times of what never happens are infinite
        return {name: last[name] - first[name] for name in first.dtype.names or ()}


def measures(
    scenario: Scenario, head: dict[str, Array], pools: dict[str, Array], calendar: bool
) -> dict[str, Floats]:
    """Return every measure of some runs from what their counters gained.

    Args:
        scenario: Rates, sizes and prices.
        head: (runs,) by field of HEAD.
        pools: (runs, J) by field of POOL.
        calendar: Whether waits were realised; else they are conditional means given the queue found.

    Returns:
        Measures by name, (runs,) each.
    """
    rates = np.array([pool.rate for pool in scenario.pools])
    accepted, blocked = pools["accepted"].sum(axis=1), pools["blocked"].sum(axis=1)
    arrived, some = accepted + blocked, np.maximum(accepted, 1)
    waits = (pools["wait_sum"] if calendar else pools["queue_sum"] / rates).sum(axis=1)
    service = (pools["service_sum"] if calendar else pools["accepted"] / rates).sum(axis=1)
    result: dict[str, Floats] = {
        "wait": waits / some,
        "response": (waits + service) / some,
        "p_wait": pools["waited"].sum(axis=1) / some,
        "p_block": blocked / arrived,
        "p_lost": head["lost_customers"] / arrived,
        "stale": head["stale_messages"] / arrived,
        "missed": head["lost_messages"] / arrived,
        "mean_number": pools["area"].sum(axis=1) / head["now"],
    }
    for kind in KINDS:
        result[kind] = head[kind + "s"] / arrived
    result["total"] = np.sum([result[kind] for kind in KINDS], axis=0)
    for j, pool in enumerate(scenario.pools):
        result[f"busy {j}"] = pools["busy_area"][:, j] / (head["now"] * pool.size)
    prices = scenario.prices
    paid = prices.message * result["total"] + prices.block * (result["p_block"] + result["p_lost"])
    result["cost"] = prices.wait * waits / arrived + paid
    return result
