"""Closed forms: single queues, one queue with many servers, two servers.

Symbols: lambda arrival rate, mu rate of one server, rho = lambda / (servers mu) load. Waits are times in
queue; responses add the service. Service is exponential and arrivals are Poisson unless stated otherwise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pull_env.scenario.validation import check_argument

Floats = npt.NDArray[np.float64]

LONG = 1_000_000  # longest buffer whose distribution is written out


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function between two points of opposite sign."""
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-300, rtol=4 * sys.float_info.epsilon, maxiter=500))


def mm1_response(arrival_rate: float, rate: float = 1.0) -> float:
    """Return the mean response of M/M/1, 1 / (mu - lambda) (Kleinrock 1975, 3.2).

    Raises:
        ValueError: If arrival_rate / rate is not below 1.
    """
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    check_argument.number("arrival_rate / rate", arrival_rate / rate, above=0.0, below=1.0)
    return 1.0 / (rate - arrival_rate)


def mm1_mean_number(arrival_rate: float, rate: float = 1.0) -> float:
    """Return the mean number in M/M/1, rho / (1 - rho) (Kleinrock 1975, 3.2).

    Raises:
        ValueError: If arrival_rate / rate is not below 1.
    """
    return arrival_rate * mm1_response(arrival_rate, rate)


def mm1_wait_quantile(probability: float, arrival_rate: float, rate: float = 1.0) -> float:
    """Return a quantile of the wait in M/M/1.

    P(wait > t) = rho exp(-(mu - lambda) t) (Kleinrock 1975, 5.7).

    Args:
        probability: From 0, below 1; up to 1 - rho the quantile is 0.
        arrival_rate: lambda, below mu.
        rate: mu.

    Raises:
        ValueError: If probability or arrival_rate / rate is out of range.
    """
    check_argument.number("probability", probability, least=0.0, below=1.0)
    return max(0.0, math.log(arrival_rate / rate / (1.0 - probability))) * mm1_response(arrival_rate, rate)


def mm1b_distribution(arrival_rate: float, rate: float, buffer: int) -> Floats:
    """Return the distribution of the number in M/M/1/B, at any load.

    Proportional to rho^k (Kleinrock 1975, 3.6).

    Args:
        arrival_rate: lambda, blocked customers included.
        rate: mu.
        buffer: B, the most customers, the one in service included.

    Returns:
        (B + 1,) probabilities of 0 to B.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    check_argument.whole("buffer", buffer, 1)
    powers = np.arange(buffer + 1) * math.log(arrival_rate / rate)
    weights = np.exp(powers - powers.max())
    return np.asarray(weights / weights.sum(), np.float64)


def mm1b_blocking(arrival_rate: float, rate: float, buffer: int) -> float:
    """Return P(block) of M/M/1/B; arguments as in `mm1b_distribution`.

    It is rho^B (1 - rho) / (1 - rho^(B+1)).
    """
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    check_argument.whole("buffer", buffer, 1)
    log_load = math.log(arrival_rate / rate)
    if log_load == 0.0:
        return 1.0 / (buffer + 1)
    fade = -abs(log_load)
    share = math.expm1(fade) / math.expm1((buffer + 1) * fade)
    return share if log_load > 0.0 else share * math.exp(buffer * log_load)


def mm1b_mean_number(arrival_rate: float, rate: float, buffer: int) -> float:
    """Return the mean number in M/M/1/B; arguments as in `mm1b_distribution`.

    It is rho / (1 - rho) - (B + 1) rho^(B+1) / (1 - rho^(B+1)).
    """
    if buffer <= LONG:  # as the formula loses digits near rho = 1
        return float(mm1b_distribution(arrival_rate, rate, buffer) @ np.arange(buffer + 1))
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    log_load = math.log(arrival_rate / rate)
    fall = (buffer + 1) * log_load
    if abs(fall) < 1e-5:
        return buffer / 2.0
    return 1.0 / math.expm1(-log_load) - (buffer + 1) / math.expm1(min(-fall, 700.0))


def erlang_b(servers: int, offered: float) -> float:
    """Return Erlang's loss probability; stable for any size, O(servers).

    B(0) = 1, B(k) = a B(k-1) / (k + a B(k-1)), for every service distribution of mean 1 / mu (Erlang 1917;
    Jagerman 1974 for the recursion).

    Args:
        servers: c.
        offered: a = lambda / mu, of any size.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.whole("servers", servers, 1)
    check_argument.positive("offered", offered)
    loss = 1.0
    for k in range(1, servers + 1):
        loss = offered * loss / (k + offered * loss)
    return loss


def erlang_c(servers: int, offered: float) -> float:
    """Return P(wait) of M/M/c, c B / (c - a (1 - B)) (Erlang 1917); O(servers).

    Raises:
        ValueError: If servers is out of range, or offered / servers is not below 1.
    """
    loss = erlang_b(servers, offered)
    check_argument.number("offered / servers", offered / servers, above=0.0, below=1.0)
    return servers * loss / (servers - offered * (1.0 - loss))


def mmc_wait(servers: int, arrival_rate: float, rate: float = 1.0) -> float:
    """Return the mean wait in M/M/c, C / (c mu - lambda), with C of `erlang_c`."""
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    return erlang_c(servers, arrival_rate / rate) / (servers * rate - arrival_rate)


def mmc_response(servers: int, arrival_rate: float, rate: float = 1.0) -> float:
    """Return the mean response of M/M/c: `mmc_wait` + 1 / mu, and its errors."""
    return mmc_wait(servers, arrival_rate, rate) + 1.0 / rate


def mg1_wait(arrival_rate: float, rate: float = 1.0, variation: float = 1.0) -> float:
    """Return the mean wait in M/G/1, rho (1 + cs2) / (2 mu (1 - rho)), for rho < 1.

    Pollaczek (1930) and Khinchine (1932).

    Args:
        arrival_rate: lambda.
        rate: mu, one over the mean service.
        variation: cs2, squared coefficient of variation of the service: 0 constant, 1 exponential.

    Raises:
        ValueError: If variation is negative, or arrival_rate / rate is not below 1.
    """
    check_argument.non_negative("variation", variation)
    return arrival_rate / rate * (1.0 + variation) / 2.0 * mm1_response(arrival_rate, rate)


def mg1_response(arrival_rate: float, rate: float = 1.0, variation: float = 1.0) -> float:
    """Return the mean response of M/G/1: `mg1_wait` + 1 / mu, and its errors."""
    return mg1_wait(arrival_rate, rate, variation) + 1.0 / rate


def round_robin_p_wait(servers: int, arrival_rate: float, rate: float = 1.0) -> float:
    """Return P(wait) of round robin by one router over n servers, E_n/M/1 queues.

    It is the root z below 1 of z = (Lambda / (Lambda + mu (1 - z)))^n (Kleinrock 1975, section 6.2, GI/M/1).

    Args:
        servers: n.
        arrival_rate: Lambda, of all servers together.
        rate: mu.

    Raises:
        ValueError: If servers is out of range, or arrival_rate / (servers * rate) is not below 1.
    """
    check_argument.whole("servers", servers, 1)
    check_argument.positive("arrival_rate", arrival_rate)
    check_argument.positive("rate", rate)
    load = arrival_rate / (servers * rate)
    check_argument.number("arrival_rate / (servers * rate)", load, above=0.0, below=1.0)
    # In t = -log z it is the positive root of a concave function, from half that of M/M/1 to the greatest t.
    exponent = root(
        lambda t: servers * math.log1p(-rate * math.expm1(-t) / arrival_rate) - t,
        (1.0 - load) / 2.0,
        servers * math.log1p(rate / arrival_rate),
    )
    return math.exp(-exponent)


def round_robin_response(servers: int, arrival_rate: float, rate: float = 1.0) -> float:
    """Return the mean response, 1 / (mu (1 - z)), with z of `round_robin_p_wait`."""
    return 1.0 / (rate * (1.0 - round_robin_p_wait(servers, arrival_rate, rate)))


def jiq_two_servers_mean_number(load: float) -> float:
    """Return E[N] = 2 rho (1 + rho) / ((1 - rho) (1 + 2 rho)) of join-idle-queue.

    For one router and two equal servers. With A = E[Q1; both busy] and C = E[Q1; the other idle], the drifts
    of Q1^2 and Q1 Q2 vanish: A + C - rho A = rho and (1 - rho) A = 2 rho C; E[N] = 2 (A + C). So (1 - rho)
    E[N] -> 4/3 = 2n / (n + 1) (Zhou, Tan and Shroff 2018).

    Raises:
        ValueError: If load is not below 1.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    return 2.0 * load * (1.0 + load) / ((1.0 - load) * (1.0 + 2.0 * load))
