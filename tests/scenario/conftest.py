"""Presets as the table of the README has them, and scenarios as TOML."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pull_env import Faults, News
from pull_env.scenario.arrivals import Batches, Bursts, HotRouter
from pull_env.scenario.laws import Pareto
from pull_env.scenario.scenario import Pool, Prices, Scenario, ScenarioError

PRESETS = {
    "data-center": Scenario(
        (Pool(2000, 2.5, 10), Pool(5000, 1.0, 10), Pool(3000, 0.5, 10)), routers=50, load=0.92
    ),
    "finite-buffers": Scenario((Pool(20, 2.0, 4), Pool(20, 1.0, 3), Pool(20, 0.5, 2)), routers=6, load=1.0),
    "heavy-traffic": Scenario((Pool(10, 1.5), Pool(10, 0.5)), routers=2, load=0.98),
    "homogeneous": Scenario((Pool(1000, 1.0),), routers=100, load=0.9),
    "hot-router": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=7, load=0.8, shares=(0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
    ),
    "many-pools": Scenario(
        tuple(Pool(40, rate) for rate in (3.0, 2.0, 1.0, 0.5, 0.25)), routers=10, load=0.85
    ),
    "small-mixed": Scenario(
        (Pool(2, 1.0, 4), Pool(2, 2.0, 4)), routers=2, arrival_rate=4.8, prices=Prices(block=5.0)
    ),
    "two-speeds": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.9),
    "bursty": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, arrivals=Bursts(1.5, 5.0)),
    "heavy-tailed": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, service=Pareto(1.5, bound=1000.0)
    ),
    "hot-spot-moves": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.8, shares=HotRouter(0.5, every=50.0)
    ),
    "batches": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, arrivals=Batches(10.0)),
    "slow-news": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)),
        routers=10,
        load=0.8,
        news=News(0.2, "exponential", loss=0.02, repeat=10.0),
        prices=Prices(message=0.02),
    ),
    "failures": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)),
        routers=10,
        load=0.7,
        news=News(repeat=20.0),
        faults=Faults(200.0, 10.0, normal=100.0, slow=20.0, restart=500.0),
    ),
}


def raises(sentence: str) -> Any:
    """Expect a ScenarioError whose whole message matches `sentence`."""
    return pytest.raises(ScenarioError, match=f"^{sentence}$")


def any_type(value: Any) -> Any:
    """Hide from the type checker that `value` has the wrong type."""
    return value


def spelled(value: Any) -> str:
    """Spell a value as TOML; JSON spells numbers and strings alike."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {spelled(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(spelled, value))}]"
    return json.dumps(value)


def as_toml(scenario: Scenario) -> str:
    """Spell a scenario as TOML, with its pools and prices as tables of their own."""
    content = scenario.to_dict()
    pools, prices = content.pop("pools"), content.pop("prices")
    lines = [f"{key} = {spelled(value)}" for key, value in content.items()]
    for pool in pools:
        lines += ["[[pools]]", *(f"{key} = {value}" for key, value in pool.items())]
    return "\n".join([*lines, "[prices]", *(f"{key} = {value}" for key, value in prices.items())])
