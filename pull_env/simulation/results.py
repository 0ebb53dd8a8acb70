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
MEASURES = ("wait", "response", "p_wait", "p_block", "p_lost", "mean_number", "stale", "missed", "cost")
PERIODS = 16  # over all replications, in which a system that is not Markov must grow to be called unstable


@dataclass(frozen=True)
class Result:
    """What a simulation measured.

    If `stable` is False, every estimate is NaN: an unstable system has no means.

    Attributes:
        wait: Time in queue of an accepted customer, before its service starts; time units.
        response: Wait plus service, or until the customer is lost.
        p_wait: Share of accepted customers that found their server busy.
        p_block: Share of all arrivals that were blocked.
        p_lost: Share of all arrivals that were accepted, but lost with a server that failed.
        mean_number: Time average of the customers in the system, including those that wait for answers.
        busy: Time average of the share of busy servers, by pool.
        messages: Messages per arriving customer, by kind (pull, remove, probe, update) and in total.
        stale: Pull-messages per arriving customer that were out of date when they arrived.
        missed: Messages per arriving customer that were lost.
        wait_quantiles: Quantiles of the wait of accepted customers, by probability.
        cost: Cost per arriving customer, at the prices of the scenario.
        stable: Whether the drift test found no pool whose queues grow.
        growth: Customers by which each pool grew per time unit, over the counted part of the run.
        customers: Counted customers, over all replications.
        warmup: Customers of each replication before the counted ones.
        replications: Independent runs.
        seed: The user's seed.
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
        """Return all fields as JSON values; estimates as mean, low, high and count."""
        plain = ("stable", "customers", "warmup", "replications", "seed", "seconds")
        return {
            **{name: getattr(self, name).to_dict() for name in MEASURES},
            "busy": [value.to_dict() for value in self.busy],
            "messages": {kind: value.to_dict() for kind, value in self.messages.items()},
            "wait_quantiles": {str(p): value.to_dict() for p, value in self.wait_quantiles.items()},
            "growth": list(self.growth),
            **{name: getattr(self, name) for name in plain},
        }


@dataclass(frozen=True)
class Counts:
    """The counters of a replication, at its start and at the end of each batch."""

    head: Array  # (batches + 1,) HEAD
    pools: Array  # (batches + 1, J) POOL
    histogram: Array  # (J, bins) int64  counted customers by queue found or wait, up to the last bin in use


class Recorder:
    """Stores the counters of a simulator at the ends of batches."""

    def __init__(self, simulator: Simulator) -> None:
        """Begin the first batch."""
        self._arrays, self._address = simulator.arrays, simulator.address
        update_areas(self._address)
        self._head, self._pools = [self._arrays.head.copy()], [self._arrays.pools.copy()]
        self._histogram = self._arrays.histogram

    def end_batch(self) -> None:
        """End a batch, and begin the next."""
        update_areas(self._address)
        self._head.append(self._arrays.head.copy())
        self._pools.append(self._arrays.pools.copy())

    def counts(self) -> Counts:
        """Return the counters stored so far."""
        histogram = self._arrays.histogram
        used = int(np.flatnonzero(histogram.any(axis=1))[-1]) + 1
        histogram = (histogram[:used] - self._histogram[:used]).T
        return Counts(np.concatenate(self._head), np.stack(self._pools), histogram)


def summarise(scenario: Scenario, counts: list[Counts], *, seed: int, warmup: int, seconds: float) -> Result:
    """Return the result of some replications, or of the batches of a single one."""
    calendar = bool(counts[0].head["flags"][0] & CALENDAR)
    head = np.stack([c.head for c in counts])  # (replications, batches + 1)
    pools = np.stack([c.pools for c in counts])  # (replications, batches + 1, J)
    bins = max(c.histogram.shape[1] for c in counts)
    histogram = np.stack([np.pad(c.histogram, ((0, 0), (0, bins - c.histogram.shape[1]))) for c in counts])
    start, end = (np.s_[0, :-1], np.s_[0, 1:]) if len(counts) == 1 else (np.s_[:, 0], np.s_[:, -1])
    samples = measures(scenario, gains(head[start], head[end]), gains(pools[start], pools[end]), calendar)
    stable = is_stable(scenario, pools["customers"])
    if calendar:
        quantiles = histogram_quantiles(histogram, PROBABILITIES)
    else:
        quantiles = erlang_quantiles(
            histogram, np.array([pool.rate for pool in scenario.pools]), PROBABILITIES
        )
    claim: Callable[[Floats], Estimate] = estimate if stable else (lambda values: nan_estimate(values.size))
    elapsed = (head["now"][:, -1] - head["now"][:, 0]) * head["time_step"][:, 0]
    grown = pools["customers"][:, -1] - pools["customers"][:, 0]
    blocked = pools["blocked"][:, -1] - pools["blocked"][:, 0]
    return Result(
        **{name: claim(samples[name]) for name in MEASURES},
        busy=tuple(claim(samples[f"busy {j}"]) for j in range(len(scenario.pools))),
        messages={kind: claim(samples[kind]) for kind in (*KINDS, "total")},
        wait_quantiles={p: q if stable else nan_estimate(q.count) for p, q in quantiles.items()},
        stable=stable,
        growth=tuple((grown / elapsed[:, None]).mean(axis=0).tolist()),
        customers=int(histogram.sum() + blocked.sum()),
        warmup=warmup,
        replications=len(counts),
        seed=seed,
        seconds=seconds,
    )


def is_stable(scenario: Scenario, inside: Array) -> bool:
    """Return whether no pool grows.

    Only pools without a limit can be unstable. Unlimited systems at a load of 1 or more always are, and a
    trace, which is finite, never is. Bursts and huge requirements let queues grow over several batches in a
    row: if arrivals or service are not Markov, increments are taken over few long periods instead.

    Args:
        scenario: The system.
        inside: (replications, batches + 1, J) customers in each pool at the ends of batches.
    """
    if scenario.replay is not None:
        return True
    if scenario.never_blocks and scenario.nominal_load >= 1:
        return False
    if not scenario.markov:
        replications, batches = inside.shape[0], inside.shape[1] - 1
        inside = inside[:, :: max(1, batches // max(2, PERIODS // replications))]
    unlimited = [j for j, pool in enumerate(scenario.pools) if pool.buffer is None]
    return not any(has_drift(inside[:, :, j].astype(np.float64)) for j in unlimited)


def gains(first: Array, last: Array) -> dict[str, Array]:
    """Return by how much each field of a record grew."""
    with np.errstate(invalid="ignore"):  # infinite times of what never happens
        return {name: last[name] - first[name] for name in first.dtype.names or ()}


def measures(
    scenario: Scenario, head: dict[str, Array], pools: dict[str, Array], calendar: bool
) -> dict[str, Floats]:
    """Return every measure of some runs from the growth of their counters.

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
    arrived, served = accepted + blocked, np.maximum(accepted, 1)
    waits = (pools["wait_sum"] if calendar else pools["queue_sum"] / rates).sum(axis=1)
    service = (pools["service_sum"] if calendar else pools["accepted"] / rates).sum(axis=1)
    result: dict[str, Floats] = {
        "wait": waits / served,
        "response": (waits + service) / served,
        "p_wait": pools["waited"].sum(axis=1) / served,
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
