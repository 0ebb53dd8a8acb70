"""The trained routers in agents/zoo/trained: `python -m agents shelve` adds one.

Each is a folder: `policy.toml` and its weights, which hold no code; `training.json`, the command that trains
it again and its versions; `curve.jsonl`, its cost during training; `start.toml`, the policy it started from.
If that is the network of an earlier run, `before.json` describes that run.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from agents.training.algorithms import DISPATCH
from agents.training.commands import repeatable, with_start, without_flags
from pull_env.policy.policy import Policy, load_policy, save_policy
from pull_env.reporting.rows import machine
from pull_env.reporting.run_folder import CONFIGURATION, CURVE, POLICY, START, TRAINING, write_json
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.scenario.validation import check_argument

TRAINED = Path(__file__).with_name("trained")
BEST = "best.json"


@dataclass(frozen=True)
class Args:
    """Which run to copy."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of a search, or of a training run."""
    name: Annotated[str, tyro.conf.Positional]
    """The router's name."""


def run(args: Args) -> int:
    """Copy the router of a run as `args` say, and return the exit status.

    Raises:
        ValueError: The run holds no router, or there is one of this name.
    """
    print("Written:", shelve(args.run, args.name))
    return 0


@dataclass(frozen=True)
class TrainedRouter:
    """A trained router.

    Attributes:
        name: Its folder's name.
        policy: Its policy.
        training: The content of its `training.json`.
    """

    name: str
    policy: Policy
    training: dict[str, Any]

    @property
    def scenario(self) -> Scenario:
        """The preset that it was trained on."""
        return load_scenario(self.training["scenario"]["name"])

    @property
    def full_information(self) -> bool:
        """Whether it sees all queues for free, as in `pull_env/Dispatch-v0`."""
        return self.training.get("env") == DISPATCH

    @property
    def start(self) -> Policy | None:
        """The policy that training started from, if it has a file."""
        path = TRAINED / self.name / START
        return load_policy(path) if path.is_file() else None


def trained_names() -> tuple[str, ...]:
    """Return the names of all routers trained for a preset, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in TRAINED.glob(f"*/{POLICY}")))


def load_trained(name: str) -> TrainedRouter:
    """Return a trained router.

    Raises:
        ValueError: There is none of this name.
    """
    check_argument.choice("name", name, trained_names())
    training = json.loads((TRAINED / name / TRAINING).read_text(encoding="utf-8"))
    return TrainedRouter(name, load_policy(TRAINED / name / POLICY), training)


def shelve(run: Path, name: str) -> Path:
    """Copy the router of a run to `TRAINED`, and return its folder.

    Raises:
        ValueError: The run holds no router, or there is one of this name.
    """
    folder = TRAINED / name
    if not (run / CONFIGURATION).is_file() or not (run / POLICY).is_file():
        raise check_argument.refusal("run", str(run), "the folder of a run that has ended")
    if (folder / TRAINING).exists():
        raise ValueError(f"name is {name!r}: {folder} is there already, and results are never overwritten")
    training = training_of(run)
    folder.mkdir(parents=True, exist_ok=True)
    save_policy(replace(load_policy(run / POLICY), name="learned"), folder / POLICY)
    shutil.copyfile(run / CURVE, folder / CURVE)
    if (run / START).is_file() and not (folder / START).exists():
        save_policy(load_policy(run / START), folder / START)
        training["command"] = with_start(training["command"], folder / START)
    write_json(folder / TRAINING, training)
    return folder


def training_of(folder: Path) -> dict[str, Any]:
    """Return how the router of the run in `folder` was trained, as plain JSON values."""
    configuration = json.loads((folder / CONFIGURATION).read_text(encoding="utf-8"))
    scenario, policy = load_scenario(configuration["scenario"]), load_policy(folder / POLICY)
    special = gradient_training if "algo" in configuration else search_training
    return {
        "scenario": {"name": scenario.name, "version": scenario.version, "sha256": scenario.digest},
        "first_command": without_flags(configuration["command"], ("--out",)),
        "time": configuration["time"],
        "seed": configuration["seed"],
        "versions": {**configuration["versions"], "python": machine()["python"]},
        "processor": machine()["processor"],
        "weights_sha256": digest(policy),
        **special(folder, configuration),
    }


def digest(policy: Policy) -> str:
    """Return the sha256 of what was learned: a network's weights, or a table."""
    return policy.digest if policy.network is None else policy.network.digest


def search_training(folder: Path, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return what describes a search: generations, and which of them was the best."""
    curve = [json.loads(line) for line in (folder / CURVE).read_text(encoding="utf-8").splitlines()]
    validated = [row for row in curve if "validation" in row and row["stable"]]
    generations = curve[-1]["generation"]
    return {
        "way": "search",
        "command": repeatable(configuration["command"], generations),
        "seconds": configuration["search_seconds"],
        "cpu_seconds": configuration["search_cpu_seconds"],
        "generations": generations,
        "candidates": generations * configuration["population"],
        "best_generation": min(validated, key=lambda row: row["validation"]["mean"])["generation"],
        "to_the_bit": "on any processor that rounds alike",
    }


def gradient_training(folder: Path, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return what describes training by gradients: customers, and when it was best."""
    learn = configuration["learn"]
    best = {"customers": learn["steps"], "weights": "latest", "choice": "best action"}
    if (folder / BEST).is_file():
        best = json.loads((folder / BEST).read_text(encoding="utf-8"))
    in_dispatch = configuration.get("env") == DISPATCH
    return {
        "way": configuration["algo"] + (" in Dispatch-v0" if in_dispatch else ""),
        "env": configuration.get("env", "pull_env/Router-v0"),
        "command": repeatable(configuration["command"]),
        "seconds": configuration["training_seconds"],
        "cpu_seconds": configuration["training_cpu_seconds"],
        "customers": learn["steps"],
        "best_customers": best["customers"],
        "best_weights": f"{best['weights']}, {best['choice']}",
        "learn": learn,
        "to_the_bit": "on a processor with the same instructions, as torch chooses its sums by these",
    }
