"""Train one router for many systems: `python -m agents generalise`; see `agents.general.router`.

First every plan is simulated on systems drawn at random, and the planner learns what they cost. Then CMA-ES
looks for a player, for when to use what is remembered: all candidates of a generation meet the same customers
of the same systems, those of the next one others; it minimises the mean logarithm of the cost. The average of
the candidates is validated on systems of their own at intervals, and the best is kept.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import pull_env
from agents.general.planner import cost, measure, train
from agents.general.random_systems import draw_systems
from agents.general.router import GENERAL, RECALL, SHAPES, Floats, General, save
from agents.search.cma_es import MOST_GENERATIONS, check_limits, progress
from agents.training.commands import repeatable
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import machine, versions, write_rows
from pull_env.reporting.run_folder import CURVE, TRAINING
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.seeds import spawn_seeds

WEIGHTS = GENERAL.name
MOST = 0.5  # of the logarithm of a cost by that at the start: no system counts for more
WORTHWHILE = 1.5  # messages a customer


@dataclass(frozen=True)
class Args:
    """How much to train on, and how long."""

    systems: int = 1_500
    """Systems on which all plans are simulated, for the planner."""
    held_out: int = 100
    """Systems of these that it is not trained on, to see how it does on others."""
    minutes: float = 10.0
    """How long to look for a player; the generation at hand is completed."""
    generations: int | None = None
    """How many generations, however long they take: so the result does not depend on the machine."""
    seed: int = 0
    """Seeds systems, customers and candidates; scores use other systems."""
    population: int = 16
    """Candidates a generation."""
    spread: float = 0.06
    """Standard deviation of the numbers of the first candidates."""
    batch: int = 24
    """Systems a generation."""
    every: int = 10
    """Generations between two validations."""
    validation_systems: int = 120
    """Systems of a validation."""
    workers: int | None = None
    """Threads; if not given, one a core. The numbers do not depend on it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by seed and time."""


class Bench:
    """Systems and customers that routers are compared on.

    Attributes:
        systems: What is simulated.
        seeds: Of the customers of each.
    """

    def __init__(self, systems: Sequence[Scenario], seed: int, workers: int | None) -> None:
        """Note what to compare on; customers depend on `seed`."""
        self.systems, self.seeds = systems, spawn_seeds(seed, len(systems), "customers")
        self._workers = workers or os.cpu_count()

    def costs(self, routers: Sequence[General]) -> Floats:
        """Return the logarithm of the cost of every router on every system, (routers, systems)."""
        tasks = [(router, k) for k in range(len(self.systems)) for router in routers]
        with ThreadPoolExecutor(self._workers) as pool:
            found = np.array(list(pool.map(lambda task: self._cost(*task), tasks)))
        logs: Floats = np.log(found).reshape(len(self.systems), -1).T
        return logs

    def _cost(self, router: General, k: int) -> float:
        scenario = self.systems[k]
        return cost(scenario, router.on(scenario), self.seeds[k])


@dataclass(frozen=True)
class Learned:
    """What the planner was trained on, and what is worth more.

    Attributes:
        router: It does what is planned.
        worthwhile: Systems in which even the best plan costs much more than a message a customer, so that a
            player can do better.
    """

    router: General
    worthwhile: tuple[Scenario, ...]


def learn_plans(args: Args, folder: Path) -> Learned:
    """Measure the plans, train the planner, and write how well it does.

    Raises:
        ValueError: No system is worth a player.
    """
    systems = draw_systems(args.seed, args.systems)
    seeds = spawn_seeds(args.seed, args.systems, "plans")
    with progress_bar("plans on systems", args.systems, sys.stderr.isatty()) as report:
        costs = measure(systems, seeds, args.workers, report)
    fit = train(systems, costs, args.seed, args.held_out)
    write_rows(folder / CURVE, [{"generation": 0, "regret": fit.regret, "held_out": fit.held_out}])
    worthwhile = [
        scenario
        for scenario, least in zip(systems, costs.min(axis=1), strict=True)
        if least > WORTHWHILE * scenario.prices.message
    ]
    if not worthwhile:
        raise ValueError(f"systems is {args.systems}: none is worth a player, draw more")
    return Learned(General(fit.weights), tuple(worthwhile))


def moved(router: General, vector: Floats) -> General:
    """Return the router whose preference for what is remembered is `vector`, one number a weight, away from
    that of `router`.
    """
    each = router.weights["player.each"].copy()
    each[RECALL] += vector
    return General({**router.weights, "player.each": each})


def excess(costs: Floats, base: Floats) -> Floats:
    """Return by how much logarithms of costs are above those at the start, (..., systems), MOST at most."""
    above: Floats = np.clip(costs - base, -MOST, MOST)
    return above


def generations(args: Args, learned: Learned, folder: Path, begun: float) -> Iterator[tuple[int, General]]:
    """Yield the number of each generation when it has ended, and the best router so far."""
    import cma

    begin, worthwhile = learned.router, learned.worthwhile
    options = {"seed": args.seed + 1, "popsize": args.population, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(np.zeros(SHAPES["player.each"][1]), args.spread, options)
    validation = Bench(draw_systems(args.seed, args.validation_systems, "validate"), args.seed, args.workers)
    known = validation.costs([begin])[0]
    best, least, batch = begin, 0.0, min(args.batch, len(worthwhile))
    most = args.generations or MOST_GENERATIONS
    for generation, seed in enumerate(spawn_seeds(args.seed, most, "generations"), 1):
        asked = strategy.ask()
        chosen = np.random.default_rng(seed).choice(len(worthwhile), batch, replace=False)
        bench = Bench([worthwhile[k] for k in chosen], seed, args.workers)
        logs = bench.costs([begin, *(moved(begin, vector) for vector in asked)])
        measured = excess(logs[1:], logs[0]).mean(axis=1)
        strategy.tell(asked, measured.tolist())
        late = args.generations is None and time.monotonic() - begun > 60 * args.minutes
        row = {"generation": generation, "seconds": round(time.monotonic() - begun, 1)}
        row |= {"least": measured.min(), "mean": measured.mean(), "spread": strategy.sigma}
        if late or generation == most or generation % args.every == 0:
            average = moved(begin, strategy.mean)
            gain = excess(validation.costs([average])[0], known)
            row |= {"validation": gain.mean(), "error": gain.std(ddof=1) / math.sqrt(len(gain))}
            if gain.mean() < least:
                best, least = average, gain.mean()
        write_rows(folder / CURVE, [row])
        yield generation, best
        if late:
            break


def learn(args: Args, folder: Path) -> General:
    """Return the best router that is found; an interruption ends the search with what was found by then."""
    learned = learn_plans(args, folder)
    best, begun = learned.router, time.monotonic()
    try:
        with progress(args, "players", begun) as report:
            for generation, found in generations(args, learned, folder, begun):
                best = found
                report(generation)
    except KeyboardInterrupt:
        print("Interrupted: what was found by then is kept.", file=sys.stderr)
    return best


def check(args: Args) -> None:
    """Refuse arguments that cannot be, before any work is done.

    Raises:
        ValueError: One cannot; the message names it.
    """
    check_limits(args, {"systems": 2, "held_out": 1, "batch": 1, "validation_systems": 2})
    if args.held_out >= args.systems:
        raise ValueError(f"held_out is {args.held_out}: it must be less than systems, {args.systems}")


def run(args: Args) -> int:
    """Train and save as `args` say, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    check(args)
    began, started, busy = datetime.now(timezone.utc), time.perf_counter(), time.process_time()
    folder = args.out or Path("runs") / f"general-seed{args.seed}-{began.strftime('%Y%m%d-%H%M%S')}"
    router = learn(args, folder)
    save(router, folder / WEIGHTS)
    first = command_line(sys.orig_argv[1:])
    rows = [json.loads(line) for line in (folder / CURVE).read_text(encoding="utf-8").splitlines()]
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(args).items()}
    told = {
        **plain,
        "command": repeatable(first, rows[-1]["generation"]),
        "first_command": first,
        "time": began.isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "weights_sha256": router.digest,
        "processor": machine()["processor"],
        "versions": {
            "pull-env": pull_env.__version__,
            "cma": version("cma"),
            "torch": version("torch"),
            **versions(),
        },
    }
    text = json.dumps(told, indent=2, sort_keys=True)
    (folder / TRAINING).write_text(text + "\n", encoding="utf-8")
    print(f"saved in {folder}; examine it: python -m agents benchmark --router {folder / WEIGHTS}")
    return 0
