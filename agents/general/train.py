"""Train one router for many systems: `python -m agents generalise`.

First every plan is simulated on random systems, and the planner learns to predict what they cost. Then CMA-ES
searches a player, for when to use what is remembered: all candidates of a generation are compared on the same
streams of the same systems, each generation on new ones, by the mean logarithm of the cost. The mean of the
candidates is validated on other systems at intervals, and the best is saved.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import pull_env
from agents.general.planner import STEPS, measure_plans, short_run_cost, train
from agents.general.random_systems import SERVERS, SPANS, Spans, draw_systems
from agents.general.router import GENERAL, RECALL, SHAPES, Floats, GeneralRouter, save
from agents.search.cma_es import MOST_GENERATIONS, check_limits, progress
from agents.training.commands import repeatable
from pull_env.reporting.console import command_line
from pull_env.reporting.flags import Workers
from pull_env.reporting.rows import machine, versions, write_rows
from pull_env.reporting.run_folder import CURVE, TRAINING, choose_folder, plain_arguments, write_json
from pull_env.scenario.scenario import Scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.seeds import spawn_seeds

WEIGHTS = GENERAL.name
MOST_GAIN = 0.5  # of the logarithm of a cost / that at the start: no system counts for more


@dataclass(frozen=True)
class Scale:
    """How large systems and runs are; no flags, tests shorten it."""

    servers: tuple[int, int] = SERVERS
    spans: Spans = SPANS
    planner_steps: int = STEPS
    worthwhile: float = 1.5  # messages per customer, see `Planned`


@dataclass(frozen=True)
class Args:
    """How much to train on, and how long."""

    systems: int = 1_500
    """Systems on which all plans are simulated, for the planner."""
    held_out: int = 100
    """Systems among these that it is not trained on, to test it."""
    minutes: float = 10.0
    """How long to search a player; the current generation is completed."""
    generations: int | None = None
    """How many generations, in place of minutes; then the result does not depend on the machine."""
    seed: int = 0
    """Seeds systems, customers and candidates; scores use other systems."""
    population: int = 16
    """Candidates per generation."""
    spread: float = 0.06
    """Standard deviation of the numbers of the first candidates."""
    batch: int = 24
    """Systems per generation."""
    every: int = 10
    """Generations between two validations."""
    validation_systems: int = 120
    """Systems of a validation."""
    workers: Workers = None
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by seed and time."""
    scale: tyro.conf.Suppress[Scale] = Scale()


def run(args: Args) -> int:
    """Train and save as `args` say, and return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    check(args)
    began, started, started_cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()
    folder = choose_folder(args.out, f"general-seed{args.seed}", began)
    router = learn(args, folder)
    save(router, folder / WEIGHTS)
    command, plain = command_line(sys.orig_argv[1:]), plain_arguments(args)
    del plain["scale"]
    last_row = (folder / CURVE).read_text(encoding="utf-8").splitlines()[-1]
    training = {
        **plain,
        "command": repeatable(command, json.loads(last_row)["generation"]),
        "first_command": command,
        "time": began.isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - started_cpu, 1),
        "weights_sha256": router.digest,
        "processor": machine()["processor"],
        "versions": {
            "pull-env": pull_env.__version__,
            "cma": version("cma"),
            "torch": version("torch"),
            **versions(),
        },
    }
    write_json(folder / TRAINING, training)
    print(f"saved in {folder}; score it: python -m agents benchmark --router {folder / WEIGHTS}")
    return 0


def check(args: Args) -> None:
    """Refuse arguments that are not allowed, before any work is done.

    Raises:
        ValueError: One is not; the message names it.
    """
    check_limits(args, {"systems": 2, "held_out": 1, "batch": 1, "validation_systems": 2})
    if args.held_out >= args.systems:
        raise check_argument.refusal("held_out", args.held_out, f"less than systems, {args.systems}")


def learn(args: Args, folder: Path) -> GeneralRouter:
    """Return the best router; an interruption ends the search with the best so far."""
    planned = learn_plans(args, folder)
    best, began = planned.router, time.monotonic()
    try:
        with progress(args, "players", began) as report:
            for generation, router in generations(args, planned, folder, began):
                best = router
                report(generation)
    except KeyboardInterrupt:
        print("Interrupted: the best router so far is kept.", file=sys.stderr)
    return best


@dataclass(frozen=True)
class Planned:
    """A trained planner, and the systems on which to search a player.

    Attributes:
        router: It does what is planned.
        worthwhile: Systems where even the best plan costs much more than a message per customer, so that a
            player can do better.
    """

    router: GeneralRouter
    worthwhile: tuple[Scenario, ...]


def learn_plans(args: Args, folder: Path) -> Planned:
    """Measure the plans, train the planner, and append its errors to the curve.

    Raises:
        ValueError: No system is worth a player.
    """
    scale = args.scale
    systems = draw_systems(args.seed, args.systems, servers=scale.servers)
    seeds = spawn_seeds(args.seed, args.systems, "plans")
    with progress_bar("plans on systems", args.systems, sys.stderr.isatty()) as report:
        costs = measure_plans(systems, seeds, args.workers, report, scale.spans)
    fit = train(systems, costs, args.seed, args.held_out, scale.planner_steps)
    write_rows(folder / CURVE, [{"generation": 0, "regret": fit.regret, "held_out": fit.held_out}])
    worthwhile = [
        scenario
        for scenario, least in zip(systems, costs.min(axis=1), strict=True)
        if least > scale.worthwhile * scenario.prices.message
    ]
    if not worthwhile:
        raise ValueError(f"systems is {args.systems}: none is worth a player, draw more")
    return Planned(GeneralRouter(fit.weights), tuple(worthwhile))


def generations(
    args: Args, planned: Planned, folder: Path, began: float
) -> Iterator[tuple[int, GeneralRouter]]:
    """Yield the number of each generation as it ends, and the best router so far."""
    import cma

    start, worthwhile = planned.router, planned.worthwhile
    options = {"seed": args.seed + 1, "popsize": args.population, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(np.zeros(SHAPES["player.each"][1]), args.spread, options)
    validation_systems = draw_systems(args.seed, args.validation_systems, "validate", args.scale.servers)
    validation = CommonStreams(validation_systems, args.seed, args)
    start_costs = validation.log_costs([start])[0]
    best, least, batch = start, 0.0, min(args.batch, len(worthwhile))
    most = args.generations or MOST_GENERATIONS
    for generation, seed in enumerate(spawn_seeds(args.seed, most, "generations"), 1):
        vectors = strategy.ask()
        chosen = np.random.default_rng(seed).choice(len(worthwhile), batch, replace=False)
        systems = CommonStreams([worthwhile[k] for k in chosen], seed, args)
        logs = systems.log_costs([start, *(moved(start, vector) for vector in vectors)])
        costs = relative(logs[1:], logs[0]).mean(axis=1)
        strategy.tell(vectors, costs.tolist())
        late = args.generations is None and time.monotonic() - began > 60 * args.minutes
        row = {"generation": generation, "seconds": round(time.monotonic() - began, 1)}
        row |= {"least": costs.min(), "mean": costs.mean(), "spread": strategy.sigma}
        if late or generation == most or generation % args.every == 0:
            mean = moved(start, strategy.mean)
            gain = relative(validation.log_costs([mean])[0], start_costs)
            row |= {"validation": gain.mean(), "error": gain.std(ddof=1) / math.sqrt(len(gain))}
            if gain.mean() < least:
                best, least = mean, gain.mean()
        write_rows(folder / CURVE, [row])
        yield generation, best
        if late:
            break


class CommonStreams:
    """Systems and streams on which routers are compared.

    Attributes:
        systems: What is simulated.
        seeds: Of the customers of each.
    """

    def __init__(self, systems: Sequence[Scenario], seed: int, args: Args) -> None:
        """Prepare; customers depend on `seed`."""
        self.systems, self.seeds = systems, spawn_seeds(seed, len(systems), "customers")
        self._workers, self._spans = args.workers or os.cpu_count(), args.scale.spans

    def log_costs(self, routers: Sequence[GeneralRouter]) -> Floats:
        """Return the logarithm of every router's cost on every system, (routers, systems)."""
        tasks = [(router, k) for k in range(len(self.systems)) for router in routers]
        with ThreadPoolExecutor(self._workers) as pool:
            costs = np.array(list(pool.map(lambda task: self._cost(*task), tasks)))
        logs: Floats = np.log(costs).reshape(len(self.systems), -1).T
        return logs

    def _cost(self, router: GeneralRouter, k: int) -> float:
        scenario = self.systems[k]
        return short_run_cost(scenario, router.on(scenario), self.seeds[k], self._spans)


def moved(router: GeneralRouter, vector: Floats) -> GeneralRouter:
    """Return the router with `vector` added to its weights of a recall."""
    each = router.weights["player.each"].copy()
    each[RECALL] += vector
    return GeneralRouter({**router.weights, "player.each": each})


def relative(logs: Floats, start: Floats) -> Floats:
    """Return logarithms of costs relative to those at the start, (..., systems).

    They are clipped to MOST_GAIN either way.
    """
    result: Floats = np.clip(logs - start, -MOST_GAIN, MOST_GAIN)
    return result
