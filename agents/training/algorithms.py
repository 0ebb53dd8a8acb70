"""The learners by name, and their models in the folder of a run.

The folder holds the configuration (config.json), the policy that learning started from (start.toml), the
router that was best in evaluation (best.zip, and policy.toml without code), the last one (final.zip), the
learning curve (curve.jsonl, tensorboard/), and scores (scores.jsonl).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from agents.training.action_set import ActionSet
from pull_env.reporting.run_folder import CONFIGURATION, replacing
from pull_env.scenario.scenario import Scenario
from pull_env.scenario.validation import check_argument

Algorithm = Literal["ppo", "maskable-ppo", "dqn", "qr-dqn"]
ACTOR_CRITIC: tuple[Algorithm, ...] = ("ppo", "maskable-ppo")

DISPATCH = "pull_env/Dispatch-v0"  # where a router has full information
MODEL, FINAL = "best.zip", "final.zip"
ACTOR_PREFIXES = ("mlp_extractor.policy_net.", "action_net.", "q_net", "quantile_net")  # of weights


def learner(algorithm: Algorithm) -> Any:
    """Return the class of a learner; imported here, as torch takes over a second."""
    import torch

    # No slower on an idle machine, many times faster on a busy one, and the same results.
    torch.set_num_threads(1)
    if algorithm == "ppo":
        from stable_baselines3 import PPO

        return PPO
    if algorithm == "maskable-ppo":
        from sb3_contrib import MaskablePPO

        return MaskablePPO
    if algorithm == "dqn":
        from stable_baselines3 import DQN

        return DQN
    from sb3_contrib import QRDQN

    return QRDQN


def actor_weights(model: Any) -> dict[str, Any]:
    """Return a copy of the weights by which a model chooses actions, by name."""
    weights = model.policy.state_dict()
    return {name: weights[name].detach().clone() for name in weights if name.startswith(ACTOR_PREFIXES)}


def router_model(
    algorithm: Algorithm,
    scenario: Scenario,
    layers: tuple[int, ...],
    seed: int,
    action_set: ActionSet | None = None,
) -> Any:
    """Return a model that sees what a router sees, to be given `actor_weights`.

    It is a plain model of Stable-Baselines3 with "MlpPolicy"; the weights of its critic, if it has one, are
    zero. The state of all random generators is kept.

    Args:
        algorithm: The learner that the weights come from.
        scenario: The system.
        layers: Sizes of the hidden layers.
        seed: Of sampled actions, once the model is loaded from a file.
        action_set: Its actions; None: the default ones.
    """
    import torch

    from pull_env.envs.adapters.stable_baselines3 import VecRouter

    small: dict[str, Any] = {"buffer_size": 1}
    layout: Any = list(layers)
    if algorithm in ACTOR_CRITIC:
        small, layout = {"n_steps": 2, "batch_size": 2}, {"pi": list(layers), "vf": []}
    state = np.random.get_state()  # noqa: NPY002  the generator of Stable-Baselines3
    with torch.random.fork_rng():
        envs = VecRouter(scenario, **(action_set.env_arguments() if action_set else {}))
        model = learner(algorithm)(
            "MlpPolicy", envs, policy_kwargs={"net_arch": layout}, device="cpu", **small
        )
    np.random.set_state(state)  # noqa: NPY002
    model.seed, model.exploration_rate = seed, 0.0  # a trained router does not explore
    if algorithm in ACTOR_CRITIC:
        for parameter in model.policy.value_net.parameters():
            torch.nn.init.zeros_(parameter)
    return model


def set_actor_weights(model: Any, weights: dict[str, Any]) -> Any:
    """Set `actor_weights` in a model made by `router_model`, and return the model."""
    model.policy.load_state_dict({**model.policy.state_dict(), **weights})
    return model


def save_model(model: Any, path: Path) -> None:
    """Write a model atomically."""
    with replacing(path) as (draft,):
        model.save(draft)


def load(path: Path) -> tuple[Any, dict[str, Any], Path]:
    """Return a trained router, its configuration and its folder.

    A model is a zip of Stable-Baselines3, which runs the code in it when loaded: load only what you trust.

    Args:
        path: The folder, for the best router; or a zip in it.

    Raises:
        ValueError: There is no trained router.
    """
    folder, model = (path.parent, path) if path.suffix == ".zip" else (path, path / MODEL)
    if not model.is_file() or not (folder / CONFIGURATION).is_file():
        raise check_argument.refusal("model", str(path), f"a folder with {MODEL} and {CONFIGURATION}")
    configuration = read_configuration(folder)
    try:
        return learner(configuration["algo"]).load(model, device="cpu"), configuration, folder
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"model is '{path}': it cannot be read: {error}") from None


def read_configuration(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run.

    Raises:
        ValueError: It cannot be read.
    """
    path = folder / CONFIGURATION
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    return content
