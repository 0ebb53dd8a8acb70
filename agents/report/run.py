"""Score all trained routers beside other policies, and write agents/README.md.

Every router is simulated on the same customers as every baseline and the tuned policy, with seeds that no
training used. Rows that exist for the same customers are not measured again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import FlagCreatePairsOff

import baselines
from agents.general.benchmark import ROWS as GENERAL_ROWS
from agents.general.figure import Row
from agents.report.page import FULL_INFORMATION, FULL_INFORMATION_POLICIES, PRICES, page, price_name
from agents.zoo.registry import TrainedRouter, load_trained, trained_names
from baselines.leaderboard.run import default_policies
from baselines.policies.tuned import tuned
from pull_env.policy.policy import Policy, Search
from pull_env.reporting.console import command_line, console
from pull_env.reporting.flags import Workers
from pull_env.reporting.rows import checkout, read_rows, replace_rows, row, write_rows
from pull_env.reporting.run_folder import ROWS, write_text
from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.view import observation_names
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import check_run, simulate
from pull_env.theory.exact import solve
from pull_env.theory.optimum import optimise

HERE = Path(__file__).parents[1]
PAGE = "README.md"
TRANSFER_BASELINES = ("balanced(2)",)  # beside the tuned policy, on systems of other sizes and loads
SIZES = (20, 1_000, 10_000)
OTHER_LOADS = (-0.1, 0.1)
RUN = ("customers", "replications", "warmup", "seed")
LONGER = 4  # factor of the customers if phases of arrivals, or busy periods, last for thousands
NEAR_CAPACITY = 0.95  # load from which busy periods do
WARMUP_PER_SERVER = 30  # customers
MANY_SERVERS = 5_000  # from which half of the replications are enough


@dataclass(frozen=True)
class Args:
    """How long to measure."""

    quick: FlagCreatePairsOff[bool] = False
    """Short runs, fewer policies, no large systems: for a try."""
    page: FlagCreatePairsOff[bool] = False
    """Measure nothing: make the page again from the existing rows."""
    seed: int = 0
    """Seeds the customers of all runs; no training uses them, whatever its seed."""
    customers: int = 1_000_000
    """Customers counted per policy and system, over all replications; more where arrivals have phases."""
    replications: int = 16
    """Independent runs, from which the intervals are computed."""
    warmup: int = 25_000
    """Customers of each replication before the counted ones, for 100 servers; more for more servers."""
    workers: Workers = None
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for rows and page; by default that of the code; with --quick results/agents-quick."""


def run(args: Args) -> int:
    """Measure what is missing, write rows and page, and return the exit status.

    Raises:
        ValueError: An argument is not allowed, or there are no rows to make a page from.
    """
    if args.quick:
        args = replace(args, customers=20_000, replications=4, warmup=500)
    check_run(args.customers, args.seed, args.replications, args.warmup, args.workers)
    checkout(HERE.parent)  # before anything is written: rows name the state of the sources that measured them
    results = args.out or (Path("results") / "agents-quick" if args.quick else HERE / "results")
    page_folder = (args.out or HERE) if not args.quick or args.out else results
    path = results / ROWS
    rows = {tuple(row["key"]): row for row in read_rows(path)} if path.exists() else {}
    if not args.page:
        wanted = list(tasks(args))
        measure_missing(args, wanted, rows, path)
        rows = {task.key(args): rows[task.key(args)] for task in wanted}
        replace_rows(path, list(rows.values()))
    if not rows:
        raise ValueError(f"{path} holds no rows")
    general = results / GENERAL_ROWS
    text = page(list(rows.values()), read_rows(general) if general.exists() else ())
    write_text(page_folder / PAGE, text)
    console().print("Written:", path, page_folder / PAGE)
    return 0


@dataclass(frozen=True)
class Task:
    """One simulation.

    Attributes:
        part: `preset`, `price` (another price of a message), `transfer` (another system), or `in sight`
            (full information for free).
        system: What differs from the preset, in words; empty: nothing.
        role: `learned`, `tuned`, `start` (the policy that training started from), `baseline`, or `optimum`.
        trained: The router that it is compared with.
        scenario: What is simulated.
        policy: The policy of its routers.
    """

    part: str
    system: str
    role: str
    trained: TrainedRouter
    scenario: Scenario
    policy: Policy

    def run(self, args: Args) -> dict[str, Any]:
        """Return how much is simulated, and with which seed, as arguments of `simulate`."""
        scenario = self.scenario
        if self.part == "transfer":  # many systems: a quarter of the customers, half the replications
            factor, fewer, per_server = 1 / 4, 2, 10
            longer_warmup = 1
        else:
            phased = isinstance(scenario.arrivals, Bursts) or isinstance(scenario.shares, HotRouter)
            slow = scenario.never_blocks and scenario.nominal_load > NEAR_CAPACITY
            factor, longer_warmup = (LONGER if phased or slow else 1), (LONGER if slow else 1)
            fewer, per_server = (2 if scenario.servers >= MANY_SERVERS else 1), WARMUP_PER_SERVER
        least_warmup = 0 if args.quick else per_server * scenario.servers
        return {
            "customers": max(1, int(args.customers * factor)),
            "replications": max(2, args.replications // fewer),
            "warmup": max(args.warmup * longer_warmup, least_warmup),
            "seed": spawn_seeds(args.seed, 1, "report of trained routers")[0],
        }

    def key(self, args: Args) -> tuple[Any, ...]:
        """Return what identifies its row."""
        run = self.run(args)
        task = (self.part, self.system, self.role, self.trained.name)
        return (*task, self.scenario.digest, self.policy.digest, *(run[name] for name in RUN))


def tasks(args: Args) -> Iterator[Task]:
    """Yield all that is to be measured, router by router."""
    for name in trained_names():
        trained = load_trained(name)
        scenario = trained.scenario
        if trained.full_information:
            yield from full_information_tasks(trained)
            continue
        known = [("learned", trained.policy), ("tuned", tuned(scenario)), ("start", trained.start)]
        own = [(role, policy) for role, policy in known if policy is not None]
        few = [("baseline", baselines.make(rival)) for rival in TRANSFER_BASELINES]
        many = (
            [*few, ("baseline", baselines.make("pull"))]
            if args.quick
            else [("baseline", policy) for policy in default_policies()]
        )
        for role, policy in (*own, *many):
            yield Task("preset", "", role, trained, scenario, policy)
        for price in PRICES:
            priced = replace(scenario, prices=replace(scenario.prices, message=price))
            for role, policy in (*own[:2], ("baseline", baselines.make("pandora"))):
                if reads_price(policy, scenario) and priced != scenario:
                    yield Task("price", price_name(price), role, trained, priced, policy)
        for system, other in transfer_systems(scenario, args.quick):
            for role, policy in (*own[:2], *few):
                yield Task("transfer", system, role, trained, other, policy)


def full_information_tasks(trained: TrainedRouter) -> Iterator[Task]:
    """Yield the tasks of a router with full information, beside the optimum."""
    policies = [("learned", trained.policy), ("optimum", optimise(trained.scenario).policy())]
    policies += [("baseline", baselines.make(name)) for name in FULL_INFORMATION_POLICIES]
    for role, policy in policies:
        yield Task(FULL_INFORMATION, "", role, trained, trained.scenario, policy)


def transfer_systems(scenario: Scenario, quick: bool) -> Iterator[tuple[str, Scenario]]:
    """Yield systems of other sizes and loads, which a router was not trained on."""
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


def measure_missing(args: Args, wanted: Sequence[Task], rows: dict[tuple[Any, ...], Row], path: Path) -> None:
    """Measure the tasks without a row, and append each row at once."""
    missing = [task for task in wanted if task.key(args) not in rows]
    with progress_bar("scores", len(missing), sys.stderr.isatty()) as report:
        for task in missing:
            rows[task.key(args)] = measure(args, task)
            write_rows(path, [rows[task.key(args)]])
            report(1)


def measure(args: Args, task: Task) -> Row:
    """Return the row of a task."""
    result = simulate(task.scenario, task.policy, workers=args.workers, **task.run(args))
    command = command_line(sys.orig_argv[1:])
    content: Row = {
        **row(task.scenario, task.policy, result, command=command, workers=args.workers),
        "part": task.part,
        "system": task.system,
        "role": task.role,
        "trained": task.trained.name,
        "reads_price": reads_price(task.policy, task.scenario),
        "key": list(task.key(args)),
        "samples": {"cost": result.cost.samples, "messages": result.messages["total"].samples},
    }
    if task.role == "learned":
        content["training"] = task.trained.training
    if task.part == FULL_INFORMATION and task.role != "baseline":
        content["exact"] = solve(task.scenario, task.policy).cost
    return content


def reads_price(policy: Policy, scenario: Scenario) -> bool:
    """Return whether what a policy does depends on the price of a message.

    In a network that started as a chain the weights of the price and the load, which are constant, are 0.
    """
    network, price = policy.network, observation_names(scenario).index("router: message price")
    weighs = network is not None and bool(network.layers[0][0][:, price].any())
    return weighs or any(isinstance(step, Search) for step in policy.steps)
