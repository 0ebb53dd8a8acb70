"""The benchmark: its plan, its loop, and its files, written at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pull_env.bench import peers, processes, subjects
from pull_env.bench.report import NOTE, draw, speed_row, tables
from pull_env.bench.timing import Measurement
from pull_env.policy.policy import Policy
from pull_env.reporting.console import command_line, console
from pull_env.reporting.rows import to_line
from pull_env.reporting.run_folder import replacing
from pull_env.scenario.validation import check_argument
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.progress import progress_bar

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 10_000)
ENVS = ((100, (256, 4096)), (10_000, (256,)))  # servers, and how many envs at once
SECONDS, QUICK_SECONDS = 0.2, 0.05
PROCESS_TIMINGS = 3  # each starts a process

Task = Callable[[], Iterator[Measurement]]


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        policies: Measured by size and by cores.
        pull: Measured by routers, at the start of a process, and in memory.
        two_choices: The policy that the peers simulate, too.
        sizes: Numbers of servers.
        cores: Numbers of threads.
        seconds: Length of a timing.
        quick: Whether to leave out what takes long: a start without compiled kernels, the larger envs.
    """

    policies: tuple[Policy, ...]
    pull: Policy
    two_choices: Policy
    sizes: tuple[int, ...]
    cores: tuple[int, ...]
    seconds: float
    quick: bool

    def check(self) -> None:
        """Check that the plan can be measured.

        Raises:
            ValueError: A field is not allowed; the message names it, its value, and what is allowed.
        """
        most = os.cpu_count() or 1
        check_argument.each("sizes", self.sizes, check_argument.whole, least=2)
        check_argument.each("cores", self.cores, check_argument.whole, least=1, most=most)
        check_argument.distinct("sizes", self.sizes)
        check_argument.distinct("cores", self.cores)
        check_argument.distinct("policies", [policy.name for policy in self.policies])
        check_argument.positive("seconds", self.seconds)
        for policy in self.policies:
            for n in self.sizes:
                check_fit(policy, subjects.system(n))  # refuses pools, tables and networks of other systems

    def tasks(self) -> Iterator[Task]:
        """Yield what to do, in order."""
        for n in self.sizes:
            for policy in self.policies:
                system = subjects.system(n)
                yield partial(subjects.customers, "policies", policy.name, system, policy, self.seconds)
        for policy in self.policies:
            yield partial(subjects.by_cores, self.sizes[0], policy, self.cores, self.seconds)
        for routers in subjects.ROUTERS:
            system = subjects.system(subjects.ROUTERS_SERVERS, routers)
            yield partial(subjects.customers, "routers", self.pull.name, system, self.pull, self.seconds)
        yield from self._env_tasks()
        yield partial(processes.starts, self.pull, 2 if self.quick else PROCESS_TIMINGS)
        if not self.quick:
            yield partial(processes.cold_start, self.pull)
        yield partial(processes.memory, self.pull)
        yield partial(processes.footprint, self.pull)
        timings = 1 if self.quick else PROCESS_TIMINGS
        yield partial(peers.compare, self.two_choices, self.seconds, timings)

    def _env_tasks(self) -> Iterator[Task]:
        yield partial(subjects.no_op, self.seconds)
        threads = sorted({1, max(self.cores)})
        for n, counts in ((100, (256,)),) if self.quick else ENVS:
            yield partial(subjects.singles, n, self.seconds)
            for count in counts:
                yield from (partial(subjects.vector, n, count, k, self.seconds) for k in threads)
        yield partial(subjects.by_kind, ENVS[0][0], self.seconds)


def all_cores() -> tuple[int, ...]:
    """Return the powers of 2 up to the number of cores, and that number."""
    most = os.cpu_count() or 1
    return tuple(sorted({*(1 << k for k in range(most.bit_length())), most}))


def measure(plan: Plan, progress: bool) -> list[Measurement]:
    """Run all tasks of `plan`.

    Args:
        plan: One that `check` has accepted.
        progress: Whether to show a progress bar on standard error.

    Raises:
        OSError: A process that is measured fails.
    """
    tasks = list(plan.tasks())
    measurements: list[Measurement] = []
    with progress_bar("bench", len(tasks), progress) as report:
        for task in tasks:
            measurements.extend(task())
            report(1)
    return measurements


def publish(measurements: Sequence[Measurement], folder: Path) -> None:
    """Print the tables of a benchmark, and write its two files."""
    command = command_line(sys.orig_argv[1:])
    paths = [folder / "bench.json", folder / "bench.png"]
    with replacing(*paths) as (json_draft, png_draft):
        lines = ",\n".join(to_line(speed_row(each, command=command)) for each in measurements)
        json_draft.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        draw(measurements, png_draft)
    screen = console()
    for title, table in tables(measurements):
        screen.print(title, style="bold")
        screen.print(table)
    screen.print(NOTE)
    screen.print("Written:", *paths)
