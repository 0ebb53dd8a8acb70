"""A policy's network as the kernels read it, and the arrays a decision writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.network import LAYER, NETWORK, choose_action, compute_preferences
from pull_env.policy.network import Network
from pull_env.simulation.kernel_data.linked_record import Array, LinkedRecord
from pull_env.simulation.kernel_data.state_arrays import lines, whole_lanes

Singles = npt.NDArray[np.float32]


class Layer(LinkedRecord):
    """A layer of a network, padded with zeros to whole LANES."""

    linked = ("weights", "biases", "values")

    def __init__(self, weights: Array, biases: Array) -> None:
        """Copy `weights`, (outputs, inputs), and `biases`, (outputs,)."""
        outputs, inputs = weights.shape
        self.weights = singles(whole_lanes(inputs), whole_lanes(outputs))
        self.biases, self.values = singles(whole_lanes(outputs)), singles(whole_lanes(outputs))
        self.weights[:inputs, :outputs], self.biases[:outputs] = weights.T, biases
        self.record = np.zeros(1, LAYER)
        self.record["inputs"], self.record["outputs"] = self.weights.shape
        self.link()


class CompiledNetwork(LinkedRecord):
    """A network laid out for the kernels; one per thread, as a decision writes to it."""

    linked = ("layers", "input", "odds")

    def __init__(self, network: Network) -> None:
        """Copy the layers of a network, and allocate."""
        self.network, sizes = network, network.sizes
        self.input, self.odds = singles(whole_lanes(sizes[0])), np.zeros(sizes[-1])
        self._layers = [Layer(*layer) for layer in network.layers]
        self.record = np.zeros(1, NETWORK)
        self.record["depth"], self.record["entries"] = len(network.layers), sizes[0]
        self.record["actions"], self.record["relu"] = sizes[-1], network.activation == "relu"
        self.record["sampled"], self.record["masked"] = network.sampled, network.masked
        self.link()

    def link(self) -> None:
        """Write all addresses into the record, and copy the layers' records."""
        self.layers: Array = np.concatenate([layer.record for layer in self._layers])
        super().link()

    def decide(self, system: int, view: int) -> int:
        """Return the action for the VIEW record at `view` of `system`, a handle."""
        return choose_action(system, view, self.address)

    def preferences(self, observations: Any) -> Singles:
        """Return the preferences, (count, actions), for observations, (count, entries).

        Raises:
            ValueError: The observations have another length.
        """
        inputs = np.ascontiguousarray(observations, np.float32)
        entries, actions = self.network.sizes[0], self.network.sizes[-1]
        if inputs.ndim != 2 or inputs.shape[1] != entries:
            raise ValueError(f"observations have the shape {inputs.shape}: it must be (count, {entries})")
        preferences = np.zeros((len(inputs), actions), np.float32)
        compute_preferences(self.address, int(inputs.ctypes.data), len(inputs), int(preferences.ctypes.data))
        return preferences


def singles(*shape: int) -> Singles:
    """Return float32 zeros, the first of which begins a cache line."""
    return lines(4 * int(np.prod(shape))).view(np.float32).reshape(shape)
