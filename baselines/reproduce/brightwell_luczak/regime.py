"""The regime of Brightwell and Luczak: load and choices as n grows, and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pull_env.theory.supermarket import equilibrium_length, supermarket_tail


@dataclass(frozen=True)
class Regime:
    """Load 1 - n^-alpha and d = floor(n^beta); k = ceil(alpha / beta).

    Almost all queues have length k. alpha / beta must not be whole, where the floor would change k by one.
    """

    alpha: float
    beta: float

    def load(self, n: int) -> float:
        """Return the load of n servers."""
        return float(1.0 - n**-self.alpha)

    def choices(self, n: int) -> int:
        """Return d; a power that is whole must not be rounded down by its last digit."""
        return int(n**self.beta + 1e-9)

    @property
    def length(self) -> int:
        """Return k."""
        return math.ceil(self.alpha / self.beta)

    def time_scale(self, n: int) -> float:
        """Return k d^(k-1) log n, the order of the mixing time.

        There are about 2 n jumps per time unit.
        """
        return float(self.length * self.choices(n) ** (self.length - 1) * math.log(n))

    def bound(self, n: int) -> float:
        """Return the least share of queues of length k, 1 - 2 n^(-alpha + (k-1) beta)."""
        return float(1.0 - 2.0 * n ** (-self.alpha + (self.length - 1) * self.beta))


def theory(regime: Regime, n: int) -> dict[str, float]:
    """Return the limit, the bound and the time scale at the load and d of n."""
    k, d = regime.length, regime.choices(n)
    tail = supermarket_tail(regime.load(n), d, k + 8)
    assert equilibrium_length(regime.load(n), d) == k, "the floor has moved k"
    return {
        "d": d,
        "k": k,
        "bound": regime.bound(n),
        "time scale": regime.time_scale(n),
        "mean": float(tail[1:].sum()),
        "limit share": float(tail[k] - tail[k + 1]),
        "limit longer": float(tail[k + 1]),
    }
