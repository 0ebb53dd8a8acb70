"""The text picture: tables of pools and routers, plain enough for a log and narrow enough for a terminal."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from pull_env.rendering.snapshot import LEVEL_NAMES, LEVELS, Integers, Snapshot, level, number
from pull_env.simulation.simulator import Simulator

if TYPE_CHECKING:
    from rich.table import Table

EACH_ROUTER = 12  # so many routers get a line each; of more it is counted how many hold how much


def ansi(simulator: Simulator) -> str:
    """Return a text on a simulator: the run so far, the last customer, pools by queue, routers by messages.

    Args:
        simulator: One that was reset; it is left as it is.
    """
    from rich.console import Console

    shot = Snapshot(simulator)
    page = Console(file=StringIO(), width=200, color_system=None, markup=False, highlight=False, emoji=False)
    page.print(f"{shot.scenario.name}: time {shot.time:.2f}, {shot.placed} customers placed")
    means = {"wait": shot.wait, "messages": shot.messages, "cost": shot.cost}
    page.print(", ".join(f"{name} {number(mean, '.4g')}" for name, mean in means.items()), "a customer")
    page.print(shot.last_customer())
    page.print(_pools(shot))
    page.print(_routers(shot) if shot.scenario.routers <= EACH_ROUTER else _many_routers(shot))
    text: str = page.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"


def _pools(shot: Snapshot) -> Table:
    """Return a line for each pool: what it is, and how many of its servers have each queue length.

    Where servers may be down or drained, how many are closed as well.
    """
    closes = shot.scenario.faults is not None and shot.scenario.faults.blocks
    table = _table("pool", "servers", "rate", "buffer", "customers", *_levels("queue"), *["closed"] * closes)
    for j, pool in enumerate(shot.scenario.pools):
        queues = shot.queues[shot.starts[j] : shot.starts[j + 1]]
        limit = "-" if pool.buffer is None else str(pool.buffer)
        closed = [str(shot.closed[shot.starts[j] : shot.starts[j + 1]].sum())] * closes
        what = str(j), str(pool.size), f"{pool.rate:g}", limit, str(queues.sum())
        table.add_row(*what, *_counts(queues), *closed)
    return table


def _routers(shot: Snapshot) -> Table:
    """Return a line for each router: the messages that it holds."""
    table = _table("router", "messages", *(f"of pool {j}" for j in range(shot.held.shape[1])), "")
    for router, held in enumerate(shot.held):
        marks = [
            mark
            for mark, marked in (("placed the last", shot.sender), ("has the next", shot.router))
            if marked == router
        ]
        table.add_row(str(router), str(held.sum()), *map(str, held), ", ".join(marks))
    return table


def _many_routers(shot: Snapshot) -> Table:
    """Return a line for each pool: how many routers hold how many messages from it."""
    table = _table("routers by messages", "messages", *_levels("hold"))
    table.add_row("of any pool", str(shot.held.sum()), *_counts(shot.held.sum(axis=1)))
    for j, held in enumerate(shot.held.T):
        table.add_row(f"of pool {j}", str(held.sum()), *_counts(held))
    return table


def _levels(first: str) -> tuple[str, ...]:
    """Return the headings of the levels; the first says what is counted."""
    return (f"{first} {LEVEL_NAMES[0]}", *LEVEL_NAMES[1:])


def _counts(values: Integers) -> list[str]:
    """Return how many of the values stand at each level, a text each."""
    counts = np.bincount(level(values), minlength=len(LEVELS))
    return [str(count) if count else "." for count in counts]


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    return table
