"""Closed forms of the supermarket model and of balanced routing.

Symbols: rho load, mu rate of one server, u_k share of servers that hold k customers or more.
"""

from __future__ import annotations

import math

import numpy as np

from pull_env.scenario.validation import check_argument
from pull_env.theory.formulas import Floats, mm1_response

NEGLIGIBLE = 1e-18  # of a share of servers


def supermarket_tail(load: float, choices: int, levels: int) -> Floats:
    """Return the tail u_k = rho^((d^k - 1) / (d - 1)) as n grows.

    Each customer joins the shortest of d queues, drawn uniformly among equal servers (Vvedenskaya, Dobrushin
    and Karpelevich 1996; Mitzenmacher 2001). Among unequal servers without limits, drawn by rate, it is the
    tail in every pool (Chen and Ye 2012).

    Args:
        load: rho, below 1.
        choices: d, or c.
        levels: The greatest k.

    Returns:
        (levels + 1,) u_0 to u_levels.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.whole("choices", choices, 1)
    check_argument.whole("levels", levels, 0)
    tail, exponent = np.zeros(levels + 1), 0.0
    for k in range(levels + 1):
        tail[k] = math.exp(exponent * math.log(load))
        if tail[k] == 0.0:
            break  # before the exponents overflow
        exponent = exponent * choices + 1.0
    return tail


def supermarket_response(load: float, choices: int, rate: float = 1.0) -> float:
    """Return the mean response of d choices, the sum of u_k, k >= 1, over rho mu.

    Args:
        load: rho, below 1.
        choices: d, or c.
        rate: mu; the mean rate if rates differ and servers are drawn by rate.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.positive("rate", rate)
    if choices == 1:
        return mm1_response(load) / rate
    levels = math.ceil(math.log2(2.0 + math.log(NEGLIGIBLE) / math.log(load)))  # exponents are from 2^k - 1
    return float(supermarket_tail(load, choices, levels)[1:].sum()) / (load * rate)


def balanced_tail(load: float, choices: int, levels: int) -> Floats:
    """Return the tail of balanced routing, `supermarket_tail` in every pool."""
    return supermarket_tail(load, choices, levels)


def balanced_response(load: float, choices: int, mean_rate: float) -> float:
    """Return the mean response of balanced routing (Chen and Ye 2012) as n grows.

    Args:
        load: rho, below 1.
        choices: c.
        mean_rate: Capacity divided by the number of servers.

    Raises:
        ValueError: If an argument is out of range.
    """
    return supermarket_response(load, choices, mean_rate)


def equilibrium_length(load: float, choices: int) -> int:
    """Return the length of almost all queues: ceil(log(1 / (1 - lambda)) / log d).

    It holds as lambda -> 1 and d -> infinity; with lambda = 1 - n^-alpha and d = n^beta it is ceil(alpha /
    beta) (Brightwell and Luczak 2012, arXiv:1201.5523).

    Args:
        load: lambda at rate 1, below 1.
        choices: d, at least 2.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_argument.number("load", load, above=0.0, below=1.0)
    check_argument.whole("choices", choices, 2)
    ratio = -math.log1p(-load) / math.log(choices)
    return math.ceil(ratio - 1e-9)  # alpha / beta may be whole, and must not be rounded up by its last digit
