"""The learners by name, and the folder in which a trained router lies: model, configuration, scores."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

Algorithm = Literal["ppo", "maskable-ppo"]

MODEL, CONFIGURATION = "model.zip", "config.json"


def learner(algorithm: Algorithm) -> Any:
    """Return the class of a learner; it is imported here, as torch takes over a second."""
    import torch

    # No slower on an idle machine, many times faster on a busy one, and the same results.
    torch.set_num_threads(1)
    if algorithm == "maskable-ppo":
        from sb3_contrib import MaskablePPO

        return MaskablePPO
    from stable_baselines3 import PPO

    return PPO


def save(model: Any, configuration: dict[str, Any], folder: Path) -> None:
    """Write a trained model and what it was trained with into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL)
    text = json.dumps(configuration, indent=2, sort_keys=True)
    (folder / CONFIGURATION).write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> tuple[Any, dict[str, Any], Path]:
    """Return a trained model, its configuration and its folder.

    A model is a zip of Stable-Baselines3, whose loading runs code it holds: load only what you trust.

    Args:
        path: The folder, or the model in it.

    Raises:
        ValueError: There is no trained router.
    """
    folder = path.parent if path.name == MODEL else path
    for name in (MODEL, CONFIGURATION):
        if not (folder / name).is_file():
            raise ValueError(f"model is '{path}': it must be a folder with {MODEL} and {CONFIGURATION}")
    try:
        configuration = json.loads((folder / CONFIGURATION).read_text(encoding="utf-8"))
        model = learner(configuration["algo"]).load(folder / MODEL, device="cpu")
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"model is '{path}': it cannot be read: {error}") from None
    return model, configuration, folder


def weights_digest(model: Any) -> str:
    """Return the sha256 of a model's weights, in order of their names."""
    digest = hashlib.sha256()
    for name, value in sorted(model.policy.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()
