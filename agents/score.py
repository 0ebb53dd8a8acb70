"""Score a trained router beside policies on the same streams: `python -m agents.score MODEL --scenario NAME`.

The same arguments give the same score. The seed of the score is never one that the router was trained on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

import baselines
from agents.algorithms import load, weights_digest
from baselines.report import board, table
from baselines.rows import Network, row, write_rows
from pull_env.envs.catalog import default_catalog
from pull_env.evaluation import evaluate
from pull_env.policy import Announce, Policy
from pull_env.scenario import load_scenario
from pull_env.seeds import spawn_seeds
from pull_env.simulation import simulate
from pull_env.terminal import command_line, console, exit_status

RIVALS = ("pull-weighted", "pull-fastest", "balanced(2)", "probe-until-idle(8)")
ROWS = "scores.jsonl"


@dataclass(frozen=True)
class Args:
    """What to score, and how long."""

    model: Annotated[Path, tyro.conf.Positional]
    """The folder of a trained router, or the model.zip in it."""
    scenario: str | None = None
    """A preset's name, or the path of a TOML file; if not given, the one it was trained on."""
    customers: int = 100_000
    """Customers counted, over all replications."""
    seed: int = 0
    """Seed of the score."""
    replications: int = 16
    """Independent runs, over which the intervals are taken."""
    rivals: tuple[str, ...] = RIVALS
    """Policies that are scored on the same streams."""


def score(
    path: Path,
    name: str | None,
    customers: int,
    *,
    seed: int = 0,
    replications: int = 16,
    rivals: tuple[str, ...] = RIVALS,
) -> None:
    """Score the router in `path` as a baseline is scored: print a table, and append rows to the folder.

    It is scored twice: by its best actions, and by sampled ones, as routers that all do the same herd.

    Raises:
        ValueError: Something that is asked for is not allowed, or the router does not fit the scenario.
    """
    model, trained, folder = load(path)
    scenario = load_scenario(name or trained["scenario"])
    others = [baselines.make(rival) for rival in rivals]
    streams = spawn_seeds(seed, 1, "evaluate")[0]
    run: dict[str, Any] = {"seed": streams, "replications": replications}
    shown, command = sys.stderr.isatty(), command_line(sys.orig_argv[1:])
    network = Network(weights_digest(model), trained["seed"])
    results, rows = [], []
    for deterministic in (True, False):
        how = "best action" if deterministic else "sampled"
        policy = Policy(f"{trained['algo']} ({how})", default_catalog(scenario), Announce())
        result = evaluate(model, scenario, customers, deterministic=deterministic, progress=shown, **run)
        results.append((policy, [result]))
        rows.append(row(scenario, policy, result, command=command, workers=1, network=network))
    for policy in others:
        result = simulate(scenario, policy, max(customers, 400_000), progress=shown, **run)
        results.append((policy, [result]))
        rows.append(row(scenario, policy, result, command=command))
    write_rows(folder / ROWS, rows)
    console().print(table(board(scenario, results)))


def main() -> int:
    """Score what the command line asks for, and return the exit status."""
    args = tyro.cli(Args, prog="python -m agents.score", description=__doc__)

    def work() -> int:
        score(
            args.model,
            args.scenario,
            args.customers,
            seed=args.seed,
            replications=args.replications,
            rivals=args.rivals,
        )
        return 0

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main())
