"""`python -m baselines.leaderboard`: all policies on all scenarios, as tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from baselines.leaderboard.report import Board, board, table
from baselines.policies.registry import POLICIES, make
from baselines.policies.tuned import tuned
from pull_env.policy.lookup import as_policy
from pull_env.policy.policy import Policy
from pull_env.reporting.console import command_line, console, exit_status
from pull_env.reporting.flags import (
    CUSTOMERS,
    POLICY,
    SCENARIO,
    Customers,
    Replications,
    Switch,
    Warmup,
    Workers,
)
from pull_env.reporting.rows import row, write_rows
from pull_env.reporting.run_folder import ROWS
from pull_env.scenario.scenario import Scenario, Trace, load_scenario, scenario_names
from pull_env.scenario.validation import check_argument
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.results import Result
from pull_env.simulation.simulate import BATCHES, check_run, run_lengths, simulate

DESCRIPTION = """Compare policies on scenarios: waiting, messages and cost, with intervals.

For example:
  python -m baselines.leaderboard --quick
  python -m baselines.leaderboard
  python -m baselines.leaderboard --scenario two-speeds mine.toml --policy pull "balanced(3)" my_policy.toml
  python -m baselines.leaderboard --trace azure_llm_2023_conv.csv"""

QUICK_SCENARIOS = ("two-speeds", "finite-buffers", "small-mixed")
QUICK_CUSTOMERS = 1_000_000  # with fewer, the drift test misses on some seeds that pull is unstable
FULL_CUSTOMERS = 4_000_000


@dataclass(frozen=True)
class Args:
    """What to compare, and how long."""

    quick: Switch = False
    """Three scenarios (two-speeds, finite-buffers, small-mixed) and 1,000,000 customers: under a minute."""
    scenario: Annotated[tuple[str, ...], arg(help=f"{SCENARIO}; by default all presets.")] = ()
    policy: Annotated[tuple[str, ...], arg(help=f"{POLICY}; by default the whole table and tuned.")] = ()
    seed: Annotated[tuple[int, ...], arg(aliases=("--seeds",), metavar="S ...")] = (0,)
    """Each policy meets the same customers on a seed; the tables pool all seeds."""
    customers: Annotated[Customers, arg(help=f"{CUSTOMERS}; by default 4,000,000, or a whole trace.")] = None
    replications: Replications = 8
    warmup: Warmup = None
    workers: Workers = None
    trace: str | None = None
    """CSV file of recorded requests, for a gateway of 24 language models instead of the presets."""
    time: str = "TIMESTAMP"
    """Column of the trace with the arrival times."""
    size: str = "GeneratedTokens"
    """Column of the trace with the size of each request."""
    out: Path | None = None
    """Folder for rows and figure, without earlier rows; by default results/leaderboard-<UTC time>."""


@dataclass(frozen=True)
class Run:
    """One simulation.

    Attributes:
        scenario: The system.
        policy: The policy of its routers.
        seed: The same for all policies.
        customers: Customers to count; None: a whole trace.
        length: Customers to simulate in all replications, warm-ups included.
    """

    scenario: Scenario
    policy: Policy
    seed: int
    customers: int | None
    length: int


Results = dict[tuple[str, str], list[Result]]  # one per seed, by scenario and policy


def llm_gateway(trace: Trace) -> Scenario:
    """Return the preset `llm-gateway` with recorded requests."""
    return replace(load_scenario("llm-gateway", trace.trace), arrivals=trace)


def default_policies() -> list[Policy]:
    """Return every policy of the table at its defaults, and pull-min(2).

    Arguments without a default are 2.
    """
    names = []
    for entry in POLICIES.values():
        required = ["2" for argument in entry.arguments.values() if argument.default is argument.empty]
        names.append(f"{entry.name}({', '.join(required)})" if required else entry.name)
    return [make(name) for name in (*names, "pull-min(2)")]


def policies_for(scenario: Scenario, names: Sequence[str]) -> list[Policy]:
    """Return the policies of `names`; without any, the table and `tuned`.

    Raises:
        ValueError: There is no such policy.
    """
    if names:
        return [as_policy(name, scenario) for name in names]
    best = tuned(scenario)
    return [*default_policies(), *([] if best is None else [best])]


def plan_runs(args: Args) -> list[Run]:
    """Return all runs, scenario by scenario, checked.

    Raises:
        ValueError: An argument, a scenario or a policy is not allowed, or they do not fit together.
    """
    scenarios = [load_scenario(name) for name in args.scenario or _default_scenarios(args)]
    if args.trace is not None:
        scenarios.insert(0, llm_gateway(Trace(args.trace, args.time, args.size)))
    check_argument.distinct("scenario", [scenario.name for scenario in scenarios])
    check_argument.distinct("seed", args.seed)
    runs = []
    for scenario in scenarios:
        customers = args.customers
        if customers is None and scenario.replay is None:
            customers = QUICK_CUSTOMERS if args.quick else FULL_CUSTOMERS
        policies = policies_for(scenario, args.policy)
        check_argument.distinct("policy", [policy.name for policy in policies])
        for policy in policies:
            check_fit(policy, scenario)  # refuses pools that the scenario lacks
            for seed in args.seed:
                check_run(customers, seed, args.replications, args.warmup, args.workers)
                warmup, batch = run_lengths(scenario, policy, customers, args.replications, args.warmup)
                length = args.replications * (warmup + BATCHES * batch)
                runs.append(Run(scenario, policy, seed, customers, length))
    return runs


def _default_scenarios(args: Args) -> Sequence[str]:
    if args.trace is not None:
        return ()
    return QUICK_SCENARIOS if args.quick else scenario_names()


def simulate_all(runs: Sequence[Run], args: Args, rows: Path, command: str) -> tuple[Results, bool]:
    """Make the runs, and append a row to the file `rows` as each one ends.

    Returns:
        The results, and whether all runs were made; an interruption keeps those that were.
    """
    results: Results = {}
    with progress_bar("leaderboard", sum(run.length for run in runs), sys.stderr.isatty()) as report:
        try:
            simulate("small-mixed", make("random"), 10_000, warmup=0)  # compile before time is taken
            for run in runs:
                result = simulate(
                    run.scenario,
                    run.policy,
                    run.customers,
                    seed=run.seed,
                    replications=args.replications,
                    warmup=args.warmup,
                    workers=args.workers,
                )
                content = row(run.scenario, run.policy, result, command=command, workers=args.workers)
                write_rows(rows, [content])
                results.setdefault((run.scenario.name, run.policy.name), []).append(result)
                report(run.length)
        except KeyboardInterrupt:
            return results, False
    return results, True


def boards(runs: Sequence[Run], results: Results, seeds: int) -> Iterator[Board]:
    """Yield each scenario's board, of the policies with runs on all seeds."""
    for scenario in {run.scenario.name: run.scenario for run in runs}.values():
        policies = {run.policy.name: run.policy for run in runs if run.scenario.name == scenario.name}
        done = [(policy, results.get((scenario.name, name), [])) for name, policy in policies.items()]
        complete = [(policy, by_seed) for policy, by_seed in done if len(by_seed) == seeds]
        if complete:
            yield board(scenario, complete)


def leaderboard(args: Args, command: str) -> int:
    """Make all runs, print tables, write rows and figure; return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    from baselines.leaderboard.figure import draw  # matplotlib takes half a second

    runs = plan_runs(args)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    folder = args.out or Path("results") / f"leaderboard-{stamp}"
    if (folder / ROWS).exists():
        raise ValueError(f"out is {str(folder)!r}: it holds {ROWS} already; name another folder")
    folder.mkdir(parents=True, exist_ok=True)  # an impossible folder is refused before anything runs
    results, finished = simulate_all(runs, args, folder / ROWS, command)
    out = console()
    complete = list(boards(runs, results, len(args.seed)))
    for part in complete:
        out.print(table(part))
    if complete:
        out.print("Written:", folder / ROWS, *draw(complete, folder))
    if not finished:
        done = sum(map(len, results.values()))
        out.print(f"Interrupted: {done} of {len(runs)} runs were done; only they are shown.", style="red")
    return 0 if finished else 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, or `arguments`, and return the exit status."""
    called = ["-m", "baselines.leaderboard", *(arguments or ())]
    command = command_line(sys.orig_argv[1:] if arguments is None else called)
    args = tyro.cli(Args, prog="python -m baselines.leaderboard", description=DESCRIPTION, args=arguments)
    return exit_status(lambda: leaderboard(args, command))


if __name__ == "__main__":
    sys.exit(main())
