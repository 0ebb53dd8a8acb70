"""The trained routers of agents/zoo/trained: a run is put there by its name.

Each is a folder: `policy.toml` and its weights, which hold no code; `training.json`, the command that trains
it again and what it was trained with; `curve.jsonl`, what it cost on the way; `start.toml`, where it began.
If that is a network which an earlier run found, `before.json` tells of that run.
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
from pull_env.reporting.run_folder import CONFIGURATION, CURVE, POLICY, START, TRAINING
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.scenario.validation import check_argument

SHELF = Path(__file__).with_name("trained")
BEST = "best.json"
MOST_BYTES = 2**20  # of a folder


@dataclass(frozen=True)
class Trained:
    """A trained router.

    Attributes:
        name: Its folder's name.
        policy: What it follows.
        training: How it was trained, as `training.json` tells.
    """

    name: str
    policy: Policy
    training: dict[str, Any]

    @property
    def scenario(self) -> Scenario:
        """The preset that it was trained on."""
        return load_scenario(self.training["scenario"]["name"])

    @property
    def in_sight(self) -> bool:
        """Whether it sees all queues for nothing, as in `pull_env/Dispatch-v0`."""
        return self.training.get("env") == DISPATCH

    @property
    def start(self) -> Policy | None:
        """The chain that its search began with, where that has a file."""
        path = SHELF / self.name / START
        return load_policy(path) if path.is_file() else None


def trained_names() -> tuple[str, ...]:
    """Return the names of all routers trained for a preset, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in SHELF.glob(f"*/{POLICY}")))


def load_trained(name: str) -> Trained:
    """Return a trained router.

    Raises:
        ValueError: There is none of this name.
    """
    check_argument.choice("name", name, trained_names())
    training = json.loads((SHELF / name / TRAINING).read_text(encoding="utf-8"))
    return Trained(name, load_policy(SHELF / name / POLICY), training)


def training_of(folder: Path) -> dict[str, Any]:
    """Return how the router of a run in `folder` was trained, as plain JSON values."""
    told = json.loads((folder / CONFIGURATION).read_text(encoding="utf-8"))
    curve = [json.loads(line) for line in (folder / CURVE).read_text(encoding="utf-8").splitlines()]
    scenario, policy = load_scenario(told["scenario"]), load_policy(folder / POLICY)
    return {
        "scenario": {"name": scenario.name, "version": scenario.version, "sha256": scenario.digest},
        "first_command": without_flags(told["command"], ("--out",)),
        "time": told["time"],
        "seed": told["seed"],
        "versions": {**told["versions"], "python": machine()["python"]},
        "processor": machine()["processor"],
        "weights_sha256": digest(policy),
        **(of_learning(folder, told) if "algo" in told else of_search(told, curve)),
    }


def digest(policy: Policy) -> str:
    """Return the sha256 of what was learned: the weights of a network, or the table of a policy without."""
    return policy.digest if policy.network is None else policy.network.digest


def of_search(told: dict[str, Any], curve: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is told of a search: how many generations it took, and in which it found its best."""
    validated = [row for row in curve if "validation" in row and row["stable"]]
    generations = curve[-1]["generation"]
    return {
        "way": "search",
        "command": repeatable(told["command"], generations),
        "seconds": told["search_seconds"],
        "cpu_seconds": told["search_cpu_seconds"],
        "generations": generations,
        "candidates": generations * told["population"],
        "best_generation": min(validated, key=lambda row: row["validation"]["mean"])["generation"],
        "to_the_bit": "on any processor that rounds alike",
    }


def of_learning(folder: Path, told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of learning by gradients: from how many customers, and when it was at its best."""
    learn = told["learn"]
    best = {"customers": learn["steps"], "weights": "latest", "choice": "best action"}
    if (folder / BEST).is_file():
        best = json.loads((folder / BEST).read_text(encoding="utf-8"))
    return {
        "way": told["algo"] + (" in Dispatch-v0" if told.get("env") == DISPATCH else ""),
        "env": told.get("env", "pull_env/Router-v0"),
        "command": repeatable(told["command"]),
        "seconds": told["training_seconds"],
        "cpu_seconds": told["training_cpu_seconds"],
        "customers": learn["steps"],
        "best_customers": best["customers"],
        "best_weights": f"{best['weights']}, {best['choice']}",
        "learn": learn,
        "to_the_bit": "on a processor with the same instructions, as torch chooses its sums by these",
    }


def put(run: Path, name: str) -> Path:
    """Copy the router that a search or a training run left in `run` to the shelf, and return its folder.

    Raises:
        ValueError: The run holds no such router, or there is one of this name.
    """
    folder = SHELF / name
    if not (run / CONFIGURATION).is_file() or not (run / POLICY).is_file():
        raise ValueError(f"run is '{run}': it must be the folder of a run that has ended")
    if (folder / TRAINING).exists():
        raise ValueError(f"name is {name!r}: {folder} is there already, and results are never overwritten")
    training = training_of(run)
    folder.mkdir(parents=True, exist_ok=True)
    save_policy(replace(load_policy(run / POLICY), name="learned"), folder / POLICY)
    shutil.copyfile(run / CURVE, folder / CURVE)
    if (run / START).is_file() and not (folder / START).exists():
        save_policy(load_policy(run / START), folder / START)
        training["command"] = with_start(training["command"], folder / START)
    text = json.dumps(training, indent=2, sort_keys=True)
    (folder / TRAINING).write_text(text + "\n", encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Args:
    """Which run to put on the shelf."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of a search, or of a training run."""
    name: Annotated[str, tyro.conf.Positional]
    """What to call the router."""


def run(args: Args) -> int:
    """Put what `args` name on the shelf, and return the exit status.

    Raises:
        ValueError: The run holds no router, or there is one of this name.
    """
    print("Written:", put(args.run, args.name))
    return 0
