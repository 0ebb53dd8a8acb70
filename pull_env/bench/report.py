"""The tables of a benchmark: the middle of the timings, and their ends in brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from pull_env.bench.engine import ROUTERS_SERVERS
from pull_env.bench.timing import Measurement

NOTE = "Middle of the timings, least and greatest in brackets: of this machine at this moment."


def tables(found: Sequence[Measurement]) -> Iterator[Table]:
    """Yield a table of each kind of `found`."""
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


def _by_size(found: Sequence[Measurement]) -> Table:
    rows = {(m.name, m.servers): shown(m.nanoseconds()) for m in found}
    return _grid("ns a customer, one thread", rows, lambda n: f"n = {n:,}")


def _by_cores(found: Sequence[Measurement]) -> Table:
    rows = {(m.name, m.threads): shown(m, 1e-6) for m in found}
    title = f"million customers a second, n = {found[0].servers:,}"
    return _grid(title, rows, lambda k: f"{k} thread{'s' if k > 1 else ''}")


def _grid(title: str, cells: dict[tuple[str, int], str], heading: object) -> Table:
    """Return a table of cells by name and number."""
    assert callable(heading)
    names, numbers = (list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1))
    table = _table(title, "policy", *map(heading, numbers))
    for name in names:
        table.add_row(str(name), *(cells[str(name), int(number)] for number in numbers))
    return table


def _by_routers(found: Sequence[Measurement]) -> Table:
    title = f"{found[0].name}, n = {ROUTERS_SERVERS:,}"
    table = _table(title, *(f"R = {m.scenario.routers:,}" for m in found if m.scenario))
    table.add_row(*(f"{shown(m.nanoseconds())} ns" for m in found))
    return table


def _envs(found: Sequence[Measurement]) -> Table:
    table = _table("thousand env steps a second, pull_env/Router-v0", "env", "n", "envs", "threads", "steps")
    for m in found:
        size = f"{m.servers:,}" if m.scenario else "-"
        table.add_row(m.name, size, f"{m.envs:,}", str(m.threads), shown(m, 1e-3))
    return table


def _starts(found: Sequence[Measurement]) -> Table:
    table = _table("from the start of a process", "until", "seconds")
    for m in found:
        table.add_row(m.name, shown(m))
    return table


def _memory(found: Sequence[Measurement]) -> Table:
    table = _table("memory", f"of {found[0].policy.name if found[0].policy else ''}", "taken")
    for m in found:
        large = m.median >= 1 << 20
        table.add_row(m.name, f"{m.median / (1 << 20):,.0f} MiB" if large else f"{m.median:,.3g} bytes")
    return table


def _peers(found: Sequence[Measurement]) -> Table:
    ours = found[0]
    policy, n = ours.policy.name if ours.policy else "", ours.servers
    table = _table(f"{policy}, n = {n}, one thread", "simulator", "ns a customer", "times ours")
    for m in found:
        table.add_row(m.name, shown(m.nanoseconds()), _digits(ours.median / m.median))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
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
