"""Train a router of agents/zoo/trained again: `python -m agents retrain NAME`.

The results go to a new folder; `--check` compares the weights. With the same versions a search gives
identical weights on any processor that rounds alike; training by gradients does so on a processor with the
same instructions, which determine the order of sums in torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import FlagCreatePairsOff

from agents.general.router import GENERAL, load
from agents.training.commands import ROOT, arguments_of
from agents.zoo.registry import digest, load_trained
from pull_env.policy.policy import load_policy
from pull_env.reporting.run_folder import POLICY, TRAINING, choose_folder


@dataclass(frozen=True)
class Args:
    """Which router to train again."""

    name: Annotated[str, tyro.conf.Positional]
    """The name of a folder in agents/zoo/trained."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by router and time."""
    check: FlagCreatePairsOff[bool] = False
    """Compare the weights with those in agents/zoo/trained; the exit status is 1 if they differ."""


def run(args: Args) -> int:
    """Train a router again as `args` say, and return the exit status.

    Raises:
        ValueError: There is no such router, or the folder exists already.
    """
    training = training_of(args.name)
    folder = choose_folder(args.out, f"again-{args.name}", datetime.now(timezone.utc))
    words = [sys.executable, *arguments_of(training["command"]), "--out", str(folder.absolute())]
    status = subprocess.run(words, cwd=ROOT, check=False).returncode
    if status or not args.check:
        return status
    return 0 if is_same(args.name, training, folder) else 1


def training_of(name: str) -> dict[str, Any]:
    """Return how a router was trained.

    Raises:
        ValueError: There is no such router, or its preset has changed since.
    """
    if name == GENERAL.parent.name:
        training: dict[str, Any] = json.loads(GENERAL.with_name(TRAINING).read_text(encoding="utf-8"))
        return training
    trained = load_trained(name)
    if trained.scenario.digest != trained.training["scenario"]["sha256"]:
        raise ValueError(f"{name} was trained on another {trained.scenario.name}: the preset has changed")
    return trained.training


def is_same(name: str, training: dict[str, Any], folder: Path) -> bool:
    """Print and return whether weights are those in agents/zoo/trained."""
    equal = True
    if name == GENERAL.parent.name:
        weights = load(folder / GENERAL.name).digest
    else:
        policy = load_policy(folder / POLICY)
        weights, equal = digest(policy), policy.steps == load_trained(name).policy.steps
    equal = equal and weights == training["weights_sha256"]
    print(f"weights {weights[:16]}, {'as' if equal else 'not as'} in training.json")
    return equal
