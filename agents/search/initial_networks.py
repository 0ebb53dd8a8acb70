"""Where a search begins: a person's rule or a chain, written as a network, or a network found before.

The rules are `take a message of the fastest pool that has one, else do X`, and `do X`, for every X of the
catalog: a network of one layer holds them, and so does one with a hidden layer, whose first units then tell
from which pools there is a message. Any chain of steps is a network as well, of preferences that fall step by
step, where what cannot act is ruled out; beside its steps there are others to choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.training.action_set import steps_beside, with_other_counts, with_takes_by_pool
from pull_env.kernels.envs.observe import POOL_CONSTANTS, POOL_ENTRIES
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import (
    Announce,
    Network,
    Policy,
    PolicyError,
    Probe,
    Step,
    Take,
)
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.view import POOL_NAMES, local_size, observation_names

Floats = npt.NDArray[np.float64]

HELD = POOL_NAMES.index("messages held")
FAINT = 0.3  # preference for a message of the next slower pool, by that for one of the faster pool
FALL = 0.5  # of the preference from one step of a chain to the next, and from its last to most others
MILD = 0.1  # the same, to steps that differ from the last in how many servers they ask
SHARP = 8.0  # slope of a hidden unit that tells whether there is a message; half a message is its middle


def rules(scenario: Scenario, hidden: tuple[int, ...], seed: int) -> Iterator[Policy]:
    """Yield the rules as networks with `hidden` units a layer.

    Raises:
        PolicyError: There is more than one hidden layer, or one too narrow to tell the pools apart.
    """
    if len(hidden) > 1 or (hidden and hidden[0] < len(scenario.pools)):
        raise PolicyError(
            f"hidden is {hidden}: it must be nothing, or one layer of {len(scenario.pools)} units or more"
        )
    catalog = default_catalog(scenario)
    for taking in (True, False):
        for action, step in enumerate(catalog):
            if not (isinstance(step, Take) and taking):
                name = f"rule: {'take, else ' if taking else ''}{words(step)}"
                layers = rule(scenario, hidden, seed, action, taking)
                yield Policy(name, catalog, Announce(), network=Network(layers))


def words(step: Step) -> str:
    """Return a step of the catalog in a few words."""
    pool = getattr(step, "pool", None)
    where = "by rate" if pool is None else f"pool {pool}"
    until = f" to a wait of {step.stop_at:.3g}" if isinstance(step, Probe) else ""
    return f"{step.kind} {where}{until}"


def rule(
    scenario: Scenario, hidden: tuple[int, ...], seed: int, action: int, taking: bool
) -> tuple[tuple[Floats, Floats], ...]:
    """Return the layers of one rule; those of its hidden units that it does not use are at random."""
    J, entries, actions = len(scenario.pools), local_size(scenario), len(default_catalog(scenario))
    biases = np.full(actions, -1.0)
    biases[action] = 0.0
    order = np.argsort([-pool.rate for pool in scenario.pools], kind="stable")
    held = POOL_ENTRIES * np.arange(J) + HELD  # 0: no message, 1/2: one
    wanted = np.zeros((actions, J))  # preferences by 1: there is a message, -1: there is none
    if taking:
        wanted[order, order] = FAINT ** np.arange(J)
        biases[:J] = 0.0
        biases[action] = 0.0
    if not hidden:
        weights = np.zeros((actions, entries))
        weights[:, held] = 4.0 * wanted
        return ((weights, biases - wanted.sum(axis=1)),)
    rng = np.random.default_rng(seed)
    first, middle = rng.normal(0, 1 / np.sqrt(entries), (hidden[0], entries)), np.zeros(hidden[0])
    first[:J] = 0.0
    first[np.arange(J), held], middle[:J] = SHARP, -SHARP / 4
    second = np.zeros((actions, hidden[0]))
    second[:, :J] = wanted
    return (first, middle), (second, biases)


def chain(policy: Policy, scenario: Scenario, hidden: tuple[int, ...], seed: int) -> Policy:
    """Return a network that does what a chain of steps does, and knows others beside them.

    Raises:
        PolicyError: There is more than one hidden layer.
    """
    if len(hidden) > 1:
        raise PolicyError(f"hidden is {hidden}: it must be nothing, or one layer")
    own = with_takes_by_pool(policy.steps, scenario)
    catalog = tuple(dict.fromkeys((*own, *steps_beside(own, scenario))))
    biases = np.full(len(catalog), -FALL)
    biases[: len(own)] = FALL * np.arange(len(own) - 1, -1, -1)
    biases[[step in with_other_counts(own[-1], scenario) for step in catalog]] = -MILD
    sizes = (local_size(scenario), *hidden, len(catalog))
    parts = [np.zeros((out, into)) for into, out in pairwise(sizes)]
    if hidden:
        parts[0] = np.random.default_rng(seed).normal(0, 1 / np.sqrt(sizes[0]), parts[0].shape)
    layers: Any = [(part, np.zeros(len(part))) for part in parts]
    layers[-1] = (layers[-1][0], biases)
    return replace(policy, steps=catalog, network=Network(tuple(layers), masked=True))


class Shape:
    """What of a network is searched: all numbers, but for weights of entries that never change.

    If names of entries are given, only those are weighed: fewer numbers are found sooner.

    Attributes:
        start: The policy that a vector of 0 stands for.
    """

    def __init__(self, start: Policy, scenario: Scenario, sees: tuple[str, ...] = ()) -> None:
        """Note which numbers may change on `scenario`.

        Raises:
            PolicyError: A name of `sees` is no entry's.
        """
        assert start.network is not None
        self.start = start
        moves = np.ones(local_size(scenario), bool)
        pools = moves[: len(scenario.pools) * POOL_ENTRIES].reshape(-1, POOL_ENTRIES)
        pools[:, :POOL_CONSTANTS] = False
        moves[-2:] = False  # the price of a message and the load
        if sees:
            moves &= seen(scenario, sees)
        self._free = [np.ones(part.shape, bool) for layer in start.network.layers for part in layer]
        self._free[0][:] = moves
        self._ends = np.cumsum([free.sum() for free in self._free])[:-1]

    @property
    def size(self) -> int:
        """How many numbers are searched."""
        return int(sum(free.sum() for free in self._free))

    def policy(self, vector: Floats) -> Policy:
        """Return the policy at `vector`, (size,), counted from the start."""
        network = self.start.network
        assert network is not None
        parts = [part.astype(np.float64) for layer in network.layers for part in layer]
        for part, free, added in zip(parts, self._free, np.split(vector, self._ends), strict=True):
            part[free] += added
        layers: Any = tuple(zip(parts[::2], parts[1::2], strict=True))
        return replace(self.start, network=replace(network, layers=layers))


def seen(scenario: Scenario, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return which entries of an observation have one of these names, of whatever pool, (L,).

    Raises:
        PolicyError: A name is no entry's.
    """
    known = [name.split(": ")[1] for name in observation_names(scenario)]
    for name in names:
        if name not in known:
            raise PolicyError(f"sees holds {name!r}: it must be one of {', '.join(dict.fromkeys(known))}")
    return np.array([name in names for name in known])
