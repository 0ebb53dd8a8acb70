"""Steps as the kernels read them, and the flags of a run that they need."""

from __future__ import annotations

import math

import numpy as np

from pull_env.kernels import state
from pull_env.policy.policy import Announce, Inspect, Lookup, PolicyError, Probe, Recall, Search, Step, Take
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.linked_record import Array

KINDS = {
    "take": state.TAKE,
    "recall": state.RECALL,
    "send": state.SEND,
    "probe": state.PROBE,
    "inspect": state.INSPECT,
    "cycle": state.CYCLE,
    "last": state.LAST,
    "lookup": state.LOOKUP,
    "search": state.SEARCH,
}
ORDERS = {"random": state.RANDOM, "oldest": state.OLDEST, "fastest": state.FASTEST}
WEIGHTS = {"uniform": state.UNIFORM, "rate": state.RATE}
RANKS = {
    "queue": state.BY_QUEUE,
    "delay": state.BY_DELAY,
    "queue then speed": state.BY_QUEUE_THEN_SPEED,
    "work": state.BY_WORK,
}


def encode(steps: tuple[Step, ...], scenario: Scenario) -> Array:
    """Return `steps` as the kernels read them, (steps,) STEP.

    Raises:
        PolicyError: A step names a pool that the scenario does not have, or has a table for other servers.
    """
    chain = np.zeros(len(steps), state.STEP)
    for k, step in enumerate(steps):
        pool = getattr(step, "pool", None)
        if pool is not None and pool >= len(scenario.pools):
            last = len(scenario.pools) - 1
            raise PolicyError(f"steps[{k}].pool is {pool}: {scenario.name} has pools 0 to {last}")
        at_most, stop_at = getattr(step, "at_most", 0), getattr(step, "stop_at", None)
        if isinstance(step, Lookup):
            if len(step.limits) != scenario.servers:
                raise PolicyError(
                    f"steps[{k}].limits has {len(step.limits)} servers: "
                    f"{scenario.name} has {scenario.servers}"
                )
            at_most = 0 if step.free else scenario.servers
        chain[k] = (
            KINDS[step.kind],
            -1 if pool is None else pool,
            WEIGHTS[getattr(step, "weights", "uniform")],
            ORDERS[getattr(step, "order", "random")],
            at_most,
            RANKS[getattr(step, "rank", "queue")],
            getattr(step, "replace", False),
            getattr(step, "recall", False),
            -1.0 if stop_at is None else stop_at,
            probe_price(scenario),
        )
    return chain


def probe_price(scenario: Scenario) -> float:
    """Return the cost of a probe in units of waiting time; inf if waiting is free."""
    prices = scenario.prices
    delay = 0.0 if scenario.news is None else 2.0 * scenario.news.delay
    return 2.0 * prices.message / prices.wait + delay if prices.wait > 0.0 else math.inf


def needs_calendar(steps: tuple[Step, ...]) -> bool:
    """Return whether a step reads unfinished work, which only the calendar clock has."""
    return any(getattr(step, "rank", None) == "work" for step in steps)


def required_flags(steps: tuple[Step, ...], announce: Announce | None) -> int:
    """Return the KEEP_* bits of the state that `steps` and `announce` read."""
    bits = 0
    if any(isinstance(step, Take) and step.order == "oldest" for step in steps):
        bits |= state.KEEP_AGE
    if any(isinstance(step, Inspect) for step in steps):
        bits |= state.KEEP_QUEUE_INDEX
    if announce is not None and announce.recipient == "fewest" and announce.sample is None:
        bits |= state.KEEP_ROUTER_INDEX
    if any(isinstance(step, Search) for step in steps):
        bits |= state.KEEP_HISTORY
    if any(isinstance(step, Recall) or getattr(step, "recall", False) for step in steps):
        bits |= state.KEEP_MEMORY
    return bits


def protocol_flags(announce: Announce | None, complete: bool, calendar: bool, faulty: bool) -> int:
    """Return the flags of a run other than the KEEP_* bits."""
    flags = state.COMPLETE * complete | state.CALENDAR * calendar | state.FAULTS * faulty
    if announce is not None:
        flags |= state.STALE * (not announce.withdraw)
        flags |= state.CHOOSES_ROUTER * (announce.recipient == "fewest")
    return flags


def max_probes(steps: tuple[Step, ...], scenario: Scenario) -> int:
    """Return the most probes that one of `steps` may send."""
    probing = (step for step in steps if isinstance(step, Probe | Search))
    most = (s.at_most if getattr(s, "replace", False) else min(s.at_most, scenario.servers) for s in probing)
    return max(most, default=0)
