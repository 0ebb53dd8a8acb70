"""Limits of large systems: PULL with many routers and with few, and the shortest of d queues, over any pools.

Pools are those of a scenario; only their shares beta_j = N_j / n count. The load is rho, so that lambda = rho
times the mean rate is the arrival rate a server. W_j is the probability that a draw hits pool j, p_j(k) the
share of its servers with k customers, s_j(k) that with k or more: its tail.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from pull_env.policy.policy import Weights
from pull_env.scenario.scenario import Pool
from pull_env.theory.formulas import LONG, Floats, positive, root, stable, whole

NEGLIGIBLE = 1e-13  # share of servers at which a tail without limit ends
LONGEST = {True: 1 << 20, False: 1 << 11}  # tails without limit: of one choice, and of more
SCAN = 200  # points at which the signs of an equation are looked at


@dataclass(frozen=True)
class Limit:
    """A stationary state of a large system.

    Attributes:
        tails: s_j(k) for k = 0, 1, ... to the buffer, or until negligible; a pool each.
        response: Mean response of accepted customers.
        p_wait: Share of accepted customers that find their server busy.
        p_block: Share of all customers that are blocked.
    """

    tails: tuple[Floats, ...]
    response: float
    p_wait: float
    p_block: float

    @property
    def busy(self) -> tuple[float, ...]:
        """Share of busy servers, a pool each."""
        return tuple(float(tail[1]) for tail in self.tails)


@dataclass(frozen=True)
class PullLimit(Limit):
    """PULL in a large system. Messages are per arriving customer; every one sent is taken or withdrawn.

    In balance, pull = (1 - q0) + remove: a router that holds a message takes one; one that holds none finds a
    server that is idle, and so withdraws its message from another of the many routers. These are the accepted
    customers that do not wait.

    Attributes:
        q0: P(the router of a customer holds no message).
        idle_period: Mean time that a server stays idle, the same in all pools.
        pull: Pull-messages, (1 - p_wait) (1 - p_block).
        remove: Remove-messages, q0 P(a server is idle).
    """

    q0: float
    idle_period: float
    pull: float
    remove: float


def pull_many_routers(pools: Sequence[Pool], load: float, servers_per_router: float) -> PullLimit:
    """Return the limit of PULL, with uniform fallback, as n and R grow at r = n / R.

    Stolyar 2017 for the model, Van Houdt 2024 for the limit.

    A router holds i messages with probability q_i = q_0 prod_{k<=i} b / (r lambda + k eta), eta = lambda q_0:
    it gets b = r sum_j beta_j / (I + G_j) a time unit, and each is withdrawn at rate eta. G_j, the mean busy
    period, is 1 / (mu_j - eta), or sum_{k<B_j} eta^k / mu_j^(k+1). The q_i sum to 1, and i q_i to r sum_j
    beta_j I / (I + G_j).

    Args:
        pools: Of any shares, rates and buffers.
        load: rho, above 0; below 1 where a pool has no limit.
        servers_per_router: r, above 0.

    Raises:
        ValueError: If an argument is out of range, or a slow pool without limit saturates: lambda q_0 >=
            mu_j.
    """
    share, rate = _shares(pools)
    positive(load=load, servers_per_router=servers_per_router)
    if any(pool.buffer is None for pool in pools):
        stable("load", load)
    r, arrival = servers_per_router, load * float(share @ rate)
    slowest = min((pool.rate for pool in pools if pool.buffer is None), default=math.inf)

    def surplus(q0: float) -> float:
        """Return the messages that servers send above those that routers lose, over the latter."""
        lack = _lack(q0, r)
        if lack is None:
            return -1.0
        idle = (1.0 - lack / q0) / (arrival * (1.0 - lack))
        starts = float(np.sum(share / (idle + _busy_periods(pools, arrival * q0))))
        return starts / (arrival * (1.0 - lack)) - 1.0

    # The q_i decrease and their mean is at most r, so q0 is at least 1 / (2 r + 1).
    most = min(1.0, slowest / arrival) * (1.0 - 1e-9)
    scan = np.geomspace(min(1.0 / (2.0 * r + 1.0), most / 2.0), most, SCAN)
    high = next((k for k in range(1, SCAN) if surplus(float(scan[k])) > 0.0), None)
    if high is None:
        raise ValueError(f"pools are {tuple(pools)}: at load {load!r} the one of rate {slowest!r} saturates")
    q0 = root(surplus, float(scan[high - 1]), float(scan[high]))  # the least: reached from an empty system
    lack = _lack(q0, r)
    assert lack is not None
    return _pull_limit(pools, arrival, q0, (1.0 - lack / q0) / (arrival * (1.0 - lack)))


def pull_equal_servers(load: float, servers_per_router: float, rate: float = 1.0) -> PullLimit:
    """Return `pull_many_routers` for equal servers without limit, by one equation (Van Houdt 2024).

    b = r lambda (1 - lambda q_0) at rate 1; E[T] = 1 / (1 - lambda q_0), P(wait) = lambda q_0.

    Raises:
        ValueError: If load is not below 1, or an argument is not positive.
    """
    stable("load", load)
    positive(servers_per_router=servers_per_router, rate=rate)
    r = servers_per_router
    q0 = root(lambda q0: math.log(q0) + _log_sum(load * q0, r / q0), 0.5 / (2.0 * r + 1.0), 1.0)
    idle = (1.0 / load - 1.0) / (rate * (1.0 - load * q0))  # the share of idle servers is 1 - load
    return _pull_limit([Pool(1, rate)], load * rate, q0, idle)


def _lack(q0: float, r: float) -> float | None:
    """Return v by which the q_i sum to 1 at b = r lambda (1 - v); None where b would be above r lambda.

    It never is in the limit: some customers find no message and a busy server. As messages last while servers
    idle, b = r lambda (1 - q0) + eta E[i] and I = E[i] / b give I = (1 - v / q0) / (lambda (1 - v)).
    """
    if _log_sum(0.0, r / q0) + math.log(q0) < 0.0:
        return None
    return root(lambda v: _log_sum(v, r / q0) + math.log(q0), 0.0, q0)


def _log_sum(v: float, c: float) -> float:
    """Return the logarithm of sum_i prod_{k<=i} (1 - v) / (1 + k / c), at any size of c.

    It is the integral over s from 0 to c of exp((1 - v) s) (1 - s / c)^(c - 1), smooth where c is large.
    """
    if c < 50.0:
        return math.log1p(float(np.cumprod((1.0 - v) / (1.0 + np.arange(1, 400) / c)).sum()))
    nodes, weights = _gauss()
    end = min(c, 10.0 * math.sqrt(c), 45.0 / max(v, 1e-300))  # beyond, the integrand is below e^-45
    t = nodes * end / c
    small = -(t**2) * sum(t ** (k - 2) / k for k in range(2, 11))  # of t + log(1 - t), without cancellation
    bend = np.where(t < 1e-2, small, t + np.log1p(-t))
    return math.log(end * float(weights @ np.exp(c * (bend - v * t) - np.log1p(-t))))


@cache
def _gauss() -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss and Legendre on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(128)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _busy_periods(pools: Sequence[Pool], eta: float) -> Floats:
    """Return the mean time from a first customer to the next idling, more coming at rate eta; (J,)."""
    unlimited = [1.0 / (pool.rate - eta) if pool.buffer is None else 0.0 for pool in pools]
    return np.array(
        [g or _series(p.buffer or 1, eta / p.rate) / p.rate for g, p in zip(unlimited, pools, strict=True)]
    )


def _series(terms: int, ratio: float) -> float:
    """Return the sum of ratio^k for k < terms."""
    if ratio == 1.0:
        return float(terms)
    if terms * math.log(ratio) > 700.0:
        return math.inf
    return math.expm1(terms * math.log(ratio)) / (ratio - 1.0)


def _pull_limit(pools: Sequence[Pool], arrival: float, q0: float, idle: float) -> PullLimit:
    """Return what follows from q0 and I: P_j(k) = (eta / mu_j)^(k-1) / (mu_j (I + G_j)), k from 1 to B_j."""
    share, _ = _shares(pools)
    eta = arrival * q0
    busy = 1.0 / (1.0 + idle / _busy_periods(pools, eta))
    tails = []
    for pool, part in zip(pools, busy, strict=True):
        log_ratio = math.log(eta / pool.rate)
        top = pool.buffer or sys.maxsize
        if log_ratio < 0.0:
            top = min(top, 2 + math.ceil(math.log(NEGLIGIBLE) / log_ratio))
        if top > LONG:
            raise ValueError(f"pools are {tuple(pools)}: that of rate {pool.rate!r} has queues beyond {LONG}")
        powers = np.arange(top) * log_ratio
        law = np.exp(powers - powers.max())
        tails.append(np.concatenate([[1.0], np.cumsum(law[::-1])[::-1] * (part / law.sum())]))
    full = sum(float(b * tail[-1]) for pool, b, tail in zip(pools, share, tails, strict=True) if pool.buffer)
    found_busy = float(share @ busy)
    p_block = q0 * full
    p_wait = q0 * (found_busy - full) / (1.0 - p_block)
    number = sum(float(b * tail[1:].sum()) for b, tail in zip(share, tails, strict=True))
    response = number / (arrival * (1.0 - p_block))
    pull, remove = (1.0 - p_wait) * (1.0 - p_block), q0 * (1.0 - found_busy)
    return PullLimit(tuple(tails), response, p_wait, p_block, q0, idle, pull, remove)


def pull_fluid(pools: Sequence[Pool], load: float, threshold: int = 1) -> PullLimit:
    """Return the limit of PULL as n grows at fixed R: no customer waits or is blocked (Stolyar 2017).

    Every available server gets customers at rate 1 / I, so x_j = beta_j / (1 + mu_j I) are busy, sum_j mu_j
    x_j = lambda, E[T] = sum_j x_j / lambda. With one router and threshold r, a server with fewer than r is
    available (Zhou, Tan and Shroff 2018), and pool j is M/M/1/r of arrival rate 1 / I.

    Args:
        pools: Of any shares and rates, buffers from the threshold.
        load: rho, below 1.
        threshold: r.

    Raises:
        ValueError: If an argument is out of range.
    """
    share, rate = _shares(pools)
    stable("load", load)
    whole("threshold", threshold)
    if any(pool.buffer is not None and pool.buffer < threshold for pool in pools):
        raise ValueError(f"threshold is {threshold}: it must be at most the least buffer")
    arrival, powers = load * float(share @ rate), np.arange(threshold + 1)

    def laws(idle: float) -> Floats:
        exponents = -powers * np.log(rate * idle)[:, None]
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def excess(log_idle: float) -> float:
        return float(share * rate @ (1.0 - laws(math.exp(log_idle))[:, 0])) / arrival - 1.0

    # With every idle period above the upper end, too few are busy even of the slowest; below the lower, more
    # than needed.
    low = math.log(1.0 - load) / threshold - math.log(rate.max()) - 1.0
    high = math.log(threshold / load) - math.log(rate.min()) + 1.0
    idle = math.exp(root(excess, low, high))
    law = laws(idle)
    tails = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]
    p_wait = float(share @ tails[:, 1] - share @ law[:, -1]) / float(share @ (1.0 - law[:, -1]))
    response = float(share @ tails[:, 1:].sum(axis=1)) / arrival
    return PullLimit(tuple(tails), response, p_wait, 0.0, 0.0, idle, 1.0 - p_wait, 0.0)


@dataclass(frozen=True)
class Trajectory:
    """The shortest of d queues in a large system, over time.

    Attributes:
        times: (T,) time units.
        tails: s_j(k) over time, (T, K_j + 1); a pool each.
        mean_number: (T,) customers a server.
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
    """Return the path of the shortest of d queues as n grows; the first drawn of equals, or any: it is the
    same.

    d servers are drawn, W_j = beta_j w_j / sum_i beta_i w_i. Let U(k) = sum_j W_j s_j(k). The i-th draw wins,
    at pool j and queue k, if those before it are longer and those after it no shorter, U(k+1)^(i-1)
    U(k)^(d-i). Summed over i, that is W_j p_j(k) D(k), D(k) = (U(k)^d - U(k+1)^d) / (U(k) - U(k+1)). So for k
    = 1 to B_j (full: blocked)

        ds_j(k)/dt = lambda W_j / beta_j (s_j(k-1) - s_j(k)) D(k-1) - mu_j (s_j(k) - s_j(k+1)).

    Without limit, s_j is cut at a K that doubles until the share beyond it is negligible (Vvedenskaya,
    Dobrushin and Karpelevich 1996; Mitzenmacher 2001; with weights our own).

    Args:
        pools: Of any shares, rates and buffers.
        load: rho, of any size.
        choices: d.
        times: Increasing, from 0: the time of `start`.
        weights: w_j of a server: `uniform`, `rate`, or a number a pool.
        start: s_j(0) = 1, s_j(1), ...; a pool each; None: empty.

    Raises:
        ValueError: If an argument is out of range, or a queue without limit passes 2048.
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
            each = tuple(np.array([t[j, : top + 1] for t in tails]) for j, top in enumerate(draws.tops))
            number = np.array([draws.share @ t[:, 1:].sum(axis=1) for t in tails])
            return Trajectory(grid, each, number, np.array([draws.blocked(t) for t in tails]))
        levels *= 2
    raise ValueError(f"load is {load!r}: a queue without limit passes {LONGEST[False]}")


def choices_limit(
    pools: Sequence[Pool], load: float, choices: int, *, weights: Weights | Sequence[float] = "uniform"
) -> Limit:
    """Return where `choices_trajectory` comes to rest from an empty system; arguments as there.

    Given D, each pool is a birth and death chain; its tails grow with D, which grows with them. So iteration
    from the empty system climbs to the least fixed point; Newton's method ends it.

    Raises:
        ValueError: If an argument is out of range, or the queues of a pool without limit grow for ever.
    """
    from scipy.optimize import fsolve

    levels = 32
    while levels <= LONGEST[choices == 1]:
        draws = _Draws(pools, load, choices, weights, levels)
        seen = np.zeros(levels)
        for _ in range(1 if choices == 1 else 100):
            seen = draws.mix(draws.settled(seen))
        if choices > 1:
            # Far from a solution Newton's method may leave the climb: then the climb's end stays.
            found, report, _, _ = fsolve(partial(_gap, draws), seen, xtol=1e-14, full_output=True)
            if float(np.abs(report["fvec"]).max()) < 1e-12 and bool(np.all(found >= seen - 1e-12)):
                seen = np.clip(found, 0.0, 1.0)
        tails = draws.settled(seen)
        if draws.fits(tails):
            if float(np.abs(draws.slope(0.0, tails[:, 1:-1].ravel())).max()) > 1e-9:
                break  # still climbing
            return draws.limit(tails)
        levels *= 2
    raise ValueError(f"load is {load!r}: the queues of a pool without limit grow")


def _gap(draws: _Draws, seen: Floats) -> Floats:
    """Return by how much U(1) to U(levels) would change."""
    return draws.mix(draws.settled(seen)) - seen


class _Draws:
    """Flows of customers for given tails, cut at `levels`: states are (J, levels + 2), s_j(0) = 1 and the
    last 0.
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
        self.share, self.rate = _shares(pools)
        positive(load=load)
        whole("choices", choices)
        self.arrival = load * float(self.share @ self.rate)
        if isinstance(weights, str):
            weight = self.rate if weights == "rate" else np.ones(len(pools))
        else:
            weight = np.asarray(weights, np.float64)
        if weight.shape != self.rate.shape or not np.all(weight >= 0) or not 0 < weight.sum() < math.inf:
            raise ValueError(f"weights is {weights!r}: it must be a finite number from 0 a pool, not all 0")
        self.chance = self.share * weight / float(self.share @ weight)
        self.tops = [min(pool.buffer or levels, levels) for pool in pools]
        self.open = np.arange(levels + 1) < np.array(self.tops)[:, None]  # (J, levels + 1) below the buffer

    def padded(self, flat: Floats) -> Floats:
        """Return the state whose s_j(1) to s_j(levels) are given in a row."""
        inner = flat.reshape(len(self.pools), -1)
        return np.pad(inner, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (1.0, 0.0)))

    def mix(self, state: Floats) -> Floats:
        """Return U(1) to U(levels)."""
        return np.asarray(self.chance @ state[:, 1:-1])

    def gain(self, seen: Floats) -> Floats:
        """Return D(0) to D(levels) for U(1) to U(levels): U(k)^(d-1) (1 - t^d) / (1 - t), t = U(k+1) /
        U(k).
        """
        high = np.clip(np.concatenate([[1.0], seen]), 0.0, 1.0)
        low = np.minimum(np.append(high[1:], 0.0), high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.log1p((low - high) / high)
            ratio = np.expm1(self.choices * step) / np.expm1(step)
        ratio = np.where(low == high, float(self.choices), np.where(low == 0.0, 1.0, ratio))
        return np.asarray(high ** (self.choices - 1) * ratio)

    def slope(self, _: float, flat: Floats) -> Floats:
        """Return ds_j(k)/dt for k = 1 to levels, in a row."""
        state = self.padded(flat)
        law = -np.diff(state, axis=1)
        births = (
            (self.arrival * self.chance / self.share)[:, None] * law * self.gain(self.mix(state)) * self.open
        )
        return np.asarray((births[:, :-1] - self.rate[:, None] * law[:, 1:]).ravel())

    def settled(self, seen: Floats) -> Floats:
        """Return the stationary state of the pools for U(1) to U(levels)."""
        birth = (self.arrival * self.chance / self.share / self.rate)[:, None] * self.gain(seen) * self.open
        with np.errstate(divide="ignore"):
            logs = np.cumsum(np.log(birth[:, :-1]), axis=1)
        logs = np.pad(logs, ((0, 0), (1, 0)))
        law = np.exp(logs - logs.max(axis=1, keepdims=True))
        law /= law.sum(axis=1, keepdims=True)
        return np.pad(np.cumsum(law[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    def fits(self, state: Floats) -> bool:
        """Return whether the cut of the tails without limit is negligible."""
        return all(
            (pool.buffer is not None and pool.buffer <= top) or state[j, top] < 1e-11
            for j, (pool, top) in enumerate(zip(self.pools, self.tops, strict=True))
        )

    def sent(self, state: Floats) -> Floats:
        """Return the probability that a customer is sent to pool j and queue k; (J, levels + 1)."""
        return np.asarray(self.chance[:, None] * -np.diff(state, axis=1) * self.gain(self.mix(state)))

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


def fast_first_response(pools: Sequence[Pool], load: float) -> float:
    """Return the least mean response without waiting: the fastest servers are all busy (Stolyar 2017).

    sum_j x_j / lambda for the x_j <= beta_j of least sum with sum_j mu_j x_j = lambda.

    Raises:
        ValueError: If load is not below 1.
    """
    share, rate = _shares(pools)
    stable("load", load)
    order = np.argsort(-rate, kind="stable")
    arrival, served, busy = load * float(share @ rate), 0.0, 0.0
    for j in order:
        used = min(float(share[j]), max(arrival - served, 0.0) / float(rate[j]))
        served, busy = served + used * float(rate[j]), busy + used
    return busy / arrival


def _shares(pools: Sequence[Pool]) -> tuple[Floats, Floats]:
    """Return beta and mu, (J,) each."""
    if not pools:
        raise ValueError(f"pools is {pools!r}: there must be at least one")
    sizes = np.array([pool.size for pool in pools], np.float64)
    return sizes / sizes.sum(), np.array([pool.rate for pool in pools], np.float64)
