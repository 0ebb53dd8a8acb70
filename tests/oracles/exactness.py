"""Comparison of a simulation with exact values, by its own narrow interval."""

import numpy as np

from pull_env import Pool, Scenario
from pull_env.simulation.statistics import Estimate, estimate

LEVEL = 0.999


def meets(found: Estimate, exact: float, width: float = 0.005, what: str = "") -> None:
    """Fail unless the 99.9 % interval contains `exact`, and is at most `width` of it."""
    if found.error == 0.0:
        assert found.mean == exact, f"{what}: {found.mean} is constant, exact {exact}"
        return
    half = found.half_width(LEVEL)
    assert half <= width * abs(exact), f"{what}: half-width {half / abs(exact):.2%} of {exact}"
    assert abs(found.mean - exact) <= half, f"{what}: {found.mean} +- {half}, exact {exact}"


def agrees(first: Estimate, second: Estimate, width: float = 0.01, what: str = "") -> None:
    """Fail unless two independent estimates agree, by a narrow 99.9 % interval."""
    error = float(np.hypot(first.error, second.error))
    if error == 0.0:
        assert first.mean == second.mean, what
        return
    half = 3.5 * error
    assert half <= width * abs(first.mean), f"{what}: half-width {half / abs(first.mean):.2%} of {first.mean}"
    assert abs(first.mean - second.mean) <= half, f"{what}: {first.mean} and {second.mean}, half-width {half}"


def combine(function, *estimates: Estimate) -> Estimate:
    """Return the estimate of a function of a run's measures, by replication."""
    return estimate(function(*(np.array(e.samples) for e in estimates)))


def measure(result, name: str) -> Estimate:
    """Return a measure of a result by the name that the oracles use."""
    messages = result.messages
    if name in messages:
        return messages[name]
    if name.startswith("busy "):
        return result.busy[int(name[5:])]
    if name == "p_random":  # a pull-message is either taken or withdrawn
        return combine(lambda pull, remove: 1 - pull + remove, messages["pull"], messages["remove"])
    if name.endswith("_per_accepted"):
        kind = messages[name.removesuffix("_per_accepted")]
        return combine(lambda sent, block: sent / (1 - block), kind, result.p_block)
    return getattr(result, name)


def single_servers(rates, buffers, **system) -> Scenario:
    """Return a scenario in which neighbours of equal rate and buffer share a pool."""
    kinds = list(zip(rates, buffers, strict=True))
    distinct = sorted(set(kinds), key=kinds.index)
    return Scenario(pools=[Pool(kinds.count(kind), *kind) for kind in distinct], **system)
