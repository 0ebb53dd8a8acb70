"""A progress bar on standard error, for work of over a few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int], None]  # called with the work done since the last call


@contextmanager
def progress_bar(title: str, total: int, shown: bool) -> Iterator[Report]:
    """Show a progress bar within the context; yields a function that reports progress.

    Args:
        title: What is being done.
        total: Units of work.
        shown: False: nothing is shown, and `rich` is not imported.
    """
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)
