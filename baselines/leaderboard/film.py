"""`python -m baselines.leaderboard.film`: the README's film, a frame per customer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from PIL import Image
from tyro.conf import arg

from pull_env.envs.policy_driver import PolicyEnv
from pull_env.policy.policy import Announce, Policy, Probe, Take
from pull_env.rendering import rgb_array
from pull_env.rendering.canvas import Pixels
from pull_env.reporting.console import exit_status
from pull_env.reporting.flags import SCENARIO, Seed
from pull_env.scenario.validation import check_argument

# Shows every kind of step: messages taken where a router holds some, else servers probed.
POLICY = Policy(
    "take or probe", (Take(order="fastest"), Probe(weights="rate", at_most=8, stop_at=0.0)), Announce()
)
COLOURS = 64  # more than a frame has, so that none is lost
NAME = "routers.gif"


@dataclass(frozen=True)
class Args:
    """What to film."""

    scenario: Annotated[str, arg(help=f"{SCENARIO}.")] = "two-speeds"
    frames: int = 40
    """Customers to show."""
    start: int = 300
    """Customers before the film begins."""
    seed: Seed = 0
    out: Path = Path(__file__).parents[1] / "results"
    """Folder for routers.gif."""


def film(args: Args) -> list[Pixels]:
    """Return the frames, one after each customer.

    Raises:
        ValueError: An argument is not allowed.
    """
    for name, least in (("frames", 1), ("start", 0), ("seed", 0)):
        check_argument.whole(name, getattr(args, name), least)
    env = PolicyEnv(POLICY, args.scenario, customers=args.start + args.frames + 1)
    env.reset(seed=args.seed)
    frames = []
    for customer in range(args.start + args.frames):
        env.step()
        if customer >= args.start:
            frames.append(rgb_array(env.simulator))
    return frames


def save(frames: Sequence[Pixels], path: Path) -> None:
    """Write the frames as an endless GIF, at the speed of the env."""
    first, *others = [Image.fromarray(frame).quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames]
    path.parent.mkdir(parents=True, exist_ok=True)
    duration = 1000 // PolicyEnv.metadata["render_fps"]  # milliseconds
    first.save(path, save_all=True, append_images=others, duration=duration, loop=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, or `arguments`, and return the exit status."""
    args = tyro.cli(Args, prog="python -m baselines.leaderboard.film", description=__doc__, args=arguments)

    def work() -> int:
        save(film(args), args.out / NAME)
        print("Written:", args.out / NAME)
        return 0

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main())
