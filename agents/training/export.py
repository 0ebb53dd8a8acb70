"""Export a trained router as a policy without code, TOML and safetensors.

The simulator runs it at full speed, and so does the leaderboard: `--policy DIR/policy.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from agents.training.action_set import ActionSet
from agents.training.algorithms import load
from pull_env.policy.policy import Network, Policy, save_policy
from pull_env.reporting.run_folder import POLICY
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.kernel_data.view import local_size

TIE = 1e-5  # preferences that differ by less count as equal: sums are taken in another order


@dataclass(frozen=True)
class Args:
    """What to export, and where to."""

    model: Annotated[Path, tyro.conf.Positional]
    """The folder of a trained router, or a model in it. Loading it runs code in it: trust it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A folder without an exported router; by default `exported` within the folder of the model."""
    sampled: bool = False
    """Sample actions with the router's probabilities, instead of taking the best one."""
    name: str | None = None
    """The policy's name in tables; by default its learner and how it chooses."""


def run(args: Args) -> int:
    """Export what `args` name, and return the exit status.

    Raises:
        ValueError: There is no router, it cannot be exported, or the folder holds one already.
    """
    file = export(args.model, args.out, sampled=args.sampled, name=args.name)
    print(f"exported to {file} and {file.with_suffix('.safetensors').name}")
    print(f"score it: python -m agents score {file} --scenario NAME")
    return 0


def export(path: Path, out: Path | None = None, *, sampled: bool = False, name: str | None = None) -> Path:
    """Write the policy of the router in `path`, and return its file.

    Raises:
        ValueError: There is no router, it cannot be exported, or the folder holds one already.
    """
    model, configuration, folder = load(path)
    scenario = load_scenario(configuration["scenario"])
    policy = policy_of(model, configuration, scenario, sampled=sampled)
    if policy is None:
        raise ValueError(f"sampled is True: {configuration['algo']} has no odds, it takes the best action")
    if policy.network is not None and policy.network.sizes[0] != local_size(scenario):
        raise ValueError(f"the model sees more than a router of {scenario.name} knows: it cannot be exported")
    file = (out or folder / "exported") / POLICY
    file.parent.mkdir(parents=True, exist_ok=True)
    save_policy(replace(policy, name=name or policy.name), file)
    return file


def is_exported(path: Path) -> bool:
    """Return whether `path` is an exported router, rather than a trained model."""
    if path.is_dir():
        return (path / POLICY).is_file() and not any(path.glob("*.zip"))
    return path.suffix == ".toml"


def policy_of(
    model: Any, configuration: dict[str, Any], scenario: Scenario, *, sampled: bool = False
) -> Policy | None:
    """Return the policy of a Stable-Baselines3 model; None if it is not `sampled`.

    Args:
        model: PPO, A2C, MaskablePPO, DQN or QR-DQN with "MlpPolicy".
        configuration: That of the training run.
        scenario: The system; its default catalog is used if the configuration has no action set.
        sampled: Whether actions are sampled.

    Raises:
        ValueError: Its network is not linear layers with tanh or relu, or it decides otherwise.
    """
    layers, activation = layers_of(model)
    action_set = ActionSet.from_configuration(configuration, scenario)
    actions = layers[-1][1].size
    if actions != len(action_set.steps):
        raise ValueError(
            f"the model chooses from {actions} steps: on {scenario.name} there are {len(action_set.steps)}; "
            "it fits scenarios with as many pools as it was trained on"
        )
    if sampled and not hasattr(model.policy, "action_net"):
        return None
    network = Network(
        layers,
        activation,
        sampled=sampled,
        masked=type(model).__name__.startswith("Maskable"),
        training_seed=configuration.get("seed"),
    )
    check_decisions(model, network)
    name = f"{configuration['algo']} ({'sampled' if sampled else 'best action'})"
    return Policy(name, action_set.steps, action_set.announce, action_set.memory, network)


def layers_of(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the layers that choose actions, and the activation between them.

    Raises:
        ValueError: They are something else than linear layers and tanh or relu.
    """
    from torch import nn

    policy = model.policy
    if hasattr(policy, "action_net"):
        parts = [*policy.mlp_extractor.policy_net, policy.action_net]
    elif hasattr(policy, "quantile_net"):
        parts = [*policy.quantile_net.quantile_net]
    elif hasattr(policy, "q_net"):
        parts = [*policy.q_net.q_net]
    else:
        raise ValueError(f"model is a {type(model).__name__}: known are PPO, A2C, MaskablePPO, DQN, QR-DQN")
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    activations = {type(part).__name__.lower() for part in parts if not isinstance(part, nn.Linear)}
    alternate = len(parts) == 2 * len(linear) - 1
    if len(activations) > 1 or not activations <= {"tanh", "relu"} or not alternate:
        raise ValueError(
            f"the model's network is {parts}: it must be linear layers with tanh or relu between"
        )
    layers = [tuple(p.detach().cpu().numpy() for p in (each.weight, each.bias)) for each in linear]
    if hasattr(policy, "quantile_net"):  # the value of an action is the mean of its quantiles
        count = policy.quantile_net.n_quantiles
        layers[-1] = tuple(part.reshape(count, -1, *part.shape[1:]).mean(axis=0) for part in layers[-1])
    return tuple(layers), next(iter(activations), "tanh")


def check_decisions(model: Any, network: Network, count: int = 1000) -> None:
    """Check that network and model decide alike, ties aside, on random observations.

    Raises:
        ValueError: They do not, for example because the model transforms its observations.
    """
    observations = np.random.default_rng(0).random((count, *model.observation_space.shape), np.float32)
    actions, _ = model.predict(observations, deterministic=True)
    preferences = CompiledNetwork(network).preferences(observations[:, : network.sizes[0]])
    gaps = preferences.max(axis=1) - preferences[np.arange(count), actions]
    if not (gaps < TIE * np.maximum(1.0, np.abs(preferences).max(axis=1))).all():
        raise ValueError("the model decides otherwise than its layers do: it cannot be exported")
