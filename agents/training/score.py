"""Score a learned router beside other policies, all on the same streams.

The same arguments give the same score. Its seed is never one that the router was trained on. The router is
simulated as a policy, like any other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from agents.training.algorithms import load
from agents.training.export import is_exported, policy_of
from baselines.leaderboard.report import board, table
from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.policy.policy import Policy, load_policy
from pull_env.reporting.console import command_line, console
from pull_env.reporting.flags import Workers
from pull_env.reporting.rows import row, write_rows
from pull_env.reporting.run_folder import POLICY
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
    """The folder of a trained or an exported router, or the TOML file of an exported one."""
    scenario: str | None = None
    """A preset's name, or the path of a TOML file; by default the one it was trained on."""
    policy: tuple[str, ...] = RIVALS
    """Policies to compare with: names, tuned, or TOML files."""
    customers: int = 1_000_000
    """Customers counted, over all replications."""
    seed: int = 0
    """Seed of the score."""
    replications: int = 16
    """Independent runs, from which the intervals are computed."""
    workers: Workers = None


def run(args: Args) -> int:
    """Score what `args` name, and return the exit status.

    Raises:
        ValueError: An argument is not allowed, or a policy does not fit the scenario.
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


def score(
    path: Path,
    scenario_name: str | None,
    customers: int,
    *,
    seed: int = 0,
    replications: int = 16,
    rivals: Sequence[PolicyLike] = RIVALS,
    workers: int | None = None,
) -> None:
    """Score a router like a baseline: print a table, append rows to its folder.

    A trained router is scored twice: with its best actions, and with sampled ones (routers that all act alike
    herd). An exported one does as its file says.

    Raises:
        ValueError: An argument is not allowed, or a policy does not fit the scenario.
    """
    learned, scenario, folder = learned_policies(path, scenario_name)
    stream = spawn_seeds(seed, 1, "evaluate")[0]
    progress, command = sys.stderr.isatty(), command_line(sys.orig_argv[1:])
    policies = [*learned, *(as_policy(rival, scenario) for rival in rivals)]
    for policy in policies:
        check_fit(policy, scenario)
    results, rows = [], []
    for policy in policies:
        result = simulate(
            scenario,
            policy,
            customers,
            seed=stream,
            replications=replications,
            workers=workers,
            progress=progress,
        )
        results.append((policy, [result]))
        rows.append(row(scenario, policy, result, command=command))
    write_rows(folder / ROWS, rows)
    console().print(table(board(scenario, results)))


def learned_policies(path: Path, scenario_name: str | None) -> tuple[list[Policy], Scenario, Path]:
    """Return the policies of a router, the scenario to score on, and its folder.

    Raises:
        ValueError: There is no router, or no scenario is given for an exported one.
    """
    if is_exported(path):
        file = path / POLICY if path.is_dir() else path
        if scenario_name is None:
            raise ValueError(f"scenario is missing: {file} does not say what it was trained on")
        return [load_policy(file)], load_scenario(scenario_name), file.parent
    model, configuration, folder = load(path)
    scenario = load_scenario(scenario_name or configuration["scenario"])
    policies = [policy_of(model, configuration, scenario, sampled=sampled) for sampled in (False, True)]
    return [policy for policy in policies if policy is not None], scenario, folder
