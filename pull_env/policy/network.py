"""Networks as data: layers that compute preferences for the steps of a catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pull_env.policy.steps import PolicyError
from pull_env.policy.steps import check_policy as check

Array = npt.NDArray[np.float32]
Activation = Literal["tanh", "relu"]

WIDEST = 65_536  # inputs or outputs of a layer


@dataclass(frozen=True, eq=False)
class Network:
    """A network that a router follows; its outputs are preferences of the steps.

    Two networks are equal if their weights and options are.

    Attributes:
        layers: Pairs of weights, (outputs, inputs) float32, and biases, (outputs,) float32. The first layer
            takes a local observation of `pull_env/Router-v0`; the last gives a preference for each step.
            Stored as read-only copies.
        activation: Between the layers: `tanh`, within 4e-7, or `relu`, max(x, 0).
        sampled: Whether a step is drawn with odds exp(preference). False: the most preferred step, ties go to
            the first.
        masked: Whether a take without a message, and a recall of nothing, are excluded.
        training_seed: The seed it was trained with, if known.

    Raises:
        PolicyError: The layers do not fit together, or a value is not allowed.
    """

    layers: tuple[tuple[Array, Array], ...]
    activation: Activation = "tanh"
    sampled: bool = False
    masked: bool = False
    training_seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _check_layers(self.layers))
        check.choice("network.activation", self.activation, get_args(Activation))
        check.flag("network.sampled", self.sampled)
        check.flag("network.masked", self.masked)
        seed = check.optional(check.whole, "network.training_seed", self.training_seed, 0)
        object.__setattr__(self, "training_seed", seed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of observation entries, then of the outputs of every layer."""
        return (self.layers[0][0].shape[1], *(biases.size for _, biases in self.layers))

    @property
    def digest(self) -> str:
        """SHA-256 of the weights and biases, layer by layer, in hexadecimal."""
        digest = hashlib.sha256()
        for part in (part for layer in self.layers for part in layer):
            digest.update(str(part.shape).encode() + part.astype("<f4").tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the options and the digest of the weights as plain JSON values."""
        return {
            "activation": self.activation,
            "sampled": self.sampled,
            "masked": self.masked,
            "training_seed": self.training_seed,
            "sizes": list(self.sizes),
            "sha256": self.digest,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)


def _check_layers(layers: Any) -> tuple[tuple[Array, Array], ...]:
    """Return read-only copies of the layers if they fit together."""
    if not isinstance(layers, Sequence) or isinstance(layers, str) or not layers:
        raise PolicyError("network.layers is empty: it must hold at least one pair of weights and biases")
    checked: list[tuple[Array, Array]] = []
    for k, layer in enumerate(layers):
        if not isinstance(layer, Sequence) or len(layer) != 2:
            raise PolicyError(f"network.layers[{k}] is no pair of weights and biases")
        weights, biases = (_numbers(part, f"network.layers[{k}]") for part in layer)
        shapes = f"weights {weights.shape} and biases {biases.shape}"
        if weights.ndim != 2 or biases.shape != weights.shape[:1]:
            raise PolicyError(
                f"network.layers[{k}] has {shapes}: they must be (outputs, inputs) and (outputs,)"
            )
        if not all(1 <= size <= WIDEST for size in weights.shape):
            raise PolicyError(f"network.layers[{k}] has {shapes}: sizes must be from 1 to {WIDEST}")
        if checked and checked[-1][1].size != weights.shape[1]:
            raise PolicyError(
                f"network.layers[{k}] takes {weights.shape[1]} inputs: "
                f"the layer before gives {checked[-1][1].size}"
            )
        checked.append((weights, biases))
    return tuple(checked)


def _numbers(values: Any, where: str) -> Array:
    """Return a read-only copy of `values` in float32."""
    try:
        numbers = np.array(values, np.float32, order="C")
    except (TypeError, ValueError):
        raise PolicyError(f"{where} is not made of numbers") from None
    if not np.isfinite(numbers).all():
        raise PolicyError(f"{where} has a number that is not finite")
    numbers.setflags(write=False)
    return numbers


def read_network(content: Any, folder: Path) -> Network:
    """Return the network that a table in a policy's TOML describes.

    Args:
        content: `weights`, the name of a safetensors file that holds `0.weight`, `0.bias`, `1.weight` and so
            on in float32; optionally its `sha256`, as `Network.digest` gives it; and the fields of `Network`
            except the layers.
        folder: Folder of that file. No code is run.

    Raises:
        PolicyError: The file is missing, or holds something else or other weights; or a value is not allowed.
    """
    options = ("activation", "sampled", "masked", "training_seed")
    content = check.known_keys("network", content, ("weights", "sha256", *options))
    name = content.get("weights")
    if not isinstance(name, str) or not name or name != Path(name).name:
        raise check.refusal("network.weights", name, "the name of a file beside the policy's")
    values = {key: content[key] for key in options if key in content}
    network = Network(tuple(_read_layers(folder / name)), **values)
    if content.get("sha256", network.digest) != network.digest:
        raise PolicyError(
            f"network.sha256 is {content['sha256']!r}: the weights in {name!r} have {network.digest}"
        )
    return network


def _read_layers(path: Path) -> list[tuple[Array, Array]]:
    """Return the layers in a safetensors file."""
    from safetensors import SafetensorError, safe_open  # only where a network is read

    try:
        with safe_open(path, framework="numpy") as file:
            parts = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  not a mapping
    except (OSError, SafetensorError, TypeError) as error:  # TypeError: numbers that numpy does not have
        raise PolicyError(
            f"network.weights is {path.name!r}: it cannot be read as safetensors: {error}"
        ) from None
    depth = len(parts) // 2
    names = [(f"{k}.weight", f"{k}.bias") for k in range(depth)]
    if not depth or set(parts) != {name for pair in names for name in pair}:
        raise PolicyError(
            f"network.weights is {path.name!r}: it must hold 0.weight, 0.bias and so on, "
            f"not {', '.join(parts) or 'nothing'}"
        )
    for key, part in parts.items():
        if part.dtype != np.float32:
            raise PolicyError(f"network.weights is {path.name!r}: {key} is {part.dtype}: it must be float32")
    return [(parts[weight], parts[bias]) for weight, bias in names]


def write_layers(network: Network, path: Path) -> None:
    """Write the weights of a network to a safetensors file for `read_network`."""
    from safetensors.numpy import save_file  # only where a network is written

    parts = {f"{k}.weight": weights for k, (weights, _) in enumerate(network.layers)}
    parts |= {f"{k}.bias": biases for k, (_, biases) in enumerate(network.layers)}
    save_file(parts, path)
