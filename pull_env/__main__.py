"""`python -m pull_env`: simulate, scenarios, policies and bench."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich import box
from rich.table import Table
from tyro.conf import FlagCreatePairsOff, Positional, arg

from pull_env.policy.lookup import as_policy, named_policies
from pull_env.policy.policy import Policy
from pull_env.reporting.console import command_line, console, exit_status
from pull_env.reporting.run_folder import replacing
from pull_env.scenario.scenario import Scenario, Trace, load_scenario, scenario_names, traced_names

if TYPE_CHECKING:
    from pull_env.bench.timing import Measurement
    from pull_env.simulation.results import Result
    from pull_env.simulation.statistics import Estimate

KINDS_OF_THEORY = {
    "exact": "for this system",
    "limit": "as the system grows, its pools in proportion",
    "bound": "no policy has less",
}
DESCRIPTION = """Routers for large server systems, simulated exactly, scored on waiting and messages.

For example:
  python -m pull_env scenarios
  python -m pull_env policies
  python -m pull_env simulate two-speeds "balanced(2)"
  python -m pull_env simulate two-speeds pull --customers 200000 --seed 1
  python -m pull_env simulate llm-gateway pull --trace requests.csv
  python -m pull_env simulate my_scenario.toml my_policy.toml --json > result.json
  python -m pull_env bench --quick"""
MEASURED = ("pull", "balanced(2)", "power-of-d(2)", "jsq", "jfsq", "random")


def simulate(
    scenario: Annotated[Positional[str], arg(metavar="SCENARIO")],
    policy: Annotated[Positional[str], arg(metavar="POLICY")],
    *,
    customers: Annotated[int | None, arg(metavar="N")] = None,
    seed: Annotated[int, arg(metavar="S")] = 0,
    replications: Annotated[int, arg(metavar="K")] = 8,
    warmup: Annotated[int | None, arg(metavar="W")] = None,
    workers: Annotated[int | None, arg(metavar="T")] = None,
    trace: Annotated[str | None, arg(metavar="PATH")] = None,
    json: FlagCreatePairsOff[bool] = False,
) -> int:
    """Simulate a policy on a scenario; print waiting, messages and cost.

    Each measure comes with its interval of 95 %. Where queues grow for ever, that is said instead of a mean.

    Args:
        scenario: Name of a preset (see `scenarios`), or path of a TOML file.
        policy: Name such as "balanced(2)" (see `policies`), "tuned", or path of a TOML file.
        customers: Customers to count, over all replications; if not given, 1,000,000, or a whole trace.
        seed: Seed, from 0. The same arguments give the same numbers.
        replications: Independent runs, over which the intervals are taken.
        warmup: Customers of each replication that are not counted; if not given, five relaxation times.
        workers: Threads; if not given, one a core. The numbers do not depend on it.
        trace: File of recorded customers, for a scenario that replays some, such as llm-gateway.
        json: Print one JSON object of scenario, policy and result, and nothing else.
    """
    from pull_env.simulation.simulate import simulate as run

    system = load_scenario(scenario, trace)
    followed = as_policy(policy, system)
    result = run(
        system,
        followed,
        customers,
        seed=seed,
        replications=replications,
        warmup=warmup,
        workers=workers,
        progress=sys.stderr.isatty(),
    )
    if json:
        from pull_env.reporting.rows import to_line

        print(
            to_line({"scenario": system.to_dict(), "policy": followed.to_dict(), "result": result.to_dict()})
        )
    else:
        _print_result(system, followed, result)
    return 0


def scenarios() -> int:
    """List the presets, and after them those that need a trace."""
    from pull_env.reporting.describe import pools_line, workload_line

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "servers", "pools", "routers", "load", "workload", "price: wait, message, block"):
        table.add_column(heading)
    systems = [load_scenario(name) for name in scenario_names()]
    systems += [load_scenario(name, trace="PATH") for name in traced_names()]
    for scenario in systems:
        prices = f"{scenario.prices.wait:g}, {scenario.prices.message:g}, {scenario.prices.block:g}"
        routers = f"{scenario.routers}{'' if not isinstance(scenario.shares, tuple) else ' (unequal)'}"
        load = f"{scenario.nominal_load:g}"
        servers, pools, workload = str(scenario.servers), pools_line(scenario), workload_line(scenario)
        table.add_row(scenario.name, servers, pools, routers, load, workload, prices)
    console().print(table)
    return 0


def policies() -> int:
    """List the named policies, with their arguments and sources."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("what a router does for a customer", "messages", "reference"):
        table.add_column(heading)
    for entry in named_policies().POLICIES.values():
        table.add_row(entry.usage, entry.rule, entry.messages, entry.reference)
    console().print(table)
    return 0


def bench(
    *,
    quick: FlagCreatePairsOff[bool] = False,
    policies: Annotated[tuple[str, ...], arg(metavar="NAME ...")] = MEASURED,
    sizes: Annotated[tuple[int, ...] | None, arg(metavar="N ...")] = None,
    cores: Annotated[tuple[int, ...] | None, arg(metavar="K ...")] = None,
    seconds: Annotated[float | None, arg(metavar="S")] = None,
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("results") / "bench",
) -> int:
    """Measure customers and env steps per second, start-up time and memory.

    Also of other simulators.

    Prints tables, and writes bench.json (every timing, with versions and machine) and bench.png; files of
    those names are replaced at the end, or not at all. Other simulators are SimPy, Ciw and Cimba, as far as
    they are installed.

    Args:
        quick: Fewer sizes and shorter timings, and no start without compiled kernels: under half a minute.
        policies: Names such as "balanced(2)", or paths of TOML files.
        sizes: Numbers of servers; if not given, 100 to 1,000,000 (quick: 100 and 10,000).
        cores: Numbers of threads; if not given, 1, 2, 4 and so on up to all cores.
        seconds: Length of a timing, of which there are five (fewer of what starts a process); if not given,
            0.2 (quick: 0.05).
        out: Folder for the files.
    """
    from pull_env.bench import suite
    from pull_env.reporting.rows import checkout

    plan = suite.Plan(
        policies=tuple(as_policy(name) for name in policies),
        pull=as_policy("pull"),
        two_choices=as_policy("power-of-d(2)"),
        sizes=sizes if sizes is not None else suite.QUICK_SIZES if quick else suite.SIZES,
        cores=cores if cores is not None else suite.all_cores(),
        seconds=seconds if seconds is not None else suite.QUICK_SECONDS if quick else suite.SECONDS,
        quick=quick,
    )
    plan.check()
    checkout(Path(__file__).parents[1])  # before anything is written: rows tell what sources were measured
    out.mkdir(parents=True, exist_ok=True)
    _publish(suite.measure(plan, progress=sys.stderr.isatty()), out)
    return 0


def _publish(found: Sequence[Measurement], folder: Path) -> None:
    """Print the tables of a benchmark, and write its two files."""
    from pull_env.bench.picture import draw
    from pull_env.bench.report import NOTE, speed_row, tables
    from pull_env.reporting.rows import to_line

    command = command_line(sys.orig_argv[1:])
    paths = [folder / "bench.json", folder / "bench.png"]
    with replacing(*paths) as (json_draft, png_draft):
        lines = ",\n".join(to_line(speed_row(each, command=command)) for each in found)
        json_draft.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        draw(found, png_draft)
    screen = console()
    for title, table in tables(found):
        screen.print(title, style="bold")
        screen.print(table)
    screen.print(NOTE)
    screen.print("Written:", *paths)


def _print_result(scenario: Scenario, policy: Policy, result: Result) -> None:
    from pull_env.reporting.describe import TRACE_NOTE, decimals, growth_line, run_line, system_line
    from pull_env.scenario.trace import skipped
    from pull_env.simulation.warmup import warmup_customers
    from pull_env.theory.prediction import lower_bounds, predict

    out = console()
    out.print(f"{policy.name} on {scenario.name}", style="bold")
    out.print(system_line(scenario))
    out.print(f"{run_line([result])}; {result.seconds:.1f} s")
    if not result.stable:
        out.print(f"Unstable: {growth_line(scenario, result.growth)}; no mean is claimed.", style="red")
        settled = warmup_customers(scenario, policy)
        if result.warmup < settled and scenario.replay is None:
            out.print(
                f"Or it still fills: a warm-up of {settled:,} customers is advised.",
                style="red",
            )
        return
    table = Table("measure", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("mean", "95 % interval", "theory"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    known = predict(scenario, policy) or {}
    if not known:
        known = {name: bound for name, bound in lower_bounds(scenario).items() if bound.value > 0}
    for name, measure, estimate, unit in _measures(scenario, result):
        d = decimals(estimate)
        interval = f"{estimate.low:.{d}f} to {estimate.high:.{d}f}" if estimate.error else "the same in all"
        theory = f"{known[measure].value:.{d}f} {known[measure].kind}" if measure in known else ""
        table.add_row(name, f"{estimate.mean:.{d}f}", interval, theory, unit)
    out.print(table)
    for kind, meaning in KINDS_OF_THEORY.items():
        sources = {entry.source: None for entry in known.values() if entry.kind == kind}
        if sources:
            out.print(f"Theory, {kind} ({meaning}): {', '.join(sources)}.")
    if scenario.replay is not None:
        out.print(TRACE_NOTE)
    if isinstance(scenario.arrivals, Trace) and scenario.arrivals.bad_rows is not None:
        out.print(f"Rows of {scenario.arrivals.trace} that were skipped: {skipped(scenario.arrivals):,}.")


def _measures(scenario: Scenario, result: Result) -> Iterator[tuple[str, str, Estimate, str]]:
    """Yield each measure of a run: its name, its key in theory, value, unit."""
    yield "cost", "cost", result.cost, "a customer, at the scenario's prices"
    yield "wait", "wait", result.wait, "time units, of accepted customers"
    for probability, quantile in result.wait_quantiles.items():
        yield f"  {100 * probability:g} % quantile", "quantile", quantile, "time units"
    yield "response", "response", result.response, "time units, wait plus service"
    yield "P(wait)", "p_wait", result.p_wait, "share of accepted customers"
    yield "P(block)", "p_block", result.p_block, "share of all customers"
    if scenario.faults is not None and scenario.faults.customers == "lost":
        yield "P(lost)", "p_lost", result.p_lost, "share of all customers, with a server that failed"
    yield "E[N]", "mean_number", result.mean_number, "customers in the system"
    for j, (pool, busy) in enumerate(zip(scenario.pools, result.busy, strict=True)):
        yield f"busy, pool {j}", f"busy {j}", busy, f"share of its {pool.size} servers at rate {pool.rate:g}"
    yield "messages", "total", result.messages["total"], "a customer"
    for kind, messages in result.messages.items():
        if kind != "total":
            yield f"  {kind}", kind, messages, "a customer"
    if scenario.news is not None:
        yield "  stale", "stale", result.stale, "pull-messages that came too late, a customer"
        yield "  lost", "missed", result.missed, "of all, a customer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, or `arguments`, and return the exit status."""
    commands: dict[str, Callable[..., Any]] = {
        "simulate": simulate,
        "scenarios": scenarios,
        "policies": policies,
        "bench": bench,
    }

    def work() -> int:
        status: int = tyro.extras.subcommand_cli_from_dict(
            commands, prog="python -m pull_env", description=DESCRIPTION, args=arguments
        )
        return status

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main())
