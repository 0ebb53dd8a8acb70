"""The distribution of systems that the general router is trained on, and scored on others of.

Time is in mean service times: the capacity of a system of n servers is n. A third of the systems change over
time: by bursts, by a router that gets half of all customers and moves, by servers that fail and slow down, or
by messages that are late and get lost.
"""

from __future__ import annotations

import numpy as np

from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.faults import Faults, News
from pull_env.scenario.scenario import Pool, Prices, Scenario
from pull_env.simulation.seeds import spawn_seeds

SERVERS, ROUTERS, PRICE = (20, 2000), (1, 50), (0.005, 0.5)  # even on a logarithmic scale
POOLS, LOAD = (1, 4), (0.5, 0.97)  # even
FASTEST = 10.0  # times as fast as the slowest pool, at most; even on a logarithmic scale
CHANGING = 1 / 3
KINDS = ("bursts", "hot router", "failures", "slow news")
SPANS = ((40, 3_000, 60_000), (80, 15_000, 80_000))  # mean service times, least and most customers


def draw_systems(seed: int, count: int, purpose: str = "train") -> list[Scenario]:
    """Return systems drawn at random; those of another seed or another purpose are others."""
    return [draw_system(k, f"{purpose}-{n}") for n, k in enumerate(spawn_seeds(seed, count, purpose))]


def draw_system(seed: int, name: str = "drawn") -> Scenario:
    """Return one system drawn at random."""
    rng = np.random.default_rng(seed)
    servers, routers = round(even(rng, SERVERS)), round(even(rng, ROUTERS))
    pools = draw_pools(rng, servers)
    load, price = float(rng.uniform(*LOAD)), float(even(rng, PRICE))
    system = {"pools": pools, "routers": routers, "load": load, "prices": Prices(message=price)}
    kind = rng.choice(KINDS) if rng.random() < CHANGING else None
    return Scenario(**system, **draw_change(rng, kind, load, routers), name=name)  # type: ignore[arg-type]


def even(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    """Return a number between two, even on a logarithmic scale."""
    return float(np.exp(rng.uniform(*np.log(limits))))


def draw_pools(rng: np.random.Generator, servers: int) -> tuple[Pool, ...]:
    """Return pools of `servers` servers in all, the fastest first, with a capacity of `servers`."""
    J = int(rng.integers(POOLS[0], POOLS[1] + 1))
    cuts = np.sort(rng.choice(np.arange(1, servers), J - 1, replace=False))
    sizes = np.diff([0, *cuts, servers])
    rates = np.sort(np.exp(rng.uniform(0, np.log(FASTEST), J)))[::-1]
    rates = rates * servers / (sizes @ rates)
    return tuple(Pool(int(size), float(rate)) for size, rate in zip(sizes, rates, strict=True))


def draw_change(rng: np.random.Generator, kind: str | None, load: float, routers: int) -> dict[str, object]:
    """Return what makes a system change over time, as fields of a scenario; a single router is never hot."""
    if kind == "bursts" or (kind == "hot router" and routers == 1):
        return {"arrivals": Bursts(float(rng.uniform(max(1.1, load + 0.1), 1.6)), even(rng, (2, 20)))}
    if kind == "hot router":
        return {"shares": HotRouter(0.5, even(rng, (10, 100)))}
    if kind == "failures":
        up, normal = even(rng, (100, 1000)), even(rng, (50, 500))
        down, slow = up * float(rng.uniform(0.01, 0.03)), normal * float(rng.uniform(0.02, 0.1))
        return {"faults": Faults(up=up, down=down, normal=normal, slow=slow, factor=0.5)}
    if kind == "slow news":
        late, lost = even(rng, (0.02, 0.5)), float(rng.uniform(0, 0.05))
        return {"news": News(delay=late, law="exponential", loss=lost, repeat=10.0)}
    return {}


def span(scenario: Scenario) -> tuple[int, int]:
    """Return the customers of a short run of a candidate: a warm-up that is left out, and those counted.

    So many mean service times as SPANS say; in small systems more, for the noise, in large ones fewer, for
    the time.
    """
    each = scenario.total_arrival_rate * scenario.servers / scenario.capacity
    return tuple(int(min(max(low, time * each), high)) for time, low, high in SPANS)  # type: ignore[return-value]
