"""Score a learned router beside policies on the same streams.

The same arguments give the same score. The seed of the score is never one that the router was trained on. The
simulator plays the network itself, so that a learned router is measured as any policy is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from agents.training.algorithms import load
from agents.training.export import POLICY, exported, policy_of
from baselines.leaderboard.report import board, table
from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.policy.policy import Policy, load_policy
from pull_env.reporting.console import command_line, console
from pull_env.reporting.rows import row, write_rows
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate

RIVALS = ("pull-weighted", "pull-fastest", "balanced(2)", "probe-until-idle(8)")
ROWS = "scores.jsonl"


@dataclass(frozen=True)
class Args:
    """What to score, and how long."""

    model: Annotated[Path, tyro.conf.Positional]
    """The folder of a trained router, or of an exported one, or the TOML file of that."""
    scenario: str | None = None
    """A preset's name, or the path of a TOML file; if not given, the one it was trained on."""
    customers: int = 1_000_000
    """Customers counted, over all replications."""
    seed: int = 0
    """Seed of the score."""
    replications: int = 16
    """Independent runs, over which the intervals are taken."""
    policy: tuple[str, ...] = RIVALS
    """What to compare with, on the same streams: names, tuned, or TOML files."""
    workers: int | None = None
    """Threads; if not given, one per core. The numbers do not depend on it."""


def score(
    path: Path,
    name: str | None,
    customers: int,
    *,
    seed: int = 0,
    replications: int = 16,
    rivals: Sequence[PolicyLike] = RIVALS,
    workers: int | None = None,
) -> None:
    """Score the router in `path` as a baseline is scored: print a table, and append rows to the folder.

    A trained one is scored twice: by its best actions, and by sampled ones, as routers that all do the same
    herd; an exported one as it says.

    Raises:
        ValueError: Something that is asked for is not allowed, or the router does not fit the scenario.
    """
    learned, scenario, folder = learned_policies(path, name)
    run: dict[str, Any] = {
        "seed": spawn_seeds(seed, 1, "evaluate")[0],
        "replications": replications,
    }
    shown, command = sys.stderr.isatty(), command_line(sys.orig_argv[1:])
    policies = [*learned, *(as_policy(rival, scenario) for rival in rivals)]
    for policy in policies:
        check_fit(policy, scenario)
    results, rows = [], []
    for policy in policies:
        result = simulate(scenario, policy, customers, workers=workers, progress=shown, **run)
        results.append((policy, [result]))
        rows.append(row(scenario, policy, result, command=command))
    write_rows(folder / ROWS, rows)
    console().print(table(board(scenario, results)))


def learned_policies(path: Path, name: str | None) -> tuple[list[Policy], Scenario, Path]:
    """Return the policies of the router in `path`, the scenario to score them on, and the folder for rows.

    Raises:
        ValueError: There is no router, or an exported one is given no scenario.
    """
    if exported(path):
        file = path / POLICY if path.is_dir() else path
        if name is None:
            raise ValueError(f"scenario is missing: {file} does not say what it was trained on")
        return [load_policy(file)], load_scenario(name), file.parent
    model, trained, folder = load(path)
    scenario = load_scenario(name or trained["scenario"])
    made = [policy_of(model, trained, scenario, sampled=sampled) for sampled in (False, True)]
    return [policy for policy in made if policy is not None], scenario, folder


def run(args: Args) -> int:
    """Score what `args` name, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    score(
        args.model,
        args.scenario,
        args.customers,
        seed=args.seed,
        replications=args.replications,
        rivals=args.policy,
        workers=args.workers,
    )
    return 0
