"""Export a trained router as a policy without code, TOML and safetensors.

The simulator plays it at full speed, and the leaderboard takes it: `--policy DIR/policy.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from agents.training.action_set import Offer
from agents.training.algorithms import load
from pull_env.policy.policy import Network, Policy, save_policy
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.kernel_data.view import local_size
from pull_env.simulation.network_runner import CompiledNetwork

POLICY = "policy.toml"
TIE = 1e-5  # preferences that differ by less are as good as equal: sums are taken in another order


@dataclass(frozen=True)
class Args:
    """What to export, and where to."""

    model: Annotated[Path, tyro.conf.Positional]
    """The folder of a trained router, or the model in it. Loading it runs code it holds: trust it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A folder without an exported router; by default `exported` within the folder of the model."""
    sampled: bool = False
    """Draw actions, with the odds that the router gives them; else it takes the best."""
    name: str | None = None
    """What tables call it; if not given, its learner and how it acts."""


def exported(path: Path) -> bool:
    """Return whether `path` is an exported router, or a folder with one and no trained model."""
    if path.is_dir():
        return (path / POLICY).is_file() and not any(path.glob("*.zip"))
    return path.suffix == ".toml"


def policy_of(
    model: Any, configuration: dict[str, Any], scenario: Scenario, *, sampled: bool = False
) -> Policy | None:
    """Return the policy that a model of Stable-Baselines3 follows; None if it cannot be `sampled`.

    Args:
        model: PPO, A2C, MaskablePPO, DQN or QR-DQN with "MlpPolicy".
        configuration: What it was trained with.
        scenario: Whose default catalog its actions are, if it was offered nothing else.
        sampled: Whether it draws its actions.

    Raises:
        ValueError: Its network is no chain of linear layers and tanh or relu, or decides otherwise.
    """
    layers, activation = layers_of(model)
    offer, actions = Offer.of(configuration, scenario), layers[-1][1].size
    if actions != len(offer.steps):
        raise ValueError(
            f"the model chooses from {actions} steps: on {scenario.name} there are {len(offer.steps)}; "
            "it fits scenarios with as many pools as it was trained on"
        )
    if sampled and not hasattr(model.policy, "action_net"):
        return None
    how = "sampled" if sampled else "best action"
    network = Network(
        layers,
        activation,
        sampled=sampled,
        masked=type(model).__name__.startswith("Maskable"),
        training_seed=configuration.get("seed"),
    )
    check_decisions(model, network)
    name = f"{configuration['algo']} ({how})"
    return Policy(name, offer.steps, offer.announce, offer.memory, network)


def layers_of(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the layers by which a model chooses actions, and the activation between them.

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
    bends = {type(part).__name__.lower() for part in parts if not isinstance(part, nn.Linear)}
    if len(bends) > 1 or not bends <= {"tanh", "relu"} or len(parts) != 2 * len(linear) - 1:
        raise ValueError(
            f"the model's network is {parts}: it must be linear layers with tanh or relu between"
        )
    layers = [tuple(p.detach().cpu().numpy() for p in (each.weight, each.bias)) for each in linear]
    if hasattr(policy, "quantile_net"):  # an action is worth the mean of its quantiles
        count = policy.quantile_net.n_quantiles
        layers[-1] = tuple(part.reshape(count, -1, *part.shape[1:]).mean(axis=0) for part in layers[-1])
    return tuple(layers), next(iter(bends), "tanh")


def check_decisions(model: Any, network: Network, count: int = 1000) -> None:
    """Make sure that the network decides as the model does, ties aside, on observations at random.

    Raises:
        ValueError: It does not, as when the model alters what it sees.
    """
    seen = np.random.default_rng(0).random((count, *model.observation_space.shape), np.float32)
    actions, _ = model.predict(seen, deterministic=True)
    preferred = CompiledNetwork(network).preferences(seen[:, : network.sizes[0]])
    missed = preferred.max(axis=1) - preferred[np.arange(count), actions]
    if not (missed < TIE * np.maximum(1.0, np.abs(preferred).max(axis=1))).all():
        raise ValueError("the model decides otherwise than its layers do: it cannot be exported")


def export(path: Path, out: Path | None = None, *, sampled: bool = False, name: str | None = None) -> Path:
    """Write the policy that the router in `path` follows, and return its file.

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


def run(args: Args) -> int:
    """Export what `args` name, and return the exit status.

    Raises:
        ValueError: There is no router, it cannot be exported, or the folder holds one already.
    """
    file = export(args.model, args.out, sampled=args.sampled, name=args.name)
    print(f"exported to {file} and {file.with_suffix('.safetensors').name}")
    print(f"score it: python -m agents score {file} --scenario NAME")
    return 0
