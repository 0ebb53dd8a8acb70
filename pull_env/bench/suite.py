"""What a benchmark measures, in which order, and how its files come to be: all at the end, or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pull_env.bench import engine, envs, peers, processes
from pull_env.bench.timing import Measurement
from pull_env.policy.policy import Policy
from pull_env.scenario.validation import check_argument
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.progress import progress_bar

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 10_000)
ENVS = ((100, (256, 4096)), (10_000, (256,)))  # servers, and how many envs at once
SECONDS, QUICK_SECONDS = 0.2, 0.05
PROCESS_TIMINGS = 3  # each starts anew

Task = Callable[[], Iterator[Measurement]]


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        policies: Whose customers a second are measured by size and by cores.
        pull: The policy that is measured by routers, at the start of a process and in memory.
        two_choices: The policy that the peers simulate.
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
        """Refuse what cannot be measured.

        Raises:
            ValueError: A field is not allowed; the message names it, its value, and what is.
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
                check_fit(policy, engine.system(n))  # refuses pools, tables and networks of other systems

    def tasks(self) -> Iterator[Task]:
        """Yield what to do, in order: the peak of memory is that of another process, so none disturbs it."""
        for n in self.sizes:
            for policy in self.policies:
                system = engine.system(n)
                yield partial(engine.customers, "policies", policy.name, system, policy, self.seconds)
        for policy in self.policies:
            yield partial(engine.by_cores, self.sizes[0], policy, self.cores, self.seconds)
        for routers in engine.ROUTERS:
            system = engine.system(engine.ROUTERS_SERVERS, routers)
            yield partial(engine.customers, "routers", self.pull.name, system, self.pull, self.seconds)
        yield from self._env_tasks()
        yield partial(processes.starts, self.pull, 2 if self.quick else PROCESS_TIMINGS)
        if not self.quick:
            yield partial(processes.cold_start, self.pull)
        yield partial(processes.memory, self.pull)
        yield partial(processes.footprint, self.pull)
        timings = 1 if self.quick else PROCESS_TIMINGS
        yield partial(peers.compare, self.two_choices, self.seconds, timings)

    def _env_tasks(self) -> Iterator[Task]:
        yield partial(envs.no_op, self.seconds)
        threads = sorted({1, max(self.cores)})
        for n, counts in ((100, (256,)),) if self.quick else ENVS:
            yield partial(envs.singles, n, self.seconds)
            for count in counts:
                yield from (partial(envs.vector, n, count, k, self.seconds) for k in threads)
        yield partial(envs.by_kind, ENVS[0][0], self.seconds)


def all_cores() -> tuple[int, ...]:
    """Return 1, 2, 4 and so on, and the number of cores."""
    most = os.cpu_count() or 1
    return tuple(sorted({*(1 << k for k in range(most.bit_length())), most}))


def measure(plan: Plan, progress: bool) -> list[Measurement]:
    """Return what all tasks of `plan` measure.

    Args:
        plan: Checked.
        progress: Whether to show a progress bar on standard error.

    Raises:
        OSError: A process that is measured fails.
    """
    tasks = list(plan.tasks())
    found: list[Measurement] = []
    with progress_bar("bench", len(tasks), progress) as report:
        for task in tasks:
            found.extend(task())
            report(1)
    return found
