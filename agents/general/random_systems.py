"""Random systems: the general router is trained on some and scored on others.

Time is in mean service times: a system of n servers has the capacity n. A third of the systems change over
time: bursts, a router that gets half of all customers and moves, servers that fail and slow down, or messages
that are late and get lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.faults import Faults, News
from pull_env.scenario.scenario import Pool, Prices, Scenario
from pull_env.simulation.seeds import spawn_seeds

SERVERS, ROUTERS, PRICE = (20, 2000), (1, 50), (0.005, 0.5)  # log-uniform
POOLS, LOAD = (1, 4), (0.5, 0.97)  # uniform
FASTEST = 10.0  # largest ratio of the rates of two pools; log-uniform
CHANGING = 1 / 3
KINDS = ("bursts", "hot router", "failures", "slow news")
Spans = tuple[tuple[float, int, int], tuple[float, int, int]]  # of a warm-up and of what is counted
SPANS: Spans = ((40, 3_000, 60_000), (80, 15_000, 80_000))  # mean service times, least and most customers


def draw_systems(
    seed: int, count: int, purpose: str = "train", servers: tuple[int, int] = SERVERS
) -> list[Scenario]:
    """Return random systems; another seed or purpose gives others."""
    seeds = spawn_seeds(seed, count, purpose)
    return [draw_system(k, f"{purpose}-{n}", servers) for n, k in enumerate(seeds)]


def draw_system(seed: int, name: str = "drawn", servers: tuple[int, int] = SERVERS) -> Scenario:
    """Return one random system."""
    rng = np.random.default_rng(seed)
    size, routers = round(log_uniform(rng, servers)), round(log_uniform(rng, ROUTERS))
    pools = draw_pools(rng, size)
    load, price = float(rng.uniform(*LOAD)), float(log_uniform(rng, PRICE))
    kind = rng.choice(KINDS) if rng.random() < CHANGING else None
    change = draw_change(rng, kind, load, routers)
    return Scenario(
        pools=pools, routers=routers, load=load, prices=Prices(message=price), **change, name=name
    )


def log_uniform(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    """Return a random number between two limits, uniform on a logarithmic scale."""
    return float(np.exp(rng.uniform(*np.log(limits))))


def draw_pools(rng: np.random.Generator, servers: int) -> tuple[Pool, ...]:
    """Return pools of `servers` servers and as much capacity, the fastest first."""
    J = int(rng.integers(POOLS[0], POOLS[1] + 1))
    cuts = np.sort(rng.choice(np.arange(1, servers), J - 1, replace=False))
    sizes = np.diff([0, *cuts, servers])
    rates = np.sort(np.exp(rng.uniform(0, np.log(FASTEST), J)))[::-1]
    rates = rates * servers / (sizes @ rates)
    return tuple(Pool(int(size), float(rate)) for size, rate in zip(sizes, rates, strict=True))


def draw_change(rng: np.random.Generator, kind: str | None, load: float, routers: int) -> dict[str, Any]:
    """Return what changes over time, as fields of a scenario.

    A single router cannot be hot: it gets bursts instead.
    """
    if kind == "bursts" or (kind == "hot router" and routers == 1):
        return {"arrivals": Bursts(float(rng.uniform(max(1.1, load + 0.1), 1.6)), log_uniform(rng, (2, 20)))}
    if kind == "hot router":
        return {"shares": HotRouter(0.5, log_uniform(rng, (10, 100)))}
    if kind == "failures":
        up, normal = log_uniform(rng, (100, 1000)), log_uniform(rng, (50, 500))
        down, slow = up * float(rng.uniform(0.01, 0.03)), normal * float(rng.uniform(0.02, 0.1))
        return {"faults": Faults(up=up, down=down, normal=normal, slow=slow, factor=0.5)}
    if kind == "slow news":
        delay, loss = log_uniform(rng, (0.02, 0.5)), float(rng.uniform(0, 0.05))
        return {"news": News(delay=delay, law="exponential", loss=loss, repeat=10.0)}
    return {}


def run_length(scenario: Scenario, spans: Spans = SPANS) -> tuple[int, int]:
    """Return the customers of a short run of a candidate: of the warm-up, and counted.

    They last as many mean service times as `spans` say, within its limits: small systems count more, against
    noise, large ones fewer, to save time.
    """
    per_time = scenario.total_arrival_rate * scenario.servers / scenario.capacity
    warmup, counted = (int(min(max(least, time * per_time), most)) for time, least, most in spans)
    return warmup, counted
