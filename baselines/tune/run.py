"""`python -m baselines.tune`: the best hand-made policy for a scenario, as TOML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tomli_w
import tyro
from tyro.conf import arg

from baselines.tune.race import Log, Plan, choose, race
from pull_env.policy.policy import Policy, without_none
from pull_env.reporting.console import command_line, console, exit_status
from pull_env.reporting.describe import plus_minus
from pull_env.reporting.flags import SCENARIO, Seed, Switch, Workers
from pull_env.reporting.rows import provenance
from pull_env.reporting.run_folder import write_text
from pull_env.scenario.scenario import load_scenario, scenario_names
from pull_env.scenario.validation import check_argument
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.results import Result
from pull_env.simulation.simulate import check_run, simulate

DESCRIPTION = """Tune a policy for a scenario: messages to take, probes, stopping wait, announcements, memory.

All candidates meet the same customers; many run short, few run long. The winner is chosen on customers that
the search did not meet, and its cost is measured on new ones again. An interrupted search keeps its
measurements, and the same command continues it.

For example:
  python -m baselines.tune --scenario two-speeds
  python -m baselines.tune --scenario mine.toml --quick
  python -m baselines.leaderboard --scenario two-speeds --policy results/tune/two-speeds.toml pandora"""

QUICK = Plan(trials=40, shortest=50_000, finalists=2, chosen_by=400_000, reported=400_000)
ABOUT = """# The best policy that a search found for the scenario named below, by the command below.
# The cost is that of an arriving customer, measured on customers that the search never met.
"""


@dataclass(frozen=True)
class Args:
    """What to tune for, and how long."""

    scenario: Annotated[tuple[str, ...], arg(help=f"{SCENARIO}; by default all presets.")] = ()
    quick: Switch = False
    """Fewer candidates and shorter runs: a few seconds, to try it."""
    trials: int | None = None
    """Candidates in the first rung; by default 240 (quick: 40)."""
    seed: Seed = 0
    workers: Workers = None
    out: Path = Path("results") / "tune"
    """Folder for NAME.toml, the winner, and NAME.jsonl, a row per measurement."""


def choose_plan(args: Args, quick: Plan) -> Plan:
    """Return how much is simulated.

    Raises:
        ValueError: An argument is not allowed.
    """
    check_run(None, args.seed, 1, None, args.workers)
    plan = quick if args.quick else Plan()
    check_argument.optional(check_argument.whole, "trials", args.trials, 1)
    return replace(plan, trials=args.trials or plan.trials)


def open_logs(args: Args, plan: Plan) -> list[Log]:
    """Return the logs of scenarios without a winner; nothing is written yet.

    Raises:
        ValueError: A scenario is not allowed, or all have winners, which are never replaced.
    """
    scenarios = [load_scenario(name) for name in args.scenario or scenario_names()]
    check_argument.distinct("scenario", [scenario.name for scenario in scenarios])
    logs: list[Log] = []
    done: list[Log] = []
    for scenario in scenarios:
        if scenario.replay is not None:
            raise ValueError(f"{scenario.name} replays a trace once: to tune, set arrivals.block")
        winner = args.out / f"{scenario.name}.toml"
        factor = max(1, round(scenario.servers / 5000))  # large systems take longer to fill
        longer = replace(plan, shortest=factor * plan.shortest)
        log = Log(winner.with_suffix(".jsonl"), scenario, longer, args.seed, args.workers)
        (done if winner.exists() else logs).append(log)
        if winner.exists() and not log.begun:
            raise ValueError(f"{winner} is there already: name another folder, or delete it")
    if not logs:
        raise ValueError(f"{done[0].path.with_suffix('.toml')} is there already: name another folder")
    return logs


def find_winner(log: Log) -> tuple[Policy, Result]:
    """Return the best policy of a search, and its result on new customers.

    Raises:
        ValueError: No stable policy was found.
    """
    plan, scenario = log.plan, log.scenario
    with progress_bar(
        f"tuning for {scenario.name}", plan.trials + plan.finalists + 1, sys.stderr.isatty()
    ) as report:
        winner = choose(log, race(log, report), report)
        result = simulate(
            scenario,
            winner,
            plan.reported,
            seed=log.seeds["report"],
            replications=plan.replications,
            warmup=plan.warmup,
            workers=log.workers,
        )
        report(1)
    if not result.stable:
        raise ValueError(
            f"the policy found for {scenario.name} is unstable on other customers: more trials may help"
        )
    return winner, result


def winner_toml(log: Log, winner: Policy, result: Result, command: str) -> str:
    """Return the winner as a policy file, with its provenance and cost."""
    origin, scenario = provenance(command, 1), log.scenario
    about = {
        "command": command,
        "time": origin["time"],
        "package": origin["package"],
        "versions": {"python": origin["machine"]["python"], **origin["versions"]},
        "scenario": {"name": scenario.name, "version": scenario.version, "sha256": scenario.digest},
        "search": {"candidates": log.plan.trials, "measurements": log.measurements, "seeds": log.seeds},
        "run": {"customers": result.customers, "warmup": result.warmup, "replications": result.replications},
        "cost": result.cost.to_dict(),
        "wait": result.wait.to_dict(),
        "messages": result.messages["total"].to_dict(),
    }
    return ABOUT + tomli_w.dumps(without_none({**winner.to_dict(), "about": about}))


def tune(args: Args, command: str, quick: Plan = QUICK) -> int:
    """Tune for every scenario, write and print the winners; return the status.

    Raises:
        ValueError: An argument is not allowed, or no stable policy was found.
    """
    try:
        import optuna  # noqa: F401  so that rows record its version
    except ModuleNotFoundError:
        raise ValueError("optuna is missing: pip install 'pull-env[tune]'") from None

    logs, out = open_logs(args, choose_plan(args, quick)), console()
    for log in logs:
        log.begin(command)
        try:
            winner, result = find_winner(log)
        except KeyboardInterrupt:
            out.print(f"Interrupted: {log.path} keeps the measurements; the same command continues.")
            return 130
        path = log.path.with_suffix(".toml")
        write_text(path, winner_toml(log, winner, result, command))
        cost, wait, messages = map(plus_minus, (result.cost, result.wait, result.messages["total"]))
        out.print(f"{log.scenario.name}: cost {cost}, wait {wait}, messages {messages}")
        out.print("Written:", path, log.path)
    return 0


def main(arguments: Sequence[str] | None = None, quick: Plan = QUICK) -> int:
    """Run the command line, or `arguments`, and return the exit status.

    Args:
        arguments: Instead of the command line.
        quick: How much `--quick` simulates.
    """
    called = ["-m", "baselines.tune", *(arguments or ())]
    command = command_line(sys.orig_argv[1:] if arguments is None else called)
    args = tyro.cli(Args, prog="python -m baselines.tune", description=DESCRIPTION, args=arguments)
    return exit_status(lambda: tune(args, command, quick))


if __name__ == "__main__":
    sys.exit(main())
