"""Hyperparameters: a file per family of learners, with sections by scenario."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from agents.training.algorithms import ACTOR_CRITIC, Algorithm
from pull_env.scenario.validation import check_argument, one_of

FOLDER = Path(__file__).parents[1] / "hyperparams"
DEFAULT = "default"


@dataclass(frozen=True)
class Hyperparameters:
    """What to learn with; what is not given comes from the file of the learner."""

    steps: int | None = None
    """Customers to learn from, over all environments."""
    envs: int | None = None
    """Parallel environments."""
    episode_customers: int | None = None
    """Customers per episode."""
    observation: Literal["with-state", "router"] | None = None
    """What the critic sees: with-state, the state of the system; router, what the router sees."""
    layers: tuple[int, ...] | None = None
    """Sizes of the hidden layers, of actor and critic each."""
    start: str | None = None
    """Policy to imitate first: a baseline's name, tuned, the path of a TOML file, or none."""
    action_set: Literal["default", "start"] | None = None
    """Actions: default, the catalog of Router-v0; start, also the steps of the policy to imitate and others
    beside them, with its pull protocol and its memory."""
    start_customers: int | None = None
    """Customers of that policy from which the network learns to imitate it."""
    start_noise: float | None = None
    """Share of its choices that are replaced by random ones, so that others are tried as well."""
    learning_rate: float | None = None
    """Learning rate of Adam at the start."""
    final_rate: float | None = None
    """Learning rate at the end, as a share of that at the start; it falls linearly."""
    average: float | None = None
    """Share of the old average of the weights that an update keeps."""
    gamma: float | None = None
    """Discount per customer."""
    batch_size: int | None = None
    """Customers per gradient step."""
    n_steps: int | None = None
    """Customers of each environment between two updates (PPO)."""
    n_epochs: int | None = None
    """Passes over them (PPO)."""
    gae_lambda: float | None = None
    """Weight of later customers in an advantage (PPO)."""
    clip_range: float | None = None
    """Largest relative change of an action's probability by an update (PPO)."""
    ent_coef: float | None = None
    """Weight of the entropy of the policy at the start (PPO)."""
    final_entropy: float | None = None
    """Weight of the entropy at the end, as a share of that at the start (PPO)."""
    vf_coef: float | None = None
    """Weight of the critic's error (PPO)."""
    target_kl: float | None = None
    """Divergence from the policy before an update at which the update ends (PPO)."""
    buffer_size: int | None = None
    """Customers in the replay buffer (DQN)."""
    learning_starts: int | None = None
    """Customers before the first gradient step (DQN)."""
    train_freq: int | None = None
    """Customers of each environment between two updates (DQN)."""
    gradient_steps: int | None = None
    """Gradient steps per update (DQN)."""
    target_update_interval: int | None = None
    """Customers between two updates of the target network (DQN)."""
    exploration_fraction: float | None = None
    """Share of the run over which the share of random actions falls (DQN)."""
    exploration_final_eps: float | None = None
    """Share of random actions after that (DQN)."""

    def given(self) -> dict[str, Any]:
        """Return those that are given, by name."""
        values = dataclasses.asdict(self)
        return {name: values[name] for name in values if values[name] is not None}


NAMES = tuple(field.name for field in dataclasses.fields(Hyperparameters))
IMITATION = ("start_customers", "start_noise")  # which needs an actor
PPO = ("n_steps", "n_epochs", "gae_lambda", "clip_range", "ent_coef", "vf_coef", "target_kl")
DQN = (
    "buffer_size",
    "learning_starts",
    "train_freq",
    "gradient_steps",
    "target_update_interval",
    "exploration_fraction",
    "exploration_final_eps",
)
STABLE_BASELINES = ("gamma", "batch_size", *PPO, *DQN)  # passed on under the same name
OPTIONAL = ("target_kl",)

LEAST = {  # of whole numbers
    **dict.fromkeys(("steps", "envs", "start_customers", "n_epochs", "buffer_size", "train_freq"), 1),
    **dict.fromkeys(("gradient_steps", "target_update_interval"), 1),
    **dict.fromkeys(("episode_customers", "n_steps", "batch_size"), 2),
    "learning_starts": 0,
}
SHARES = (
    "start_noise",
    "final_rate",
    "average",
    "gamma",
    "final_entropy",
    "gae_lambda",
    "exploration_fraction",
    "exploration_final_eps",
)
POSITIVE = ("learning_rate", "clip_range", "target_kl")
ONE_OF = {"observation": ("with-state", "router"), "action_set": ("default", "start")}


def known(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the names of a learner's hyperparameters."""
    others = DQN if algorithm in ACTOR_CRITIC else (*PPO, "final_entropy", *IMITATION)
    return tuple(name for name in NAMES if name not in others)


def resolve(
    algorithm: Algorithm, scenario: str, flags: Hyperparameters, path: Path | None = None
) -> Hyperparameters:
    """Return all hyperparameters: flags, over the scenario's section, over defaults.

    Args:
        algorithm: The learner.
        scenario: The name of the scenario.
        flags: What the command line gives.
        path: The file; None: the learner's own, in agents/hyperparams.

    Raises:
        ValueError: The file cannot be read, a name is unknown to the learner, or a value is not allowed; the
            message names the file, the section and the name.
    """
    path = path or FOLDER / ("ppo.yaml" if algorithm in ACTOR_CRITIC else "dqn.yaml")
    sections: dict[str, dict[str, Any]] = {}
    for section, content in _read_sections(path).items():
        place = f"{path.name}, section {section}: "
        _refuse_unknown(content, algorithm, place)
        values: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in content.items()}
        given = Hyperparameters(**values)
        check(given, place)
        sections[section] = given.given()
    _refuse_unknown(flags.given(), algorithm, "")
    check(flags)
    resolved = Hyperparameters(**{**sections.get(DEFAULT, {}), **sections.get(scenario, {}), **flags.given()})
    needed = (name for name in known(algorithm) if name not in OPTIONAL)
    missing = [name for name in needed if getattr(resolved, name) is None]
    if missing:
        raise ValueError(f"{path.name} gives no {missing[0]}: section {DEFAULT} must, or a flag")
    if algorithm not in ACTOR_CRITIC and resolved.observation != "router":
        raise ValueError(f"observation is {resolved.observation}: {algorithm} has no critic, so it is router")
    if algorithm not in ACTOR_CRITIC and resolved.start != "none":
        raise ValueError(f"start is {resolved.start}: {algorithm} has no actor to be taught, so it is none")
    if resolved.action_set == "start" and resolved.start == "none":
        raise ValueError("action_set is start: there must be a policy to begin from, and start is none")
    return resolved


def check(given: Hyperparameters, place: str = "") -> None:
    """Refuse values that are not allowed; `place` begins the message.

    Raises:
        ValueError: One is not; the message names it, its value and what is allowed.
    """
    for name, value in given.given().items():
        where = f"{place}{name}"
        if name in LEAST:
            check_argument.whole(where, value, LEAST[name])
        elif name in SHARES:
            check_argument.number(where, value, least=0.0, most=1.0)
        elif name in POSITIVE:
            if isinstance(value, str):  # YAML reads 3e-4 as text
                raise check_argument.refusal(where, value, "a positive number, such as 3.0e-4")
            check_argument.positive(where, value)
        elif name in ONE_OF:
            check_argument.choice(where, value, ONE_OF[name])
        elif name == "layers":
            check_argument.each(where, value, check_argument.whole, least=1, empty=False)
        elif name == "start":
            check_argument.text(where, value)
        else:
            check_argument.non_negative(where, value)


def _read_sections(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the sections of a file of hyperparameters, by name."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"hyperparameters '{path}' cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        cause = " ".join(str(error).split())
        raise ValueError(f"hyperparameters '{path}' are not valid YAML: {cause}") from None
    if not isinstance(content, Mapping) or not all(isinstance(part, Mapping) for part in content.values()):
        raise ValueError(f"hyperparameters '{path}': it must hold sections by scenario, and {DEFAULT}")
    return {str(name): part for name, part in content.items()}


def _refuse_unknown(given: Mapping[Any, Any], algorithm: Algorithm, place: str) -> None:
    names = known(algorithm)
    for name in given:
        if name not in names:
            raise ValueError(f"{place}{name} is unknown to {algorithm}: {one_of(name, names)}")
