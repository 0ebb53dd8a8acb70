"""Markov chains in continuous time: reachable states, stationary distribution."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph, linalg

from pull_env.theory.formulas import Floats

S = TypeVar("S", bound=Hashable)

DIRECT = 1_000  # states up to which the equations are factorised whatever their pattern
TOLERANCE = 1e-11  # of inflow minus outflow of a state, relative to the largest flow
POLISH = 100  # power iterations that smooth an eigenvector, or find likely states


@dataclass(frozen=True)
class Chain(Generic[S]):
    """A chain with its reachable states.

    Attributes:
        states: The states, in the order of discovery.
        rates: (states, states) rates of the jumps, without those from a state to itself.
        counted: (states, measures) counts per time unit.
        start: (states,) initial distribution.
    """

    states: list[S]
    rates: Any
    counted: Floats
    start: Floats


def explore(
    initial_distribution: Mapping[S, float],
    events: Callable[[S], Iterable[tuple[float, S, tuple[float, ...]]]],
    measures: int,
    most_states: int,
) -> Chain[S] | None:
    """Return the chain reachable from its first states; None above `most_states`.

    Args:
        initial_distribution: Over at most `most_states` states.
        events: Rate, next state and counts (`measures` numbers) of all events in a state.
        measures: How many numbers an event counts.
        most_states: Limit of the exploration.
    """
    states = list(initial_distribution)
    number = {state: k for k, state in enumerate(states)}
    rows, columns, values, counted = array("q"), array("q"), array("d"), array("d")
    for row, state in enumerate(states):  # which grows on the way
        total = [0.0] * measures
        for rate, after, counts in events(state):
            column = number.setdefault(after, len(number))
            if column == len(states):
                if column == most_states:
                    return None
                states.append(after)
            if column != row:
                rows.append(row)
                columns.append(column)
                values.append(rate)
            if any(counts):
                total = [t + rate * count for t, count in zip(total, counts, strict=True)]
        counted.extend(total)
    size = len(states)
    start = np.zeros(size)
    start[: len(initial_distribution)] = list(initial_distribution.values())
    where = (np.asarray(rows, np.int64), np.asarray(columns, np.int64))
    rates = sparse.csr_array((np.asarray(values), where), shape=(size, size))
    return Chain(states, rates, np.asarray(counted).reshape(size, measures), start)


def stationary(rates: Any, start: Floats, planar: bool) -> Floats:
    """Return the stationary distribution, (states,).

    Args:
        rates: (states, states) sparse, without a diagonal.
        start: (states,) initial distribution: it weights the closed classes if there are several.
        planar: Whether the states form a plane, so that a factorisation stays sparse.
    """
    _, label = csgraph.connected_components(rates, directed=True, connection="strong")
    origin, target = rates.nonzero()
    open_ = np.unique(label[origin[label[origin] != label[target]]])
    classes = [np.flatnonzero(label == c) for c in np.setdiff1d(label, open_)]
    shares = [1.0] if len(classes) == 1 else _absorbed(rates, start, classes)
    distribution = np.zeros(start.size)
    for members, share in zip(classes, shares, strict=True):
        distribution[members] = share * _irreducible(rates[members][:, members], planar)
    return distribution


def _absorbed(rates: Any, start: Floats, classes: list[npt.NDArray[np.intp]]) -> list[float]:
    """Return the probability of ending in each closed class."""
    transient = np.setdiff1d(np.arange(start.size), np.concatenate(classes))
    direct = [float(start[members].sum()) for members in classes]
    if transient.size == 0 or not start[transient].any():
        return direct
    inner = rates[transient][:, transient]
    leave = sparse.diags_array(rates[transient].sum(axis=1)) - inner
    visits = linalg.spsolve(leave.T.tocsc(), start[transient])  # expected time in each state on the way
    indirect = [float(visits @ rates[transient][:, members].sum(axis=1)) for members in classes]
    return [sum(pair) for pair in zip(direct, indirect, strict=True)]


def _irreducible(rates: Any, planar: bool) -> Floats:
    """Return the stationary distribution of an irreducible chain."""
    size = rates.shape[0]
    if size == 1:
        return np.ones(1)
    out = rates.sum(axis=1)
    clock = 1.01 * out.max()  # above all rates, so that the uniformised chain is aperiodic
    jump = (rates / clock + sparse.diags_array(1 - out / clock)).T.tocsr()
    balance = (rates.T - sparse.diags_array(out)).tocsc()  # balance @ distribution = 0
    distribution = _factorised(balance, jump) if planar or size <= DIRECT else _iterated(jump)
    worst = float(np.abs(balance @ distribution).max() / (out * distribution).max())
    if not worst <= TOLERANCE:
        raise ArithmeticError(f"the balance of {size:,} states is only met to {worst:.1e}")
    return distribution


def _factorised(balance: Any, jump: Any) -> Floats:
    """Return the distribution by factorisation, one state having weight 1."""
    distribution = _after(jump, np.full(balance.shape[0], 1 / balance.shape[0]))
    for _ in range(3):  # the pinned state should not be a rare one
        pin = int(distribution.argmax())
        others = np.delete(np.arange(distribution.size), pin)
        matrix = balance[others][:, others].tocsc()
        right = -balance[others][:, [pin]].toarray().ravel()
        # Diagonally dominant by columns, so that no pivoting is needed, which would fill the factors.
        factors = linalg.splu(matrix, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True})
        weights = factors.solve(right)
        weights += factors.solve(right - matrix @ weights)
        distribution = np.insert(np.maximum(weights, 0.0), pin, 1.0)
        distribution /= distribution.sum()
        if distribution[pin] > 1e-6 * distribution.max():
            break
    return distribution


def _iterated(jump: Any) -> Floats:
    """Return the distribution as the dominant eigenvector, by Arnoldi's method."""
    even = np.full(jump.shape[0], 1 / jump.shape[0])
    try:
        vectors = linalg.eigs(jump, 1, which="LR", v0=even, ncv=20, maxiter=10_000, tol=1e-14)[1]
    except linalg.ArpackNoConvergence as error:
        raise ArithmeticError(f"{even.size:,} states converge too slowly: {error}") from None
    return _after(jump, np.abs(vectors[:, 0].real))


def _after(jump: Any, distribution: Floats) -> Floats:
    """Return the distribution `POLISH` jumps later."""
    for _ in range(POLISH):
        distribution = jump @ distribution
    distribution /= distribution.sum()
    return distribution
