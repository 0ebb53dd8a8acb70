"""Score the general router on random systems: `python -m agents benchmark`.

For each of forty systems a policy is tuned, as `python -m baselines.tune` does. This policy, the general
router, and the best single policy of the package are compared on the same streams. The single policy is
picked beforehand, by its cost on other systems of the same distribution. Rows that exist are not measured
again.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import baselines
from agents.general.figure import Row, draw
from agents.general.random_systems import SERVERS, draw_systems
from agents.general.router import GENERAL, GeneralRouter, load
from baselines.leaderboard.run import default_policies
from baselines.policies.tuned import tuned
from baselines.tune.race import Log, Plan, choose, race
from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Policy
from pull_env.reporting.console import command_line, console
from pull_env.reporting.flags import Workers
from pull_env.reporting.rows import (
    checkout,
    provenance,
    read_rows,
    replace_rows,
    scenario_content,
    write_rows,
)
from pull_env.scenario.scenario import Scenario, load_scenario, scenario_names
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import check_run, simulate

HERE = Path(__file__).parents[1]
ROWS, PICTURE = "systems.jsonl", "front.png"
BESIDE = ("pandora", "pull-weighted", "balanced(2)", "probe-until-idle(8)")  # on every system
REPLICATIONS = 8
PART = "exam"  # of rows: the random systems


@dataclass(frozen=True)
class Scope:
    """What is measured; no flags, tests shorten it."""

    servers: tuple[int, int] = SERVERS
    plan: Plan | None = None  # of the tuning; None: by system
    presets: tuple[str, ...] = scenario_names()
    price_presets: tuple[str, ...] = ("two-speeds", "bursty")  # where messages have several prices
    prices: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    any_price: tuple[str, ...] = (  # policies that do not depend on the price
        "weighted",
        "weighted-round-robin",
        "pull-weighted",
        "pull-fastest",
        "jiq",
        "balanced(2)",
        "balanced(3)",
        "power-of-d(2)",
        "probe-until-idle(2)",
        "probe-until-idle(4)",
        "probe-until-idle(8)",
        "lsq(2, 16)",
    )


@dataclass(frozen=True)
class Args:
    """How much to measure."""

    router: Annotated[Path, tyro.conf.arg(metavar="FILE")] = GENERAL
    """Weights of the router, as `python -m agents generalise` writes them."""
    systems: int = 40
    """Random systems to score on."""
    picking: int = 30
    """Training systems on which the single policy is picked."""
    trials: int = 240
    """Candidates of the tuning for each system."""
    warmup: float = 500.0
    """Mean service times of each of eight replications before the counted ones."""
    time: float = 1_000.0
    """Mean service times that each replication counts; four times as many in systems that change."""
    customers: int = 1_000_000
    """Customers counted at least, over all replications."""
    seed: int = 0
    """Seeds the systems and their customers."""
    workers: Workers = None
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = HERE / "results"
    """Folder of the rows; logs of the tuning go to results/exam."""
    scope: tyro.conf.Suppress[Scope] = Scope()


def run(args: Args) -> int:
    """Measure what is missing, and return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    check_run(args.customers, args.seed, 1, None, args.workers)
    checkout(HERE.parent)  # before anything is written: rows name the state of the sources that measured them
    rows, router = Rows(args.out / ROWS), load(args.router)
    tune_missing(args, rows)
    tasks = list(scores(args, router, pick_single(args, rows)))
    with progress_bar("scores", len(tasks), sys.stderr.isatty()) as report:
        for part, role, scenario, policy, seed in tasks:
            if rows.find(part, scenario, role, run_of(args, scenario, seed), policy.digest) is None:
                rows.add(measure(args, part, scenario, policy, role, seed))
            report(1)
    rows.drop_unused()
    picture = draw(rows.used, args.out / PICTURE)
    console().print("Written:", rows.path, picture)
    console().print("python -m agents report --page makes the page of it")
    return 0


class Rows:
    """The rows of a file: those that are there are reused, those not used are dropped."""

    def __init__(self, path: Path) -> None:
        """Read the rows that are there."""
        self.path = path
        self.rows: list[Row] = read_rows(path) if path.exists() else []
        self.used: list[Row] = []

    def add(self, row: Row) -> Row:
        """Append a row."""
        write_rows(self.path, [row])
        self.rows.append(row)
        self.used.append(row)
        return row

    def drop_unused(self) -> None:
        """Drop rows not used: of another router, or of other systems."""
        replace_rows(self.path, self.used)

    def find(
        self, part: str, scenario: Scenario, role: str, run: dict[str, int], digest: str | None = None
    ) -> Row | None:
        """Return the row of such a run, with this digest if one is given; None if missing."""
        wanted = (part, role, scenario.digest, run)
        for row in self.rows:
            same = (row["part"], row["role"], row["scenario"]["sha256"], row["run"]) == wanted
            if same and (digest is None or digest == row["policy"]["sha256"]):
                self.used.append(row)
                return row
        return None


def tune_missing(args: Args, rows: Rows) -> None:
    """Tune for every system without a row, and measure the tuned policy."""
    for scenario, seed in benchmark_systems(args):
        if rows.find(PART, scenario, "tuned", run_of(args, scenario, seed)) is None:
            rows.add(measure(args, PART, scenario, tune(args, scenario, args.seed), "tuned", seed))


def benchmark_systems(args: Args) -> Iterator[tuple[Scenario, int]]:
    """Return the random systems to score on, and the seeds of their customers."""
    systems = draw_systems(args.seed, args.systems, "exam", args.scope.servers)
    return zip(systems, spawn_seeds(args.seed, args.systems, "exam customers"), strict=True)


def tune(args: Args, scenario: Scenario, seed: int) -> Policy:
    """Return the best policy that tuning finds for a system."""
    plan = args.scope.plan or plan_of(args, scenario)
    log = Log(Path("results") / "exam" / f"{scenario.name}.jsonl", scenario, plan, seed, args.workers)
    log.begin(command_line(sys.orig_argv[1:]))
    with progress_bar(
        f"tuning for {scenario.name}", plan.trials + plan.finalists, sys.stderr.isatty()
    ) as report:
        return choose(log, race(log, report), report)


def plan_of(args: Args, scenario: Scenario) -> Plan:
    """Return how much tuning simulates: fifty service times or more at first."""
    per_time = arrivals_per_service(scenario)
    return Plan(
        trials=args.trials,
        shortest=max(100_000, round(50 * REPLICATIONS * per_time)),
        chosen_by=max(1_000_000, round(500 * REPLICATIONS * per_time)),
        warmup=round(args.warmup * per_time),
    )


def arrivals_per_service(scenario: Scenario) -> float:
    """Return the customers that arrive in a mean service time."""
    return scenario.total_arrival_rate * mean_service_time(scenario)


def run_of(args: Args, scenario: Scenario, seed: int) -> dict[str, int]:
    """Return how much is simulated of a system, as arguments of `simulate`."""
    per_time = arrivals_per_service(scenario)
    changing = any((scenario.arrivals, scenario.shares, scenario.faults, scenario.news))
    counted = REPLICATIONS * args.time * (4 if changing else 1) * per_time
    return {
        "customers": max(args.customers, round(counted)),
        "warmup": round(args.warmup * per_time),
        "replications": REPLICATIONS,
        "seed": seed,
    }


def measure(args: Args, part: str, scenario: Scenario, policy: Policy, role: str, seed: int) -> Row:
    """Return the row of a policy on a system."""
    run: dict[str, Any] = run_of(args, scenario, seed)
    result = simulate(scenario, policy, workers=args.workers, **run)
    content: Row = {"name": policy.name, "sha256": policy.digest}
    if role == "tuned":
        content["content"] = policy.to_dict()
    measures = {"cost": result.cost, "wait": result.wait, "messages": result.messages["total"]}
    return {
        **provenance(command_line(sys.orig_argv[1:]), args.workers or os.cpu_count() or 1),
        "part": part,
        "role": role,
        "scenario": scenario_content(scenario),
        "policy": content,
        "run": run,
        "stable": result.stable,
        "samples": {name: list(measured.samples) for name, measured in measures.items()},
    }


def pick_single(args: Args, rows: Rows) -> str:
    """Return the name of the policy that is best on average on training systems.

    The average is of the logarithm of its cost / that of the cheapest; a policy that is unstable somewhere is
    never picked.
    """
    policies, costs = default_policies(), []
    systems = draw_systems(args.seed, args.picking, servers=args.scope.servers)
    shorter = replace(args, warmup=args.warmup / 5, time=args.time / 5, customers=args.customers // 5)
    with progress_bar("picking a single policy", len(systems), sys.stderr.isatty()) as report:
        for scenario, seed in zip(systems, spawn_seeds(args.seed, len(systems), "picking"), strict=True):
            run = run_of(shorter, scenario, seed)
            row = rows.find("picking", scenario, "all", run)
            row = row or rows.add(measure_all(args, scenario, policies, run))
            known = [row["costs"].get(policy.name) for policy in policies]
            costs.append([math.inf if cost is None else cost for cost in known])
            report(1)
    table = np.array(costs)
    excess = np.log(table / table.min(axis=1, keepdims=True)).mean(axis=0)
    return policies[int(excess.argmin())].name


def measure_all(args: Args, scenario: Scenario, policies: Sequence[Policy], run: dict[str, Any]) -> Row:
    """Return a row of the costs of policies on a system; null if unstable."""
    results = {policy.name: simulate(scenario, policy, workers=args.workers, **run) for policy in policies}
    return {
        **provenance(command_line(sys.orig_argv[1:]), args.workers or os.cpu_count() or 1),
        "part": "picking",
        "role": "all",
        "scenario": scenario_content(scenario),
        "run": run,
        "costs": {name: result.cost.mean if result.stable else None for name, result in results.items()},
    }


def scores(
    args: Args, router: GeneralRouter, single: str
) -> Iterator[tuple[str, str, Scenario, Policy, int]]:
    """Yield what is to be measured: part, role, system, policy and seed."""
    for scenario, seed in benchmark_systems(args):
        yield PART, "general", scenario, router.on(scenario), seed
        yield PART, "single", scenario, baselines.make(single), seed
        for name in BESIDE:
            yield PART, name, scenario, baselines.make(name), seed
    seed, scope, pandora = spawn_seeds(args.seed, 1, "exam presets")[0], args.scope, baselines.make("pandora")
    for scenario in map(load_scenario, scope.presets):
        policies = {"general": router.on(scenario), "tuned": tuned(scenario), "pandora": pandora}
        for role, policy in policies.items():
            if policy is not None:
                yield "preset", role, scenario, policy, seed
    for scenario in map(load_scenario, scope.price_presets):
        for name in scope.any_price:
            yield "front", name, scenario, baselines.make(name), seed
        for price in scope.prices:
            priced = replace(scenario, prices=replace(scenario.prices, message=price))
            yield "front", "general", priced, router.on(priced), seed
            yield "front", "pandora", priced, pandora, seed
