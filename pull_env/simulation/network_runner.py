"""What the kernels need to let a network decide: its numbers as they read them, and places to write to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.kernels.network import LAYER, NETWORK, choose_action, compute_preferences
from pull_env.policy.network import Network
from pull_env.simulation.kernel_data.state_arrays import Array, lines, whole_lanes


class CompiledNetwork:
    """A network laid out for the kernels. Threads need one each: it holds what a decision writes."""

    def __init__(self, network: Network) -> None:
        """Copy the layers of a network, and allocate."""
        self.network = network
        sizes = network.sizes
        self._layers: Array = np.zeros(len(network.layers), LAYER)
        self._record: Array = np.zeros(1, NETWORK)
        self._seen, self._chances = singles(whole_lanes(sizes[0])), np.zeros(sizes[-1])
        self._parts = [_laid_out(*layer) for layer in network.layers]
        self._record["depth"], self._record["entries"] = len(network.layers), sizes[0]
        self._record["actions"], self._record["relu"] = sizes[-1], network.activation == "relu"
        self._record["sampled"], self._record["masked"] = network.sampled, network.masked
        self._link()

    @property
    def address(self) -> int:
        """What the kernels know the network by."""
        return int(self._record.ctypes.data)

    def decide(self, system: int, view: int) -> int:
        """Return the action for what `view` shows of `system`, both as the kernels know them."""
        return choose_action(system, view, self.address)

    def preferences(self, observations: Any) -> npt.NDArray[np.float32]:
        """Return the preferences, (count, actions), for observations, (count, entries).

        Raises:
            ValueError: The observations have another length.
        """
        seen = np.ascontiguousarray(observations, np.float32)
        entries, actions = self.network.sizes[0], self.network.sizes[-1]
        if seen.ndim != 2 or seen.shape[1] != entries:
            raise ValueError(f"observations have the shape {seen.shape}: it must be (count, {entries})")
        told = np.zeros((len(seen), actions), np.float32)
        compute_preferences(self.address, int(seen.ctypes.data), len(seen), int(told.ctypes.data))
        return told

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    def _link(self) -> None:
        """Write the addresses of all arrays where the kernels read them."""
        for row, (weights, biases, values) in zip(self._layers, self._parts, strict=True):
            row["inputs"], row["outputs"] = weights.shape
            for name, part in (("weights", weights), ("biases", biases), ("values", values)):
                row[name] = part.ctypes.data
        for name, part in (("layers", self._layers), ("input", self._seen), ("odds", self._chances)):
            self._record[name] = part.ctypes.data


def singles(*shape: int) -> npt.NDArray[np.float32]:
    """Return float32 numbers of 0, the first of which begins a cache line."""
    return lines(4 * int(np.prod(shape))).view(np.float32).reshape(shape)


def _laid_out(weights: Array, biases: Array) -> tuple[Array, Array, Array]:
    """Return weights, (inputs, outputs), biases, and room for what the layer gives, of whole LANES each."""
    outputs, inputs = weights.shape
    across, added = singles(whole_lanes(inputs), whole_lanes(outputs)), singles(whole_lanes(outputs))
    across[:inputs, :outputs], added[:outputs] = weights.T, biases
    return across, added, singles(whole_lanes(outputs))
