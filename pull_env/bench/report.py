"""Tables, rows and picture of a benchmark: medians of timings, their ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter
from rich import box
from rich.table import Table

from pull_env.bench.timing import Measurement
from pull_env.reporting.rows import policy_content, provenance, scenario_content

TitledTable = tuple[str, Table]

NOTE = "Median of the timings, their range in brackets; of this machine at this moment."
FONT = 8
STYLES = (  # marker and colour (Okabe and Ito): distinct without colour, too
    ("o", "#0072B2"),
    ("s", "#D55E00"),
    ("^", "#009E73"),
    ("D", "#CC79A7"),
    ("v", "#E69F00"),
    ("P", "#56B4E9"),
    ("X", "#000000"),
)


def tables(measurements: Sequence[Measurement]) -> Iterator[TitledTable]:
    """Yield a title and a table for each kind of measurement."""
    for kind, make in MAKERS.items():
        if of_kind := [m for m in measurements if m.kind == kind]:
            yield make(of_kind)


def _cell(m: Measurement, scale: float = 1.0) -> str:
    """Return the median and the range, to three digits."""
    median, low, high = (_digits(value * scale) for value in (m.median, m.low, m.high))
    return median if len(m.values) == 1 else f"{median} ({low} to {high})"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _by_size(measurements: Sequence[Measurement]) -> TitledTable:
    cells = {(m.name, m.servers): _cell(m.nanoseconds()) for m in measurements}
    return "ns per customer, one thread", _grid(cells, "n = {:,}")


def _by_cores(measurements: Sequence[Measurement]) -> TitledTable:
    cells = {(m.name, m.threads): _cell(m, 1e-6) for m in measurements}
    return f"million customers per second, n = {measurements[0].servers:,}", _grid(cells, "threads: {}")


def _grid(cells: dict[tuple[str, int], str], heading: str) -> Table:
    """Return a table of cells by policy and number."""
    numbers = dict.fromkeys(number for _, number in cells)
    table = _table("policy", *map(heading.format, numbers))
    for name in dict.fromkeys(name for name, _ in cells):
        table.add_row(name, *(cells[name, number] for number in numbers))
    return table


def _by_routers(measurements: Sequence[Measurement]) -> TitledTable:
    table = _table("routers", "ns per customer")
    for m in measurements:
        table.add_row(f"{m.scenario.routers:,}" if m.scenario else "", _cell(m.nanoseconds()))
    return f"{measurements[0].name}, n = {measurements[0].servers:,}, one thread", table


def _envs(measurements: Sequence[Measurement]) -> TitledTable:
    table = _table("env", "n", "envs", "threads", "steps")
    for m in measurements:
        size = f"{m.servers:,}" if m.scenario else "-"
        table.add_row(m.name, size, f"{m.envs:,}", str(m.threads), _cell(m, 1e-3))
    return "thousand env steps per second, pull_env/Router-v0", table


def _starts(measurements: Sequence[Measurement]) -> TitledTable:
    table = _table("until", "seconds")
    for m in measurements:
        table.add_row(m.name, _cell(m))
    return "from the start of a process", table


def _memory(measurements: Sequence[Measurement]) -> TitledTable:
    table = _table("what", "taken")
    for m in measurements:
        large = m.median >= 1 << 20
        table.add_row(m.name, f"{m.median / (1 << 20):,.0f} MiB" if large else f"{m.median:,.3g} bytes")
    return f"memory of {_policy(measurements[0])}, R = 10", table


def _peers(measurements: Sequence[Measurement]) -> TitledTable:
    ours = measurements[0]
    table = _table("simulator", "ns per customer", "times ours")
    for m in measurements:
        table.add_row(m.name, _cell(m.nanoseconds()), _digits(ours.median / m.median))
    return f"{_policy(ours)}, n = {ours.servers}, one thread", table


def _policy(m: Measurement) -> str:
    return "" if m.policy is None else m.policy.name


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="right" if column else "left")
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
    """Return everything that is known about a measurement, as plain JSON values."""
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


def draw(measurements: Sequence[Measurement], path: Path) -> None:
    """Draw time per customer by servers, and speed by threads, to `path`."""
    sizes = [m for m in measurements if m.kind == "policies"]
    cores = [m for m in measurements if m.kind == "cores"]
    names = list(dict.fromkeys(m.name for m in sizes))
    figure = Figure((9.6, 4.4), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, (marker, colour) in zip(names, cycle(STYLES), strict=False):
        style = {"marker": marker, "color": colour, "label": name}
        _line(left, [(m.servers, m.nanoseconds()) for m in sizes if m.name == name], style)
        _line(right, [(m.threads, m) for m in cores if m.name == name], style, 1e-6)
    left.set(xscale="log", yscale="log")
    _label(left, "R = 10 routers, one thread", "servers", "ns per customer")
    right.set_ylim(bottom=0)
    right.xaxis.set_major_locator(FixedLocator(sorted({m.threads for m in cores})))
    servers = f"{cores[0].servers:,}" if cores else ""
    _label(right, f"n = {servers} servers, R = 10 routers", "threads", "million customers per second")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize=FONT)
    figure.supxlabel("Median of the timings; bars show their range.", fontsize=FONT)
    figure.savefig(path, format="png")


def _line(
    axes: Axes, points: Sequence[tuple[int, Measurement]], style: dict[str, str], scale: float = 1.0
) -> None:
    x = [position for position, _ in points]
    y = [scale * m.median for _, m in points]
    below = [scale * (m.median - m.low) for _, m in points]
    above = [scale * (m.high - m.median) for _, m in points]
    axes.errorbar(x, y, [below, above], markersize=4.5, linewidth=1, elinewidth=1, capsize=2, **style)  # type: ignore[arg-type]


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=FONT + 1)
    axes.set_xlabel(x, fontsize=FONT)
    axes.set_ylabel(y, fontsize=FONT)
    axes.tick_params(labelsize=FONT - 1)
    axes.grid(alpha=0.25, linewidth=0.6)
    if axes.get_yscale() == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
