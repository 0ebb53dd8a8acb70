"""Train a router: `python -m agents.train --scenario two-speeds --algo ppo --steps 200000 --seed 0`.

One customer is one step, and the reward is minus its cost, so the learner minimises the cost per customer.
The model and its configuration are saved in a folder of their own, and the router is scored as baselines are.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import tyro

import pull_env
from agents.algorithms import Algorithm, learner, save
from agents.score import score
from baselines.rows import versions
from pull_env.scenario import load_scenario
from pull_env.terminal import bar, command_line, exit_status


@dataclass(frozen=True)
class Args:
    """How to train."""

    scenario: str = "two-speeds"
    """A preset's name, or the path of a TOML file."""
    algo: Algorithm = "ppo"
    """The learner: ppo, or maskable-ppo, which never picks a take or recall of nothing."""
    steps: int = 200_000
    """Customers to learn from, over all environments."""
    seed: int = 0
    """Seeds weights, environments and exploration; scores use other seeds."""
    envs: int = 8
    """Environments side by side."""
    customers: int = 10_000
    """Customers an episode."""
    learning_rate: float = 3e-4
    """Step of Adam."""
    gamma: float = 0.99
    """Discount a customer."""
    n_steps: int = 512
    """Customers of each environment between two updates."""
    batch_size: int = 512
    """Customers a gradient step."""
    ent_coef: float = 0.01
    """Weight of the entropy of the policy."""
    score_customers: int = 100_000
    """Customers counted in the score at the end; 0: no score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by learner, scenario, seed and time."""


def make_env(args: Args) -> Any:
    """Return the environments side by side, rewards scaled to unit spread for the learner."""
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from pull_env.sb3 import VecRouter

    envs = VecRouter(args.scenario, args.envs, customers=args.customers)
    return VecNormalize(VecMonitor(envs), norm_obs=False, gamma=args.gamma)


def train(args: Args) -> Any:
    """Return a model of Stable-Baselines3, trained as `args` say."""
    from stable_baselines3.common.callbacks import BaseCallback

    env = make_env(args)
    update = args.envs * args.n_steps
    model = learner(args.algo)(
        "MlpPolicy",
        env,
        learning_rate=args.learning_rate,
        gamma=args.gamma,
        n_steps=args.n_steps,
        batch_size=min(args.batch_size, update),
        ent_coef=args.ent_coef,
        seed=args.seed,  # the environments spawn theirs from it
        device="cpu",
    )
    with bar(f"{args.algo} on {args.scenario}", args.steps, sys.stderr.isatty()) as report:

        class Tell(BaseCallback):
            """Tells the progress bar of customers learned from."""

            def _on_step(self) -> bool:
                report(args.envs)
                return True

        model.learn(args.steps, callback=Tell())
    env.close()
    return model


def check(args: Args) -> None:
    """Refuse arguments that cannot be, before any work is done.

    Raises:
        ValueError: One cannot; the message names it.
    """
    load_scenario(args.scenario)
    least = {"steps": 1, "seed": 0, "envs": 1, "customers": 2, "n_steps": 2, "batch_size": 2}
    least["score_customers"] = 0
    for name, low in least.items():
        if getattr(args, name) < low:
            raise ValueError(f"{name} is {getattr(args, name)}: it must be a whole number from {low}")
    if not 0 <= args.gamma <= 1:
        raise ValueError(f"gamma is {args.gamma}: it must be a number from 0 to 1")
    if not args.learning_rate > 0:
        raise ValueError(f"learning_rate is {args.learning_rate}: it must be a positive number")
    if not args.ent_coef >= 0:
        raise ValueError(f"ent_coef is {args.ent_coef}: it must be a number from 0")
    if args.out is not None and args.out.exists():
        raise ValueError(f"out is '{args.out}': it exists already, and results are never overwritten")


def configuration(args: Args, seconds: float) -> dict[str, Any]:
    """Return what the model was trained with, as plain JSON values."""
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(args).items()}
    return {
        **plain,
        "command": command_line(sys.orig_argv[1:]),
        "scenario_content": load_scenario(args.scenario).to_dict(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "training_seconds": round(seconds, 1),
        "versions": {"pull-env": pull_env.__version__, **versions()},
    }


def run(args: Args) -> int:
    """Train, save and score as `args` say, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    check(args)
    now = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    name = Path(args.scenario).stem
    folder = args.out or Path("runs") / f"{args.algo}-{name}-seed{args.seed}-{now}"
    started = time.perf_counter()
    model = train(args)
    save(model, configuration(args, time.perf_counter() - started), folder)
    print(f"trained on {args.steps:,} customers in {time.perf_counter() - started:.0f} s, saved in {folder}")
    if args.score_customers:
        score(folder, args.scenario, args.score_customers)
    print(f"score it again: python -m agents.score {folder} --scenario {args.scenario}")
    return 0


def main() -> int:
    """Train what the command line asks for, and return the exit status."""
    args = tyro.cli(Args, prog="python -m agents.train", description=__doc__)
    return exit_status(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
