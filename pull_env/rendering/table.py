"""The text picture: tables of pools and routers, for logs and terminals."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from pull_env.rendering.snapshot import LEVEL_NAMES, LEVELS, Integers, Snapshot, format_mean, level_index
from pull_env.simulation.simulator import Simulator

if TYPE_CHECKING:
    from rich.table import Table

EACH_ROUTER = 12  # up to so many routers get a line each; of more, a histogram of their messages is shown


def ansi(simulator: Simulator) -> str:
    """Return a text: run so far, last customer, pools by queue, routers by messages.

    Args:
        simulator: One that was reset; it is not changed.
    """
    from rich.console import Console

    snapshot = Snapshot(simulator)
    page = Console(file=StringIO(), width=200, color_system=None, markup=False, highlight=False, emoji=False)
    page.print(f"{snapshot.scenario.name}: time {snapshot.time:.2f}, {snapshot.placed} customers")
    means = (("wait", snapshot.wait), ("messages", snapshot.messages), ("cost", snapshot.cost))
    page.print(", ".join(f"{name} {format_mean(mean, '.4g')}" for name, mean in means), "per customer")
    page.print(snapshot.last_customer())
    page.print(_pools(snapshot))
    page.print(_routers(snapshot) if snapshot.scenario.routers <= EACH_ROUTER else _many_routers(snapshot))
    text: str = page.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"


def _pools(snapshot: Snapshot) -> Table:
    """Return a row per pool: how many servers have each queue length or are closed."""
    closes = snapshot.scenario.faults is not None and snapshot.scenario.faults.blocks
    table = _table("pool", "servers", "rate", "buffer", "customers", *_levels("queue"), *["closed"] * closes)
    for j, pool in enumerate(snapshot.scenario.pools):
        queues = snapshot.queues[snapshot.starts[j] : snapshot.starts[j + 1]]
        limit = "-" if pool.buffer is None else str(pool.buffer)
        closed = [str(snapshot.closed[snapshot.starts[j] : snapshot.starts[j + 1]].sum())] * closes
        what = str(j), str(pool.size), f"{pool.rate:g}", limit, str(queues.sum())
        table.add_row(*what, *_counts(queues), *closed)
    return table


def _routers(snapshot: Snapshot) -> Table:
    """Return a row per router: the messages that it holds."""
    table = _table("router", "messages", *(f"of pool {j}" for j in range(snapshot.held.shape[1])), "")
    for router, held in enumerate(snapshot.held):
        marks = [
            mark
            for mark, marked in (("had the last", snapshot.last_router), ("has the next", snapshot.router))
            if marked == router
        ]
        table.add_row(str(router), str(held.sum()), *map(str, held), ", ".join(marks))
    return table


def _many_routers(snapshot: Snapshot) -> Table:
    """Return a row per pool: how many routers hold how many messages from it."""
    table = _table("routers by messages", "messages", *_levels("hold"))
    table.add_row("of any pool", str(snapshot.held.sum()), *_counts(snapshot.held.sum(axis=1)))
    for j, held in enumerate(snapshot.held.T):
        table.add_row(f"of pool {j}", str(held.sum()), *_counts(held))
    return table


def _levels(first: str) -> tuple[str, ...]:
    """Return the headings of the levels; the first says what is counted."""
    return (f"{first} {LEVEL_NAMES[0]}", *LEVEL_NAMES[1:])


def _counts(values: Integers) -> list[str]:
    """Return how many of the values are at each level, as text."""
    counts = np.bincount(level_index(values), minlength=len(LEVELS))
    return [str(count) if count else "." for count in counts]


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    return table
