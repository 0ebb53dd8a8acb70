"""What a training run is asked for: its arguments, checked and resolved, and how its folder tells of them."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import tyro

import pull_env
from agents.training.action_set import Offer, start_policy
from agents.training.algorithms import Algorithm, learner, read_configuration
from agents.training.hyperparameters import Hyperparameters, resolve
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import versions
from pull_env.scenario.scenario import load_scenario


@dataclass(frozen=True)
class Args:
    """How to train."""

    scenario: str = "two-speeds"
    """A preset's name, or the path of a TOML file."""
    algo: Algorithm = "ppo"
    """The learner; maskable-ppo is ppo that never picks a take or recall of nothing."""
    seed: int = 0
    """Seeds weights, environments and exploration; evaluations and scores use other seeds."""
    evaluations: int = 10
    """Evaluations on the way, at equal distances, besides the one before the first customer."""
    evaluation_customers: int = 200_000
    """Customers counted in each."""
    score_customers: int = 100_000
    """Customers counted in the score at the end; 0: no score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by learner, scenario, seed and time."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of a run that was stopped: go on as if it had not been. All else is as it was begun."""
    hyperparams: Annotated[Path | None, tyro.conf.arg(metavar="YAML")] = None
    """A file of hyperparameters in place of the learner's own in agents/hyperparams."""
    learn: tyro.conf.OmitArgPrefixes[Hyperparameters] = dataclasses.field(default_factory=Hyperparameters)
    """What to learn with, over what the file gives."""


def check(args: Args) -> Args:
    """Return `args` with all hyperparameters, after refusing what cannot be, before any work is done.

    Raises:
        ValueError: Something cannot be; the message names it.
    """
    scenario = load_scenario(args.scenario)
    least = {"seed": 0, "evaluations": 1, "evaluation_customers": 1, "score_customers": 0}
    for name, low in least.items():
        if getattr(args, name) < low:
            raise ValueError(f"{name} is {getattr(args, name)}: it must be a whole number from {low}")
    learn = resolve(args.algo, scenario.name, args.learn, args.hyperparams)
    if args.out is not None and args.out.exists():
        raise ValueError(f"out is '{args.out}': it exists already, and results are never overwritten")
    args = dataclasses.replace(args, learn=learn)
    if learn.start != "none":
        from agents.training.imitation import check_start

        check_start(start_policy(learn.start, scenario), scenario, offer_of(args))
    return args


def offer_of(args: Args) -> Offer:
    """Return what the router may do, and how its servers announce themselves."""
    scenario = load_scenario(args.scenario)
    if args.learn.offer == "default":
        return Offer.of({}, scenario)
    return Offer.by(start_policy(args.learn.start, scenario), scenario)


def configuration(args: Args) -> dict[str, Any]:
    """Return what a run was asked for, and with what it is done, as plain JSON values."""
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in vars(args).items()}
    learner(args.algo)  # so that its versions are known
    return {
        **plain,
        "learn": args.learn.given(),
        "offer": offer_of(args).to_dict(),
        "command": command_line(sys.orig_argv[1:]),
        "scenario_content": load_scenario(args.scenario).to_dict(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"pull-env": pull_env.__version__, **versions()},
    }


def stored(args: Args) -> Args:
    """Return what the run in `args.resume` was asked for.

    Raises:
        ValueError: More is given than the folder, which holds no run, or its scenario has changed.
    """
    folder = args.resume
    if dataclasses.replace(args, resume=None) != Args():
        raise ValueError(f"resume is '{folder}': the run goes on as it was begun, so give nothing else")
    content = read_configuration(folder)
    names = [field.name for field in dataclasses.fields(Args) if field.name not in ("learn", "out", "resume")]
    learn = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content["learn"].items()
    }
    if load_scenario(content["scenario"]).to_dict() != content["scenario_content"]:
        raise ValueError(f"resume is '{folder}': its scenario {content['scenario']} has changed since")
    return Args(**{name: content[name] for name in names}, resume=folder, learn=Hyperparameters(**learn))
