"""Score all trained routers beside everything else, and write agents/README.md.

Every router meets the same customers as every baseline and the tuned policy, on seeds that no training used.
What was measured before, on the same customers, is not measured again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import FlagCreatePairsOff

import baselines
from agents.general.benchmark import ROWS as EXAM
from agents.report.page import ALL_IN_SIGHT, IN_SIGHT, PRICES, page, price_name
from agents.zoo.registry import Trained, load_trained, trained_names
from baselines.leaderboard.run import default_policies
from baselines.policies.tuned import tuned
from pull_env.policy.policy import Policy, Search
from pull_env.reporting.console import command_line, console
from pull_env.reporting.rows import checkout, read_rows, replace_rows, row, write_rows
from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import check_run, simulate
from pull_env.theory.exact import solve
from pull_env.theory.optimum import optimise

HERE = Path(__file__).parents[1]
ROWS, PAGE = "rows.jsonl", "README.md"
ABROAD = ("balanced(2)",)  # beside the tuned policy, where routers are transferred
SIZES = (20, 1_000, 10_000)
OTHER_LOADS = (-0.1, 0.1)
KEY = ("customers", "replications", "warmup", "seed")
PHASED = 4  # times the customers, where phases of arrivals, or queues, last for thousands
NEAR_CAPACITY = 0.95  # load from which they do
SETTLE, MANY = (
    30,
    5_000,
)  # customers a server before the counted ones; servers of which fewer runs tell enough


@dataclass(frozen=True)
class Args:
    """How long to measure."""

    quick: FlagCreatePairsOff[bool] = False
    """Short runs, fewer policies, no large systems: for a try."""
    page: FlagCreatePairsOff[bool] = False
    """Measure nothing: make the page again, from the rows that are there."""
    seed: int = 0
    """Seeds the customers of all runs; no training uses them, whatever its seed."""
    customers: int = 1_000_000
    """Customers counted by policy and system, in all; four times as many on presets in phases."""
    replications: int = 16
    """Independent runs, over which the intervals are taken."""
    warmup: int = 25_000
    """Customers of each replication before the counted ones, for 100 servers; more for more servers."""
    workers: int | None = None
    """Threads; if not given, one a core. The numbers do not depend on it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for rows and page; by default that of the code; with --quick results/agents-quick."""


@dataclass(frozen=True)
class Task:
    """One simulation.

    Attributes:
        part: `preset`, where routers were trained, `price`, where messages cost otherwise, `transfer`, or
            `in sight`, where routers see all queues for nothing.
        system: What differs from the preset, in words; empty: nothing.
        role: `learned`, `tuned`, `start` (the chain that training began with), `baseline`, or `optimum`.
        trained: The router that it is beside.
        scenario: What is simulated.
        policy: What its routers follow.
    """

    part: str
    system: str
    role: str
    trained: Trained
    scenario: Scenario
    policy: Policy

    def run(self, args: Args) -> dict[str, int]:
        """Return how much is simulated, and on which seed."""
        seed = spawn_seeds(args.seed, 1, "report of trained routers")[0]
        if self.part == "transfer":  # many systems: a quarter of the customers, half the replications
            warmup = max(args.warmup, 0 if args.quick else 10 * self.scenario.servers)
            customers, replications = max(1, args.customers // 4), max(2, args.replications // 2)
            return {"customers": customers, "replications": replications, "warmup": warmup, "seed": seed}
        scenario = self.scenario
        phased = isinstance(scenario.arrivals, Bursts) or isinstance(scenario.shares, HotRouter)
        slow = scenario.never_blocks and scenario.nominal_load > NEAR_CAPACITY
        warmup = max(args.warmup * (PHASED if slow else 1), 0 if args.quick else SETTLE * scenario.servers)
        return {
            "customers": args.customers * (PHASED if phased or slow else 1),
            "replications": max(2, args.replications // (2 if scenario.servers >= MANY else 1)),
            "warmup": warmup,
            "seed": seed,
        }

    def key(self, args: Args) -> tuple[Any, ...]:
        """Return what tells its row from others."""
        run = self.run(args)
        where = (self.part, self.system, self.role, self.trained.name)
        return (*where, self.scenario.digest, self.policy.digest, *(run[name] for name in KEY))


def tasks(args: Args) -> Iterator[Task]:
    """Yield all that is to be measured, router by router."""
    for name in trained_names():
        trained = load_trained(name)
        if trained.in_sight:
            yield from tasks_in_sight(trained)
            continue
        known = [("learned", trained.policy), ("tuned", tuned(trained.scenario)), ("start", trained.start)]
        own = [(role, policy) for role, policy in known if policy is not None]
        few = [("baseline", baselines.make(rival)) for rival in ABROAD]
        many = (
            [*few, ("baseline", baselines.make("pull"))]
            if args.quick
            else [("baseline", policy) for policy in default_policies()]
        )
        for role, policy in (*own, *many):
            yield Task("preset", "", role, trained, trained.scenario, policy)
        for price in PRICES:
            scenario = replace(trained.scenario, prices=replace(trained.scenario.prices, message=price))
            for role, policy in (*own[:2], ("baseline", baselines.make("pandora"))):
                if reads_price(policy) and scenario != trained.scenario:
                    yield Task("price", price_name(price), role, trained, scenario, policy)
        for system, scenario in abroad(trained.scenario, args.quick):
            for role, policy in (*own[:2], *few):
                yield Task("transfer", system, role, trained, scenario, policy)


def tasks_in_sight(trained: Trained) -> Iterator[Task]:
    """Yield what is measured of a router that sees all queues: itself, the optimum, and known rules."""
    policies = [("learned", trained.policy), ("optimum", optimise(trained.scenario).policy())]
    policies += [("baseline", baselines.make(name)) for name in ALL_IN_SIGHT]
    for role, policy in policies:
        yield Task(IN_SIGHT, "", role, trained, trained.scenario, policy)


def abroad(scenario: Scenario, quick: bool) -> Iterator[tuple[str, Scenario]]:
    """Yield systems that a router was not trained on: of other sizes and loads."""
    for servers in SIZES[:1] if quick else SIZES:
        pools = tuple(
            replace(pool, size=max(1, round(pool.size * servers / scenario.servers)))
            for pool in scenario.pools
        )
        load = scenario.nominal_load
        yield f"n = {servers:,}", replace(scenario, pools=pools, load=load, arrival_rate=None)
    for more in OTHER_LOADS:
        load = round(scenario.nominal_load + more, 6)
        if load < 1:
            yield f"load {load:g}", replace(scenario, load=load, arrival_rate=None)


def measure(args: Args, task: Task, command: str) -> dict[str, Any]:
    """Return the row of a task."""
    result = simulate(task.scenario, task.policy, workers=args.workers, **task.run(args))
    found = row(task.scenario, task.policy, result, command=command, workers=args.workers)
    samples = {"cost": result.cost.samples, "messages": result.messages["total"].samples}
    told = {"part": task.part, "system": task.system, "role": task.role, "trained": task.trained.name}
    told |= {"reads_price": reads_price(task.policy), "key": list(task.key(args))}
    training = {"training": task.trained.training} if task.role == "learned" else {}
    if task.part == IN_SIGHT and task.role != "baseline":
        told |= {"exact": solve(task.scenario, task.policy).cost}
    return {**found, **told, **training, "samples": samples}


def reads_price(policy: Policy) -> bool:
    """Return whether what a policy does depends on the price of a message.

    In a network that began as a chain the weights of the price and the load, which never changed, are 0.
    """
    network = policy.network
    weighs = network is not None and bool(network.layers[0][0][:, -2].any())
    return weighs or any(isinstance(step, Search) for step in policy.steps)


def known(rows: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return rows by their keys."""
    return {tuple(found["key"]): found for found in rows}


def run(args: Args) -> int:
    """Measure what is missing, write rows and page, and return the exit status.

    Raises:
        ValueError: An argument is not allowed, or there are no rows to make a page from.
    """
    if args.quick:
        args = replace(args, customers=20_000, replications=4, warmup=500)
    command = command_line(sys.orig_argv[1:])
    check_run(args.customers, args.seed, args.replications, args.warmup, args.workers)
    checkout(HERE.parent)  # before anything is written: rows tell the state of the sources that measured them
    results = args.out or (Path("results") / "agents-quick" if args.quick else HERE / "results")
    place = (args.out or HERE) if not args.quick or args.out else results
    path = results / ROWS
    rows = known(read_rows(path)) if path.exists() else {}
    if not args.page:
        wanted = list(tasks(args))
        measure_missing(args, wanted, rows, path, command)
        rows = {task.key(args): rows[task.key(args)] for task in wanted}
        replace_rows(path, list(rows.values()))
    if not rows:
        raise ValueError(f"{path} holds no rows")
    exam = results / EXAM
    general = read_rows(exam) if exam.exists() else ()
    (place / PAGE).write_text(page(list(rows.values()), general), encoding="utf-8")
    console().print("Written:", path, place / PAGE)
    return 0


def measure_missing(
    args: Args, wanted: Sequence[Task], rows: dict[tuple[Any, ...], dict[str, Any]], path: Path, command: str
) -> None:
    """Measure the tasks without a row, and append each as it ends: an interruption loses none."""
    missing = [task for task in wanted if task.key(args) not in rows]
    with progress_bar("scores", len(missing), sys.stderr.isatty()) as told:
        for task in missing:
            found = measure(args, task, command)
            write_rows(path, [found])
            rows[task.key(args)] = found
            told(1)
