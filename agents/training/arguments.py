"""The arguments of a training run: checked, completed, stored in its folder."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import tyro

import pull_env
from agents.training.action_set import ActionSet, start_policy
from agents.training.algorithms import Algorithm, learner, read_configuration
from agents.training.hyperparameters import Hyperparameters, resolve
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import versions
from pull_env.reporting.run_folder import plain_arguments
from pull_env.scenario.scenario import load_scenario
from pull_env.scenario.validation import check_argument


@dataclass(frozen=True)
class Effort:
    """How much is simulated beside learning itself; no flags, tests shorten it."""

    replications: int = 8  # of an evaluation
    warmup: int = 20_000  # customers before the counted ones of an evaluation, at most,
    warmup_per_server: int = 50  # or this many per server, if that is more
    averaging_interval: int = 8192  # customers between updates of the averaged weights, at least
    env_warmup: int = 2_000_000  # customers before learning, over all envs, at most: a second or two
    imitation_updates: int = 2000  # gradient steps


@dataclass(frozen=True)
class Args:
    """How to train."""

    scenario: str = "two-speeds"
    """A preset's name, or the path of a TOML file."""
    algo: Algorithm = "ppo"
    """The learner; maskable-ppo is ppo that never picks a take or recall that is not real."""
    seed: int = 0
    """Seeds weights, environments and exploration; evaluations and scores use other seeds."""
    evaluations: int = 10
    """Evaluations during training, equally spaced, besides the one before the first customer."""
    evaluation_customers: int = 200_000
    """Customers counted in each evaluation."""
    score_customers: int = 100_000
    """Customers counted in the score at the end; 0: no score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by learner, scenario, seed and time."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of an interrupted run, to continue bit-identically; no other flag is allowed."""
    hyperparams: Annotated[Path | None, tyro.conf.arg(metavar="YAML")] = None
    """A file of hyperparameters in place of the learner's own in agents/hyperparams."""
    learn: tyro.conf.OmitArgPrefixes[Hyperparameters] = dataclasses.field(default_factory=Hyperparameters)
    """Hyperparameters, which override those of the file."""
    effort: tyro.conf.Suppress[Effort] = Effort()


def check(args: Args) -> Args:
    """Return `args` with all hyperparameters; called before any work is done.

    Raises:
        ValueError: An argument is not allowed; the message names it.
    """
    scenario = load_scenario(args.scenario)
    least = {"seed": 0, "evaluations": 1, "evaluation_customers": 1, "score_customers": 0}
    for name, low in least.items():
        check_argument.whole(name, getattr(args, name), low)
    learn = resolve(args.algo, scenario.name, args.learn, args.hyperparams)
    args = dataclasses.replace(args, learn=learn)
    if learn.start is not None and learn.start != "none":
        from agents.training.imitation import check_imitable

        check_imitable(start_policy(learn.start, scenario), scenario, action_set_of(args))
    return args


def action_set_of(args: Args) -> ActionSet:
    """Return what the router can do, from checked arguments."""
    scenario = load_scenario(args.scenario)
    if args.learn.start is None or args.learn.action_set == "default":
        return ActionSet.from_configuration({}, scenario)
    return ActionSet.around(start_policy(args.learn.start, scenario), scenario)


def configuration(args: Args) -> dict[str, Any]:
    """Return the arguments of a run, its command and versions as JSON values."""
    plain = plain_arguments(args)
    del plain["effort"]
    learner(args.algo)  # so that its versions are known
    return {
        **plain,
        "learn": args.learn.given(),
        "action_set": action_set_of(args).to_dict(),
        "command": command_line(sys.orig_argv[1:]),
        "scenario_content": load_scenario(args.scenario).to_dict(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"pull-env": pull_env.__version__, **versions()},
    }


def stored(folder: Path, args: Args) -> Args:
    """Return the arguments of the interrupted run in `folder`, which `args` resume.

    Raises:
        ValueError: `args` hold anything else, there is no run, or its scenario has changed.
    """
    if dataclasses.replace(args, resume=None, effort=Effort()) != Args():
        raise ValueError(f"resume is '{folder}': the run goes on as it was begun, so give nothing else")
    content = read_configuration(folder)
    not_stored = ("learn", "out", "resume", "effort")
    names = [field.name for field in dataclasses.fields(Args) if field.name not in not_stored]
    learn: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content["learn"].items()
    }
    if load_scenario(content["scenario"]).to_dict() != content["scenario_content"]:
        raise ValueError(f"resume is '{folder}': its scenario {content['scenario']} has changed since")
    return dataclasses.replace(
        args, **{name: content[name] for name in names}, learn=Hyperparameters(**learn)
    )
