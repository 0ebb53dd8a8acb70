"""`simulate`: run a scenario under a policy, and return estimates with intervals."""

from __future__ import annotations

import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from pull_env.policy.lookup import PolicyLike, as_policy
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario, ScenarioLike, as_scenario
from pull_env.scenario.trace import scaled_trace
from pull_env.scenario.validation import check_argument
from pull_env.simulation.kernel_data.customers import Workload
from pull_env.simulation.policy_runner import PolicyRunner, check_fit
from pull_env.simulation.progress import Report, progress_bar
from pull_env.simulation.results import Counts, Recorder, Result, summarise
from pull_env.simulation.warmup import warmup_customers
from pull_env.simulation.workload import workload_for

BATCHES = 32  # per replication: for the drift test, and for the interval of a single replication
BLOCK = 250_000  # customers between two reports of progress, and two checks for interruption


def simulate(
    scenario: ScenarioLike,
    policy: PolicyLike,
    customers: int | None = None,
    *,
    seed: int = 0,
    replications: int = 8,
    warmup: int | None = None,
    workers: int | None = None,
    workload: Workload | None = None,
    progress: bool = False,
) -> Result:
    """Simulate routers that follow `policy` on `scenario`.

    The same arguments give the same result, whatever `workers` is. Replication k uses the streams of (seed,
    k), whatever the policy: two policies on one seed meet the same customers; compare them by
    `statistics.paired`.

    Args:
        scenario: A `Scenario`, a preset's name, or the path of a TOML file.
        policy: A `Policy`, a name such as `balanced(2)` or `tuned`, or the path of a TOML file.
        customers: Counted customers over all replications, rounded up to whole batches; None: 1,000,000, or a
            whole trace.
        seed: From 0.
        replications: Independent runs, over which intervals are taken; a single one is divided into batches.
        warmup: Customers of each replication that are not counted; None: five relaxation times, or none for a
            trace.
        workers: Threads; None: one per core.
        workload: Feeds of the calendar clock; None: as the scenario says.
        progress: Whether to show a progress bar on standard error.

    Raises:
        ValueError: An argument is not allowed; the message says what is.
    """
    scenario = as_scenario(scenario)
    policy = as_policy(policy, scenario)
    check_run(customers, seed, replications, warmup, workers)
    workload = workload or workload_for(scenario, policy.steps)
    check_fit(policy, scenario)
    warmup, batch = run_lengths(scenario, policy, customers, replications, warmup)
    started = time.perf_counter()
    stop = threading.Event()

    def replicate(replication: int, report: Report) -> Counts:
        runner = PolicyRunner(scenario, policy, workload)
        runner.reset(seed, replication)
        _run(runner, warmup, report, stop)
        recorder = Recorder(runner.simulator)
        for _ in range(BATCHES):
            _run(runner, batch, report, stop)
            recorder.end_batch()
        return recorder.counts()

    total = replications * (warmup + BATCHES * batch)
    threads = min(workers or os.cpu_count() or 1, replications)
    with (
        progress_bar(f"{policy.name} on {scenario.name}", total, progress) as report,
        ThreadPoolExecutor(threads) as pool,
    ):
        try:
            counts = list(pool.map(lambda k: replicate(k, report), range(replications)))
        except BaseException:
            stop.set()
            raise
    return summarise(scenario, counts, seed=seed, warmup=warmup, seconds=time.perf_counter() - started)


def _run(runner: PolicyRunner, customers: int, report: Report, stop: threading.Event) -> None:
    """Run `customers` customers, in blocks short enough to be interrupted."""
    while customers > 0 and not stop.is_set():
        block = min(customers, BLOCK)
        runner.run(block)
        report(block)
        customers -= block


def check_run(
    customers: int | None, seed: int, replications: int, warmup: int | None, workers: int | None
) -> None:
    """Refuse arguments of a run that are not allowed."""
    check_argument.whole("seed", seed, 0)
    check_argument.whole("replications", replications, 1)
    for name, value, least in (("customers", customers, 1), ("warmup", warmup, 0), ("workers", workers, 1)):
        check_argument.optional(check_argument.whole, name, value, least)


def run_lengths(
    scenario: Scenario, policy: Policy | None, customers: int | None, replications: int, warmup: int | None
) -> tuple[int, int]:
    """Return the customers of the warm-up, and of each batch of a replication.

    Raises:
        ValueError: A trace has too few customers.
    """
    if scenario.replay is None:
        warmup = warmup_customers(scenario, policy) if warmup is None else warmup
        return warmup, math.ceil((customers or 1_000_000) / (replications * BATCHES))
    available = scaled_trace(scenario)[0].size
    warmup = warmup or 0
    most = (available - warmup) // BATCHES
    batch = most if customers is None else math.ceil(customers / (replications * BATCHES))
    if not 1 <= batch <= most:
        raise ValueError(
            f"customers is {customers}: {scenario.replay.trace} has {available}, a replication may count "
            f"{max(most, 0) * BATCHES} of them after a warm-up of {warmup}"
        )
    return warmup, batch
