"""A network as data: layers of numbers, which prefer some steps of a catalog to others."""

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
    """A network that a router follows: its outputs are preferences, one for each step of the policy.

    Two networks are equal if they have the same weights and are used in the same way.

    Attributes:
        layers: A layer each: weights, (outputs, inputs) float32, and biases, (outputs,) float32. The first
            takes an observation of `pull_env/Router-v0`, what the router itself knows; the last gives a
            preference for each step. They are copied, and cannot be written.
        activation: What stands between the layers: `tanh`, within 4e-7, or `relu`, max(x, 0).
        sampled: Whether a step is drawn, with odds exp(preference). False: the most preferred one is taken,
            the first of equals.
        masked: Whether a take without a message, and a recall of nothing, are ruled out.
        training_seed: The seed it was trained with, where that is known.

    Raises:
        PolicyError: The layers do not fit together, or a value is not allowed.
    """

    layers: tuple[tuple[Array, Array], ...]
    activation: Activation = "tanh"
    sampled: bool = False
    masked: bool = False
    training_seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _checked(self.layers))
        check.choice("network.activation", self.activation, get_args(Activation))
        check.flag("network.sampled", self.sampled)
        check.flag("network.masked", self.masked)
        seed = check.optional(check.whole, "network.training_seed", self.training_seed, 0)
        object.__setattr__(self, "training_seed", seed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The entries of an observation, then the outputs of every layer; the last are the steps."""
        return (self.layers[0][0].shape[1], *(biases.size for _, biases in self.layers))

    @property
    def digest(self) -> str:
        """The sha256 of the weights and biases, layer by layer, in hexadecimal."""
        digest = hashlib.sha256()
        for part in (part for layer in self.layers for part in layer):
            digest.update(str(part.shape).encode() + part.astype("<f4").tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return all but the weights, and their digest, as plain JSON values."""
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


def _checked(layers: Any) -> tuple[tuple[Array, Array], ...]:
    """Return layers whose numbers cannot be written, if they fit together."""
    if not isinstance(layers, Sequence) or isinstance(layers, str) or not layers:
        raise PolicyError("network.layers is empty: it must hold at least one pair of weights and biases")
    found: list[tuple[Array, Array]] = []
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
        if found and found[-1][1].size != weights.shape[1]:
            raise PolicyError(
                f"network.layers[{k}] takes {weights.shape[1]} inputs: "
                f"the layer before gives {found[-1][1].size}"
            )
        found.append((weights, biases))
    return tuple(found)


def _numbers(values: Any, where: str) -> Array:
    """Return a copy of `values` in float32 that cannot be written."""
    try:
        numbers = np.array(values, np.float32, order="C")
    except (TypeError, ValueError):
        raise PolicyError(f"{where} is not made of numbers") from None
    if not np.isfinite(numbers).all():
        raise PolicyError(f"{where} has a number that is not finite")
    numbers.setflags(write=False)
    return numbers


def read_network(content: Any, folder: Path) -> Network:
    """Return the network that a table in a policy's TOML declares.

    Args:
        content: `weights`, the name of a safetensors file, with `0.weight`, `0.bias`, `1.weight` and so on in
            float32; its `sha256` as `Network.digest` gives it, where it is to be checked; and the fields of
            `Network` but the layers.
        folder: Where that file lies. No code in it is run.

    Raises:
        PolicyError: The file is missing, holds something else or other weights, or a value is not allowed.
    """
    options = ("activation", "sampled", "masked", "training_seed")
    content = check.known_keys("network", content, ("weights", "sha256", *options))
    name = content.get("weights")
    if not isinstance(name, str) or not name or name != Path(name).name:
        raise PolicyError(f"network.weights is {name!r}: it must be the name of a file beside the policy's")
    given = {key: content[key] for key in options if key in content}
    made = Network(tuple(_read_layers(folder / name)), **given)
    if content.get("sha256", made.digest) != made.digest:
        raise PolicyError(
            f"network.sha256 is {content['sha256']!r}: the weights in {name!r} have {made.digest}"
        )
    return made


def _read_layers(path: Path) -> list[tuple[Array, Array]]:
    """Return the layers in a safetensors file."""
    from safetensors import SafetensorError, safe_open  # only where a network is read

    try:
        with safe_open(path, framework="numpy") as file:
            parts = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  it is no mapping
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
    """Write the weights of a network into a safetensors file, as `read_network` reads them."""
    from safetensors.numpy import save_file  # only where a network is written

    parts = {f"{k}.weight": weights for k, (weights, _) in enumerate(network.layers)}
    parts |= {f"{k}.bias": biases for k, (_, biases) in enumerate(network.layers)}
    save_file(parts, path)
