"""Checkpoints: all that a run needs to go on as if it had never stopped, to the bit.

That is the learner with its optimiser, the environments in mid-episode, the scale of rewards, kept customers
of a learner that keeps them, the state of every random generator, and where the learning curve stands.
A checkpoint is read by pickle, which runs code it holds: resume only what you trust.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.training.algorithms import Algorithm, learner

CHECKPOINT = "checkpoint.pkl.gz"


def save(model: Any, curve: dict[str, Any], folder: Path) -> None:
    """Write a checkpoint into `folder`; the one before it stays until the new one is whole.

    Args:
        model: A learner whose env is a `VecNormalize` of a `VecRouter`.
        curve: The state of its learning curve.
        folder: The folder of the run.
    """
    whole = io.BytesIO()
    model.save(whole)
    state = {
        "model": whole.getvalue(),
        "envs": model.env.venv,
        "scale": model.env,  # without the envs and the returns: so `VecNormalize` is pickled
        "returns": model.env.returns,
        "replay": getattr(model, "replay_buffer", None),
        "actions": model.action_space,  # with the generator of random actions
        "random": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002  the generator of Stable-Baselines3
        "torch": torch.get_rng_state(),
        "curve": curve,
    }
    part = folder / f"part-{CHECKPOINT}"
    with gzip.open(part, "wb", compresslevel=1) as file:  # most of it is zeros
        pickle.dump(state, file, protocol=5)
    os.replace(part, folder / CHECKPOINT)


def restore(algorithm: Algorithm, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the learner in a checkpoint, with its environments, and the state of its learning curve.

    Raises:
        ValueError: There is no checkpoint, or it cannot be read.
    """
    path = folder / CHECKPOINT
    try:
        state = pickle.loads(gzip.decompress(path.read_bytes()))
    except OSError as error:
        raise ValueError(f"checkpoint '{path}' cannot be read: {error.strerror or error}") from None
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError) as error:
        raise ValueError(f"checkpoint '{path}' cannot be read: {error}") from None
    env = state["scale"]
    env.set_venv(state["envs"])
    env.returns = state["returns"]
    model = learner(algorithm).load(io.BytesIO(state["model"]), env=env, device="cpu", force_reset=False)
    if state["replay"] is not None:
        model.replay_buffer = state["replay"]
    model.action_space = state["actions"]
    random.setstate(state["random"])  # last, as the learner seeds itself when it is loaded
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    return model, state["curve"]
