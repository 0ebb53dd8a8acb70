"""Checkpoints: everything that a run needs to continue bit-identically.

That is the learner with its optimiser, the environments in mid-episode, the scale of rewards, the replay
buffer if there is one, the state of every random generator, and the state of the evaluations.
A checkpoint is read by pickle, which runs the code in it: resume only what you trust.
"""

from __future__ import annotations

import gzip
import io
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.training.algorithms import Algorithm, learner
from pull_env.reporting.run_folder import replacing

CHECKPOINT = "checkpoint.pkl.gz"


def save(model: Any, evaluations: dict[str, Any], folder: Path) -> None:
    """Write a checkpoint into `folder` atomically.

    Args:
        model: A learner whose env is a `VecNormalize` of a `VecRouter`.
        evaluations: The state of its `EvaluationCallback`.
        folder: The folder of the run.
    """
    archive = io.BytesIO()
    model.save(archive)
    state = {
        "model": archive.getvalue(),
        "envs": model.env.venv,
        "scale": model.env,  # `VecNormalize` pickles neither its envs nor its returns
        "returns": model.env.returns,
        "replay": getattr(model, "replay_buffer", None),
        "actions": model.action_space,  # with the generator of random actions
        "random": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002  the generator of Stable-Baselines3
        "torch": torch.get_rng_state(),
        "evaluations": evaluations,
    }
    with replacing(folder / CHECKPOINT) as (draft,), gzip.open(draft, "wb", compresslevel=1) as file:
        pickle.dump(state, file, protocol=5)  # level 1, as most of it is zeros


def restore(algorithm: Algorithm, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the learner in a checkpoint, with its envs, and `evaluations`.

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
    return model, state["evaluations"]
