"""Mean field of the shortest of d queues, stationary and over time.

Pools have any rates and buffers. Symbols as in `pull_mean_field`; W_j is the probability that a draw hits
pool j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from pull_env.policy.policy import Weights
from pull_env.scenario.scenario import Pool
from pull_env.scenario.validation import check_argument
from pull_env.theory.formulas import Floats
from pull_env.theory.pull_mean_field import Limit, shares_and_rates

LONGEST = {True: 1 << 20, False: 1 << 11}  # unlimited queues of one choice, of more


@dataclass(frozen=True)
class Trajectory:
    """The shortest of d queues in a large system, over time.

    Attributes:
        times: (T,) time units.
        tails: s_j(k) over time, (T, K_j + 1), by pool.
        mean_number: (T,) customers per server.
        p_block: (T,) P(a customer who arrives then is blocked).
    """

    times: Floats
    tails: tuple[Floats, ...]
    mean_number: Floats
    p_block: Floats


def choices_trajectory(
    pools: Sequence[Pool],
    load: float,
    choices: int,
    times: npt.ArrayLike,
    *,
    weights: Weights | Sequence[float] = "uniform",
    start: Sequence[npt.ArrayLike] | None = None,
) -> Trajectory:
    """Return the path of the shortest of d queues as n grows.

    Ties go to the first drawn, or to any: the limit is the same.

    d servers are drawn, W_j = beta_j w_j / sum_i beta_i w_i. Let U(k) = sum_j W_j s_j(k). The i-th draw, of
    pool j and queue k, wins if those before it are longer and those after it no shorter: with probability
    U(k+1)^(i-1) U(k)^(d-i). Summed over i, customers join pool j at queue k with probability W_j p_j(k) D(k),
    D(k) = (U(k)^d - U(k+1)^d) / (U(k) - U(k+1)). So for k = 1 to B_j (at B_j they are blocked)

        ds_j(k)/dt = lambda W_j / beta_j (s_j(k-1) - s_j(k)) D(k-1) - mu_j (s_j(k) - s_j(k+1)).

    Without a limit s_j is cut at a K that doubles until the share beyond it is negligible (Vvedenskaya,
    Dobrushin and Karpelevich 1996; Mitzenmacher 2001; the weights are our own).

    Args:
        pools: Of any shares, rates and buffers.
        load: rho, of any size.
        choices: d.
        times: Increasing; the first is that of `start`.
        weights: w_j of a server: `uniform`, `rate`, or a number per pool.
        start: s_j(0) = 1, s_j(1), ... by pool; None: empty.

    Raises:
        ValueError: If an argument is out of range, or an unlimited queue exceeds 2048.
    """
    from scipy.integrate import solve_ivp

    grid = np.asarray(times, np.float64)
    first = [np.asarray(tail, np.float64) for tail in ([[1.0]] * len(pools) if start is None else start)]
    if len(first) != len(pools) or any(tail[0] != 1.0 or np.any(np.diff(tail) > 0) for tail in first):
        raise ValueError("start must hold, for each pool, a tail that begins with 1 and does not increase")
    if any(pool.buffer and tail.size > pool.buffer + 1 for pool, tail in zip(pools, first, strict=True)):
        raise ValueError("start must not reach beyond the buffers")
    levels = max(32, *(2 * tail.size for tail in first))
    while levels <= LONGEST[False]:
        draws = _Draws(pools, load, choices, weights, levels)
        state = np.zeros((len(pools), levels + 2))
        for j, tail in enumerate(first):
            state[j, : tail.size] = tail
        flat = state[:, 1:-1].ravel()
        path = solve_ivp(draws.slope, (grid[0], grid[-1]), flat, "LSODA", grid, rtol=1e-9, atol=1e-12)
        tails = [draws.padded(y) for y in path.y.T]
        if all(draws.fits(tail) for tail in tails):
            by_pool = tuple(np.array([t[j, : top + 1] for t in tails]) for j, top in enumerate(draws.tops))
            number = np.array([draws.share @ t[:, 1:].sum(axis=1) for t in tails])
            return Trajectory(grid, by_pool, number, np.array([draws.blocked(t) for t in tails]))
        levels *= 2
    raise ValueError(f"load is {load!r}: an unlimited queue exceeds {LONGEST[False]}")


def choices_limit(
    pools: Sequence[Pool], load: float, choices: int, *, weights: Weights | Sequence[float] = "uniform"
) -> Limit:
    """Return the limit of `choices_trajectory` from an empty system; same arguments.

    Given D, each pool is a birth and death chain; its tails grow with D, which grows with them. So iteration
    from the empty system increases to the least fixed point, and Newton's method completes it.

    Raises:
        ValueError: If an argument is out of range, or an unlimited pool is unstable.
    """
    from scipy.optimize import fsolve

    levels = 32
    while levels <= LONGEST[choices == 1]:
        draws = _Draws(pools, load, choices, weights, levels)
        mixture = np.zeros(levels)
        for _ in range(1 if choices == 1 else 100):
            mixture = draws.mixture_of(draws.stationary(mixture))
        if choices > 1:
            # Far from a solution Newton's method may fail: then the last iterate is kept.
            solution, report, _, _ = fsolve(partial(_residual, draws), mixture, xtol=1e-14, full_output=True)
            if float(np.abs(report["fvec"]).max()) < 1e-12 and bool(np.all(solution >= mixture - 1e-12)):
                mixture = np.clip(solution, 0.0, 1.0)
        tails = draws.stationary(mixture)
        if draws.fits(tails):
            if float(np.abs(draws.slope(0.0, tails[:, 1:-1].ravel())).max()) > 1e-9:
                break  # still increasing
            return draws.limit(tails)
        levels *= 2
    raise ValueError(f"load is {load!r}: the queues of an unlimited pool grow")


def _residual(draws: _Draws, mixture: Floats) -> Floats:
    """Return the change of U(1) to U(levels) in one iteration."""
    return draws.mixture_of(draws.stationary(mixture)) - mixture


class _Draws:
    """Flows of customers for given tails, cut at `levels`.

    States are (J, levels + 2), s_j(0) = 1 and the last 0.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        load: float,
        choices: int,
        weights: Weights | Sequence[float],
        levels: int,
    ) -> None:
        self.pools, self.choices = pools, choices
        self.share, self.rate = shares_and_rates(pools)
        check_argument.positive("load", load)
        check_argument.whole("choices", choices, 1)
        self.arrival = load * float(self.share @ self.rate)
        if isinstance(weights, str):
            weight = self.rate if weights == "rate" else np.ones(len(pools))
        else:
            weight = np.asarray(weights, np.float64)
        if weight.shape != self.rate.shape or not np.all(weight >= 0) or not 0 < weight.sum() < math.inf:
            allowed = "a finite number from 0 for each pool, not all 0"
            raise check_argument.refusal("weights", weights, allowed)
        self.chance = self.share * weight / float(self.share @ weight)
        self.tops = [min(pool.buffer or levels, levels) for pool in pools]
        self.open = np.arange(levels + 1) < np.array(self.tops)[:, None]  # (J, levels + 1) below the buffer

    def padded(self, flat: Floats) -> Floats:
        """Return the state with s_j(1) to s_j(levels) as in `flat`."""
        inner = flat.reshape(len(self.pools), -1)
        return np.pad(inner, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (1.0, 0.0)))

    def mixture_of(self, state: Floats) -> Floats:
        """Return U(1) to U(levels)."""
        return np.asarray(self.chance @ state[:, 1:-1])

    def factor(self, mixture: Floats) -> Floats:
        """Return D(0) to D(levels) for U(1) to U(levels).

        D(k) = U(k)^(d-1) (1 - t^d) / (1 - t), t = U(k+1) / U(k).
        """
        high = np.clip(np.concatenate([[1.0], mixture]), 0.0, 1.0)
        low = np.minimum(np.append(high[1:], 0.0), high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.log1p((low - high) / high)
            ratio = np.expm1(self.choices * step) / np.expm1(step)
        ratio = np.where(low == high, float(self.choices), np.where(low == 0.0, 1.0, ratio))
        return np.asarray(high ** (self.choices - 1) * ratio)

    def slope(self, _: float, flat: Floats) -> Floats:
        """Return ds_j(k)/dt for k = 1 to levels, flat."""
        state = self.padded(flat)
        distribution = -np.diff(state, axis=1)
        births = (
            (self.arrival * self.chance / self.share)[:, None]
            * distribution
            * self.factor(self.mixture_of(state))
            * self.open
        )
        return np.asarray((births[:, :-1] - self.rate[:, None] * distribution[:, 1:]).ravel())

    def stationary(self, mixture: Floats) -> Floats:
        """Return the stationary state of the pools for U(1) to U(levels)."""
        birth = (
            (self.arrival * self.chance / self.share / self.rate)[:, None] * self.factor(mixture) * self.open
        )
        with np.errstate(divide="ignore"):
            logs = np.cumsum(np.log(birth[:, :-1]), axis=1)
        logs = np.pad(logs, ((0, 0), (1, 0)))
        distribution = np.exp(logs - logs.max(axis=1, keepdims=True))
        distribution /= distribution.sum(axis=1, keepdims=True)
        return np.pad(np.cumsum(distribution[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    def fits(self, state: Floats) -> bool:
        """Return whether what the cut of unlimited tails leaves out is negligible."""
        return all(
            (pool.buffer is not None and pool.buffer <= top) or state[j, top] < 1e-11
            for j, (pool, top) in enumerate(zip(self.pools, self.tops, strict=True))
        )

    def sent(self, state: Floats) -> Floats:
        """Return P(a customer is sent to pool j and queue k); (J, levels + 1)."""
        return np.asarray(
            self.chance[:, None] * -np.diff(state, axis=1) * self.factor(self.mixture_of(state))
        )

    def blocked(self, state: Floats) -> float:
        """Return the probability that a customer is blocked."""
        sent = self.sent(state)
        return sum(
            float(sent[j, p.buffer])
            for j, p in enumerate(self.pools)
            if p.buffer and p.buffer < sent.shape[1]
        )

    def limit(self, state: Floats) -> Limit:
        """Return the measures of a stationary state."""
        sent, p_block = self.sent(state), self.blocked(state)
        response = float(self.share @ state[:, 1:].sum(axis=1)) / (self.arrival * (1.0 - p_block))
        p_wait = 1.0 - float(sent[:, 0].sum()) / (1.0 - p_block)
        tails = tuple(state[j, : top + 1] for j, top in enumerate(self.tops))
        return Limit(tails, response, p_wait, p_block)
