"""The tables of a benchmark: the middle of the timings, and their ends in brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table

from pull_env.bench.timing import Measurement
from pull_env.reporting.rows import policy_content, provenance, scenario_content

Titled = tuple[str, Table]

NOTE = "Middle of the timings, least and greatest in brackets: of this machine at this moment."


def tables(found: Sequence[Measurement]) -> Iterator[Titled]:
    """Yield a title and a table of each kind of `found`."""
    of = {kind: [m for m in found if m.kind == kind] for kind in dict.fromkeys(m.kind for m in found)}
    for kind, make in MAKERS.items():
        if kind in of:
            yield make(of[kind])


def shown(m: Measurement, scale: float = 1.0) -> str:
    """Return the middle and the ends, to three digits."""
    middle, low, high = (_digits(value * scale) for value in (m.median, m.low, m.high))
    return middle if len(m.values) == 1 else f"{middle} ({low} to {high})"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _by_size(found: Sequence[Measurement]) -> Titled:
    cells = {(m.name, m.servers): shown(m.nanoseconds()) for m in found}
    return "ns a customer, one thread", _grid(cells, "n = {:,}")


def _by_cores(found: Sequence[Measurement]) -> Titled:
    cells = {(m.name, m.threads): shown(m, 1e-6) for m in found}
    return f"million customers a second, n = {found[0].servers:,}", _grid(cells, "threads: {}")


def _grid(cells: dict[tuple[str, int], str], heading: str) -> Table:
    """Return a table of cells by policy and number."""
    numbers = dict.fromkeys(number for _, number in cells)
    table = _table("policy", *map(heading.format, numbers))
    for name in dict.fromkeys(name for name, _ in cells):
        table.add_row(name, *(cells[name, number] for number in numbers))
    return table


def _by_routers(found: Sequence[Measurement]) -> Titled:
    table = _table("routers", "ns a customer")
    for m in found:
        table.add_row(f"{m.scenario.routers:,}" if m.scenario else "", shown(m.nanoseconds()))
    return f"{found[0].name}, n = {found[0].servers:,}, one thread", table


def _envs(found: Sequence[Measurement]) -> Titled:
    table = _table("env", "n", "envs", "threads", "steps")
    for m in found:
        size = f"{m.servers:,}" if m.scenario else "-"
        table.add_row(m.name, size, f"{m.envs:,}", str(m.threads), shown(m, 1e-3))
    return "thousand env steps a second, pull_env/Router-v0", table


def _starts(found: Sequence[Measurement]) -> Titled:
    table = _table("until", "seconds")
    for m in found:
        table.add_row(m.name, shown(m))
    return "from the start of a process", table


def _memory(found: Sequence[Measurement]) -> Titled:
    table = _table("what", "taken")
    for m in found:
        large = m.median >= 1 << 20
        table.add_row(m.name, f"{m.median / (1 << 20):,.0f} MiB" if large else f"{m.median:,.3g} bytes")
    return f"memory of {_policy(found[0])}, R = 10", table


def _peers(found: Sequence[Measurement]) -> Titled:
    ours = found[0]
    table = _table("simulator", "ns a customer", "times ours")
    for m in found:
        table.add_row(m.name, shown(m.nanoseconds()), _digits(ours.median / m.median))
    return f"{_policy(ours)}, n = {ours.servers}, one thread", table


def _policy(m: Measurement) -> str:
    return "" if m.policy is None else m.policy.name


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


MAKERS = {
    "policies": _by_size,
    "cores": _by_cores,
    "routers": _by_routers,
    "envs": _envs,
    "starts": _starts,
    "memory": _memory,
    "peers": _peers,
}


def speed_row(measurement: Measurement, *, command: str) -> dict[str, Any]:
    """Return everything that is known about a measurement of speed or memory, as plain JSON values."""
    scenario, policy = measurement.scenario, measurement.policy
    return {
        **provenance(command, measurement.threads),
        "scenario": None if scenario is None else scenario_content(scenario),
        "policy": None if policy is None else {**policy_content(policy), "network": None},
        "run": {"kind": measurement.kind, "name": measurement.name, "envs": measurement.envs}
        | {"warmup": measurement.warmup},
        "unit": measurement.unit,
        "median": measurement.median,
        "low": measurement.low,
        "high": measurement.high,
        "timings": list(measurement.values),
    }
