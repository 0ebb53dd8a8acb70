"""Networks that a search starts from: simple rules, or a chain of steps.

The rules are `take a message of the fastest pool that has one, else do X`, and `do X`, for every X of the
catalog. A network of one layer can express them, and so can one with a hidden layer, whose first units then
show which pools have a message. A chain of steps is a network whose preferences fall from step to step and
in which steps that are not real are masked; further steps beside those of the chain have lower preferences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.training.action_set import steps_beside, with_other_counts, with_takes_by_pool
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import Announce, Network, Policy, Probe, Step, Take
from pull_env.policy.steps import check_policy
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.view import local_size, observation_names, pool_entries

Floats = npt.NDArray[np.float64]

CONSTANT_ENTRIES = ("size share", "relative rate", "buffer", "message price", "load")  # of an observation
NEXT_SLOWER = 0.3  # preference for a message of the next slower pool, relative to that of the faster pool
NEXT_STEP = 0.5  # decrease of the preference from a step of a chain to the next, and from the last to others
OTHER_COUNT = 0.1  # the same, from the last step to the same step with another number of servers
SLOPE = 8.0  # of a hidden unit that shows whether there is a message; it is 0 at half a message


def rule_networks(scenario: Scenario, hidden: tuple[int, ...], seed: int) -> Iterator[Policy]:
    """Yield the rules as networks with `hidden` units per hidden layer.

    Raises:
        PolicyError: There is more than one hidden layer, or it is too narrow to tell the pools apart.
    """
    if len(hidden) > 1 or (hidden and hidden[0] < len(scenario.pools)):
        allowed = f"nothing, or one layer of {len(scenario.pools)} units or more"
        raise check_policy.refusal("hidden", hidden, allowed)
    catalog = default_catalog(scenario)
    for take_first in (True, False):
        for action, step in enumerate(catalog):
            if not (isinstance(step, Take) and take_first):
                name = f"rule: {'take, else ' if take_first else ''}{step_label(step)}"
                layers: Any = rule_layers(scenario, hidden, seed, action, take_first)
                yield Policy(name, catalog, Announce(), network=Network(layers))


def step_label(step: Step) -> str:
    """Return a step of the catalog in a few words."""
    pool = getattr(step, "pool", None)
    where = "by rate" if pool is None else f"pool {pool}"
    until = f" to a wait of {step.stop_at:.3g}" if isinstance(step, Probe) else ""
    return f"{step.kind} {where}{until}"


def rule_layers(
    scenario: Scenario, hidden: tuple[int, ...], seed: int, action: int, take_first: bool
) -> tuple[tuple[Floats, Floats], ...]:
    """Return the layers of one rule; hidden units that it does not use are random."""
    actions, entries, J = len(default_catalog(scenario)), local_size(scenario), len(scenario.pools)
    biases = np.full(actions, -1.0)
    biases[action] = 0.0
    order = np.argsort([-pool.rate for pool in scenario.pools], kind="stable")
    held = pool_entries(scenario, "messages held")  # 0 for none, 1/2 for one
    take_weights = np.zeros((actions, J))  # of the preferences, by 1 for a message and -1 for none
    if take_first:
        take_weights[order, order] = NEXT_SLOWER ** np.arange(J)
        biases[:J] = 0.0
        biases[action] = 0.0
    if not hidden:
        weights = np.zeros((actions, entries))
        weights[:, held] = 4.0 * take_weights
        return ((weights, biases - take_weights.sum(axis=1)),)
    rng = np.random.default_rng(seed)
    first, first_biases = rng.normal(0, 1 / np.sqrt(entries), (hidden[0], entries)), np.zeros(hidden[0])
    first[:J] = 0.0
    first[np.arange(J), held], first_biases[:J] = SLOPE, -SLOPE / 4
    second = np.zeros((actions, hidden[0]))
    second[:, :J] = take_weights
    return (first, first_biases), (second, biases)


def chain_network(policy: Policy, scenario: Scenario, hidden: tuple[int, ...], seed: int) -> Policy:
    """Return a network that acts as a chain of steps, with further steps to choose.

    Raises:
        PolicyError: There is more than one hidden layer.
    """
    if len(hidden) > 1:
        raise check_policy.refusal("hidden", hidden, "nothing, or one layer")
    own = with_takes_by_pool(policy.steps, scenario)
    catalog = tuple(dict.fromkeys((*own, *steps_beside(own, scenario))))
    biases = np.full(len(catalog), -NEXT_STEP)
    biases[: len(own)] = NEXT_STEP * np.arange(len(own) - 1, -1, -1)
    biases[[step in with_other_counts(own[-1], scenario) for step in catalog]] = -OTHER_COUNT
    sizes = (local_size(scenario), *hidden, len(catalog))
    weights = [np.zeros((outputs, inputs)) for inputs, outputs in pairwise(sizes)]
    if hidden:
        weights[0] = np.random.default_rng(seed).normal(0, 1 / np.sqrt(sizes[0]), weights[0].shape)
    layers: Any = [(part, np.zeros(len(part))) for part in weights]
    layers[-1] = (layers[-1][0], biases)
    return replace(policy, steps=catalog, network=Network(tuple(layers), masked=True))


class SearchSpace:
    """The numbers of a network that are searched.

    These are all except the weights of constant entries; if names of entries are given, weights of these
    alone: fewer numbers are found sooner.

    Attributes:
        start: The policy at the vector 0.
    """

    def __init__(self, start: Policy, scenario: Scenario, sees: tuple[str, ...] = ()) -> None:
        """Select the numbers that are searched on `scenario`.

        Raises:
            PolicyError: A name in `sees` is not one of an entry.
        """
        assert start.network is not None
        self.start = start
        searched = ~entry_mask(scenario, CONSTANT_ENTRIES)
        if sees:
            searched &= entry_mask(scenario, sees)
        self._free = [np.ones(part.shape, bool) for layer in start.network.layers for part in layer]
        self._free[0][:] = searched
        self._ends = np.cumsum([free.sum() for free in self._free])[:-1]

    @property
    def size(self) -> int:
        """How many numbers are searched."""
        return int(sum(free.sum() for free in self._free))

    def policy(self, vector: Floats) -> Policy:
        """Return the policy at `vector`, (size,), which is added to the start."""
        network = self.start.network
        assert network is not None
        parts = [part.astype(np.float64) for layer in network.layers for part in layer]
        for part, free, added in zip(parts, self._free, np.split(vector, self._ends), strict=True):
            part[free] += added
        layers: Any = tuple(zip(parts[::2], parts[1::2], strict=True))
        return replace(self.start, network=replace(network, layers=layers))


def entry_mask(scenario: Scenario, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return which entries of an observation have these names, in any pool, (L,).

    Raises:
        PolicyError: A name is not one of an entry.
    """
    known = [name.split(": ")[1] for name in observation_names(scenario)]
    for name in names:
        check_policy.choice("sees", name, dict.fromkeys(known))
    return np.array([name in names for name in known])
