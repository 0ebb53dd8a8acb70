"""`python -m pull_env`: simulate, scenarios, policies and bench."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich import box
from rich.table import Table
from tyro.conf import Positional, arg

from pull_env.policy.lookup import as_policy, named_policies
from pull_env.policy.policy import Policy
from pull_env.reporting.console import console, exit_status
from pull_env.reporting.flags import POLICY, SCENARIO, Customers, Replications, Seed, Switch, Warmup, Workers
from pull_env.scenario.scenario import Scenario, Trace, load_scenario, scenario_names, traced_names

if TYPE_CHECKING:
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
    scenario: Annotated[Positional[str], arg(metavar="SCENARIO", help=f"{SCENARIO}; see `scenarios`.")],
    policy: Annotated[Positional[str], arg(metavar="POLICY", help=f"{POLICY}; see `policies`.")],
    *,
    customers: Customers = None,
    seed: Seed = 0,
    replications: Replications = 8,
    warmup: Warmup = None,
    workers: Workers = None,
    trace: Annotated[str | None, arg(metavar="PATH", help="Recorded customers, for llm-gateway.")] = None,
    json: Annotated[Switch, arg(help="Print scenario, policy and result as one JSON object.")] = False,
) -> int:
    """Simulate a policy on a scenario; print waiting, messages and cost.

    Every measure has a 95 % interval; an unstable run has no means.
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
    """List the presets; those that need a trace come last."""
    from pull_env.reporting.describe import pools_line, workload_line

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "servers", "pools", "routers", "load", "workload", "price: wait, message, block"):
        table.add_column(heading)
    systems = [load_scenario(name) for name in scenario_names()]
    systems += [load_scenario(name, trace="PATH") for name in traced_names()]
    for scenario in systems:
        prices = f"{scenario.prices.wait:g}, {scenario.prices.message:g}, {scenario.prices.block:g}"
        routers = f"{scenario.routers}{' (unequal)' if isinstance(scenario.shares, tuple) else ''}"
        table.add_row(
            scenario.name,
            str(scenario.servers),
            pools_line(scenario),
            routers,
            f"{scenario.nominal_load:g}",
            workload_line(scenario),
            prices,
        )
    console().print(table)
    return 0


def policies() -> int:
    """List the named policies with their arguments and sources."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("rule for each customer", "messages", "reference"):
        table.add_column(heading)
    for entry in named_policies().POLICIES.values():
        table.add_row(entry.usage, entry.rule, entry.messages, entry.reference)
    console().print(table)
    return 0


def bench(
    *,
    quick: Switch = False,
    policies: Annotated[tuple[str, ...], arg(metavar="NAME ...")] = MEASURED,
    sizes: Annotated[tuple[int, ...] | None, arg(metavar="N ...")] = None,
    cores: Annotated[tuple[int, ...] | None, arg(metavar="K ...")] = None,
    seconds: Annotated[float | None, arg(metavar="S")] = None,
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("results") / "bench",
) -> int:
    """Measure customers and env steps per second, start-up time and memory.

    Also of other simulators.

    Print tables, and write bench.json (every timing, with versions and machine) and bench.png, which replace
    earlier files of those names at the end. Other simulators are SimPy, Ciw and Cimba, if installed.

    Args:
        quick: Fewer sizes, shorter timings, no start without compiled kernels: under half a minute.
        policies: Names such as "balanced(2)", or paths of TOML files.
        sizes: Numbers of servers; by default 100 to 1,000,000 (quick: 100 and 10,000).
        cores: Numbers of threads; by default 1, 2, 4 and so on up to all cores.
        seconds: Length of a timing, of which there are five (fewer of what starts a process); by default 0.2
            (quick: 0.05).
        out: Folder for the files.
    """
    if find_spec("pull_env.bench") is None:
        raise ValueError(
            "bench runs from a checkout of the repository: the installed package has no benchmark"
        )
    from pull_env.bench import run as benchmark
    from pull_env.reporting.rows import checkout

    plan = benchmark.Plan(
        policies=tuple(as_policy(name) for name in policies),
        pull=as_policy("pull"),
        two_choices=as_policy("power-of-d(2)"),
        sizes=sizes if sizes is not None else benchmark.QUICK_SIZES if quick else benchmark.SIZES,
        cores=cores if cores is not None else benchmark.all_cores(),
        seconds=seconds if seconds is not None else benchmark.QUICK_SECONDS if quick else benchmark.SECONDS,
        quick=quick,
    )
    plan.check()
    checkout(Path(__file__).parents[1])  # before anything is written, which would make the tree unclean
    out.mkdir(parents=True, exist_ok=True)
    benchmark.publish(benchmark.measure(plan, progress=sys.stderr.isatty()), out)
    return 0


def _print_result(scenario: Scenario, policy: Policy, result: Result) -> None:
    from pull_env.reporting.describe import TRACE_NOTE, decimals, growth_line, run_line, system_line
    from pull_env.scenario.trace import skipped_rows
    from pull_env.simulation.warmup import warmup_customers
    from pull_env.theory.prediction import lower_bounds, predict

    out = console()
    out.print(f"{policy.name} on {scenario.name}", style="bold")
    out.print(system_line(scenario))
    out.print(f"{run_line([result])}; {result.seconds:.1f} s")
    if not result.stable:
        out.print(f"Unstable: {growth_line(scenario, result.growth)}; no mean is claimed.", style="red")
        advised = warmup_customers(scenario, policy)
        if result.warmup < advised and scenario.replay is None:
            out.print(f"Or the warm-up is too short: {advised:,} customers are advised.", style="red")
        return
    table = Table("measure", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("mean", "95 % interval", "theory"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    predictions = predict(scenario, policy) or {
        name: bound for name, bound in lower_bounds(scenario).items() if bound.value > 0
    }
    for name, measure, estimate, unit in _measures(scenario, result):
        d = decimals(estimate)
        interval = f"{estimate.low:.{d}f} to {estimate.high:.{d}f}" if estimate.error else "no variance"
        known = predictions.get(measure)
        theory = f"{known.value:.{d}f} {known.kind}" if known else ""
        table.add_row(name, f"{estimate.mean:.{d}f}", interval, theory, unit)
    out.print(table)
    for kind, meaning in KINDS_OF_THEORY.items():
        sources = {entry.source: None for entry in predictions.values() if entry.kind == kind}
        if sources:
            out.print(f"Theory, {kind} ({meaning}): {', '.join(sources)}.")
    if scenario.replay is not None:
        out.print(TRACE_NOTE)
    if isinstance(scenario.arrivals, Trace) and scenario.arrivals.bad_rows is not None:
        out.print(f"Skipped rows of {scenario.arrivals.trace}: {skipped_rows(scenario.arrivals):,}.")


def _measures(scenario: Scenario, result: Result) -> Iterator[tuple[str, str, Estimate, str]]:
    """Yield each measure of a run: its name, its key in theory, value, unit."""
    yield "cost", "cost", result.cost, "per customer, at the scenario's prices"
    yield "wait", "wait", result.wait, "time units, of accepted customers"
    for probability, quantile in result.wait_quantiles.items():
        yield f"  {100 * probability:g} % quantile", "quantile", quantile, "time units"
    yield "response", "response", result.response, "time units, wait plus service"
    yield "P(wait)", "p_wait", result.p_wait, "share of accepted customers"
    yield "P(block)", "p_block", result.p_block, "share of all customers"
    if scenario.faults is not None and scenario.faults.customers == "lost":
        yield "P(lost)", "p_lost", result.p_lost, "share of all customers, lost at failures"
    yield "E[N]", "mean_number", result.mean_number, "customers in the system"
    for j, (pool, busy) in enumerate(zip(scenario.pools, result.busy, strict=True)):
        yield f"busy, pool {j}", f"busy {j}", busy, f"share of its {pool.size} servers at rate {pool.rate:g}"
    yield "messages", "total", result.messages["total"], "per customer"
    for kind, messages in result.messages.items():
        if kind != "total":
            yield f"  {kind}", kind, messages, "per customer"
    if scenario.news is not None:
        yield "  stale", "stale", result.stale, "pull-messages out of date on arrival, per customer"
        yield "  lost", "missed", result.missed, "messages lost, per customer"


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
