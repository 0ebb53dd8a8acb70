"""Examine the general router on systems it was never trained on: `python -m agents benchmark`.

On each of forty systems a policy is tuned for it alone, as `python -m baselines.tune` does; it, the
general router, and the best single policy of the package meet the same customers. That policy is picked
beforehand, by its cost on other systems of the same distribution. What was measured before is not measured
again.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import baselines
from agents.general.figure import Row, draw
from agents.general.random_systems import draw_systems
from agents.general.router import GENERAL, General, load
from baselines.leaderboard.run import default_policies
from baselines.policies.tuned import tuned
from baselines.tune.race import Log, Plan, choose, race
from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Policy
from pull_env.reporting.console import command_line, console
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
from pull_env.simulation.results import Result
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import check_run, simulate

HERE = Path(__file__).parents[1]
ROWS, PICTURE = "systems.jsonl", "front.png"
BESIDE = ("pandora", "pull-weighted", "balanced(2)", "probe-until-idle(8)")  # in every system
REPLICATIONS = 8
FRONTS = ("two-speeds", "bursty")  # presets on which messages are given several prices
PRICES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BLIND = (  # to prices: one point each
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
    """Systems of the exam."""
    picking: int = 30
    """Systems of the training on which the single policy is picked."""
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
    workers: int | None = None
    """Threads; if not given, one a core. The numbers do not depend on it."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = HERE / "results"
    """Folder of the rows; logs of the tuning go to results/exam."""


def run_of(args: Args, scenario: Scenario, seed: int) -> dict[str, int]:
    """Return how much is simulated of a system, as arguments of `simulate`."""
    each = arrivals_a_service(scenario)
    changing = any((scenario.arrivals, scenario.shares, scenario.faults, scenario.news))
    counted = REPLICATIONS * args.time * (4 if changing else 1) * each
    return {
        "customers": max(args.customers, round(counted)),
        "warmup": round(args.warmup * each),
        "replications": REPLICATIONS,
        "seed": seed,
    }


def arrivals_a_service(scenario: Scenario) -> float:
    """Return the customers that arrive in a mean service time."""
    return scenario.total_arrival_rate * mean_service_time(scenario)


def plan_of(args: Args, scenario: Scenario) -> Plan:
    """Return how much is simulated to tune for a system: the first runs count fifty service times or more."""
    each = arrivals_a_service(scenario)
    return Plan(
        trials=args.trials,
        shortest=max(100_000, round(50 * REPLICATIONS * each)),
        chosen_by=max(1_000_000, round(500 * REPLICATIONS * each)),
        warmup=round(args.warmup * each),
    )


def tune(args: Args, scenario: Scenario, seed: int) -> Policy:
    """Return the best policy that a search by a person's means finds for a system."""
    plan = plan_of(args, scenario)
    log = Log(Path("results") / "exam" / f"{scenario.name}.jsonl", scenario, plan, seed, args.workers)
    log.begin(command_line(sys.orig_argv[1:]))
    with progress_bar(
        f"tuning for {scenario.name}", plan.trials + plan.finalists, sys.stderr.isatty()
    ) as report:
        return choose(log, race(log, report), report)


def measured(args: Args, part: str, scenario: Scenario, policy: Policy, role: str, seed: int) -> Row:
    """Return the row of a policy on a system."""
    run = run_of(args, scenario, seed)
    result = simulate(scenario, policy, workers=args.workers, **run)
    told: Row = {"name": policy.name, "sha256": policy.digest}
    if role == "tuned":
        told["content"] = policy.to_dict()
    return {
        **provenance(command_line(sys.orig_argv[1:]), args.workers or os.cpu_count() or 1),
        "part": part,
        "role": role,
        "scenario": scenario_content(scenario),
        "policy": told,
        "run": run,
        "stable": result.stable,
        "samples": samples(result),
    }


def samples(result: Result) -> dict[str, list[float]]:
    """Return what each replication measured."""
    messages = result.messages["total"].samples
    return {"cost": list(result.cost.samples), "wait": list(result.wait.samples), "messages": list(messages)}


class Book:
    """The rows of a file: what stands there is not measured again, and what nobody asked for is left out."""

    def __init__(self, path: Path) -> None:
        """Read what is there."""
        self.path = path
        self.rows: list[Row] = read_rows(path) if path.exists() else []
        self.asked: list[Row] = []

    def add(self, found: Row) -> Row:
        """Append a row."""
        write_rows(self.path, [found])
        self.rows.append(found)
        self.asked.append(found)
        return found

    def close(self) -> None:
        """Leave out what was not asked for: rows of another router, or of other systems."""
        replace_rows(self.path, self.asked)

    def find(
        self, part: str, scenario: Scenario, role: str, run: dict[str, int], digest: str | None = None
    ) -> Row | None:
        """Return the row of such a run, of a policy of this digest if one is given; None: there is none."""
        for found in self.rows:
            same = (found["part"], found["role"], found["scenario"]["sha256"]) == (
                part,
                role,
                scenario.digest,
            )
            if same and found["run"] == run and (digest is None or digest == found["policy"]["sha256"]):
                self.asked.append(found)
                return found
        return None


def pick(args: Args, book: Book) -> str:
    """Return the name of the policy that is best on average on systems of the training.

    Of each the mean logarithm of its cost by that of the cheapest is taken; what is unstable somewhere is
    out.
    """
    policies, costs = default_policies(), []
    systems = draw_systems(args.seed, args.picking)
    with progress_bar("picking a single policy", len(systems), sys.stderr.isatty()) as report:
        for scenario, seed in zip(systems, spawn_seeds(args.seed, len(systems), "picking"), strict=True):
            run = run_of(short(args), scenario, seed)
            found = book.find("picking", scenario, "all", run)
            found = found or book.add(all_measured(args, scenario, policies, run))
            known = [found["costs"].get(policy.name) for policy in policies]
            costs.append([math.inf if cost is None else cost for cost in known])
            report(1)
    table = np.array(costs)
    excess = np.log(table / table.min(axis=1, keepdims=True)).mean(axis=0)
    return policies[int(excess.argmin())].name


def all_measured(args: Args, scenario: Scenario, policies: Sequence[Policy], run: dict[str, int]) -> Row:
    """Return a row of what each policy costs on a system; null where it is unstable."""
    found = {policy.name: simulate(scenario, policy, workers=args.workers, **run) for policy in policies}
    return {
        **provenance(command_line(sys.orig_argv[1:]), args.workers or os.cpu_count() or 1),
        "part": "picking",
        "role": "all",
        "scenario": scenario_content(scenario),
        "run": run,
        "costs": {name: result.cost.mean if result.stable else None for name, result in found.items()},
    }


def short(args: Args) -> Args:
    """Return how much is measured to pick a policy: a fifth."""
    return replace(args, warmup=args.warmup / 5, time=args.time / 5, customers=args.customers // 5)


def tuned_rows(args: Args, book: Book) -> None:
    """Tune for every system without a row, and measure what was found."""
    systems = draw_systems(args.seed, args.systems, "exam")
    for scenario, seed in zip(systems, spawn_seeds(args.seed, args.systems, "exam customers"), strict=True):
        if book.find("exam", scenario, "tuned", run_of(args, scenario, seed)) is None:
            book.add(measured(args, "exam", scenario, tune(args, scenario, args.seed), "tuned", seed))


def scores(args: Args, router: General, single: str) -> Iterator[tuple[str, str, Scenario, Policy, int]]:
    """Yield what is to be measured: part, role, system, policy and seed."""
    drawn = draw_systems(args.seed, args.systems, "exam")
    for scenario, seed in zip(drawn, spawn_seeds(args.seed, args.systems, "exam customers"), strict=True):
        yield "exam", "general", scenario, router.on(scenario), seed
        yield "exam", "single", scenario, baselines.make(single), seed
        for name in BESIDE:
            yield "exam", name, scenario, baselines.make(name), seed
    seed = spawn_seeds(args.seed, 1, "exam presets")[0]
    for scenario in map(load_scenario, scenario_names()):
        known = {
            "general": router.on(scenario),
            "tuned": tuned(scenario),
            "pandora": baselines.make("pandora"),
        }
        for role, policy in known.items():
            if policy is not None:
                yield "preset", role, scenario, policy, seed
    for scenario in map(load_scenario, FRONTS):
        for name in BLIND:
            yield "front", name, scenario, baselines.make(name), seed
        for price in PRICES:
            priced = replace(scenario, prices=replace(scenario.prices, message=price))
            yield "front", "general", priced, router.on(priced), seed
            yield "front", "pandora", priced, baselines.make("pandora"), seed


def run(args: Args) -> int:
    """Measure what is missing, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    check_run(args.customers, args.seed, 1, None, args.workers)
    checkout(HERE.parent)  # before anything is written: rows tell the state of the sources that measured them
    book, router = Book(args.out / ROWS), load(args.router)
    tuned_rows(args, book)
    wanted = list(scores(args, router, pick(args, book)))
    with progress_bar("scores", len(wanted), sys.stderr.isatty()) as report:
        for part, role, scenario, policy, seed in wanted:
            if book.find(part, scenario, role, run_of(args, scenario, seed), policy.digest) is None:
                book.add(measured(args, part, scenario, policy, role, seed))
            report(1)
    book.close()
    picture = draw(book.asked, args.out / PICTURE)
    console().print("Written:", book.path, picture)
    console().print("python -m agents report --page makes the page of it")
    return 0
