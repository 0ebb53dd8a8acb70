"""Search a small network by an evolution strategy: `python -m agents search --scenario NAME`.

CMA-ES minimises the cost that the simulator measures. It begins with the best of a person's rules, with a
chain of steps (`--start tuned`), or polishes an exported network (`--start DIR/policy.toml`: so a search that
has ended goes on, too). All candidates of a generation meet the same customers, those of the next one others.
The average of the candidates is validated on customers of its own at intervals, and the best is kept. The
result holds no code.

N. Hansen and A. Ostermeier, Evolutionary Computation 9 (2001), 159-195; in its diagonal variant: R. Ros and
N. Hansen, "A simple modification in CMA-ES achieving linear time and space complexity", PPSN (2008).
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import tyro

import pull_env
from agents.search.initial_networks import Shape, chain, rules, seen
from agents.search.objective import better, costs, validate
from agents.training.export import POLICY
from agents.training.score import RIVALS, score
from pull_env.policy.lookup import as_policy
from pull_env.policy.policy import Policy, save_policy
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import versions, write_rows
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.progress import Report, bar
from pull_env.simulation.results import Result
from pull_env.simulation.seeds import spawn_seeds

CURVE, CONFIGURATION, START = "curve.jsonl", "config.json", "start.toml"
MOST_GENERATIONS = 100_000
FINALISTS = 8  # rules that are validated: short runs alone may prefer one that is good in quiet times only


@dataclass(frozen=True)
class Args:
    """What to search, and how long."""

    scenario: str = "two-speeds"
    """A preset's name, or the path of a TOML file."""
    hidden: tuple[int, ...] = ()
    """Units of a hidden layer (tanh); if not given, preferences are linear in what the router sees."""
    start: str | None = None
    """What to polish: a policy's name, tuned, or a TOML file; if not given, the best of the rules."""
    sees: tuple[str, ...] = ()
    """Names of what the network weighs, such as "found no message"; if not given, all that changes."""
    minutes: float = 5.0
    """How long to search; the generation at hand is completed."""
    generations: int | None = None
    """How many generations, however long they take: so the result does not depend on the machine."""
    seed: int = 0
    """Seeds the candidates and their customers; the score at the end uses other seeds."""
    population: int = 24
    """Candidates a generation."""
    spread: float = 0.1
    """Standard deviation of the numbers of the first candidates."""
    customers: int = 80_000
    """Customers counted for a candidate, over all replications."""
    warmup: int = 5_000
    """Customers of each replication before the counted ones."""
    replications: int = 4
    """Independent runs for a candidate."""
    every: int = 20
    """Generations between two validations."""
    validation_customers: int = 800_000
    """Customers counted in a validation."""
    validation_warmup: int = 50_000
    """Customers of each of its eight replications before the counted ones."""
    workers: int | None = None
    """Threads; if not given, one a core. The numbers do not depend on it."""
    score_customers: int = 1_000_000
    """Customers counted in the score at the end; 0: no score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by scenario, seed and time."""


@dataclass
class Found:
    """What a search has found so far.

    Attributes:
        start: What it began with.
        best: The best policy by validation.
        validated: What the validation of that one measured.
        finished: Whether the search was not interrupted.
    """

    start: Policy
    best: Policy
    validated: Result
    finished: bool = False


def search(args: Args, scenario: Scenario, folder: Path) -> Found:
    """Search as `args` say, and append a row for each generation to the curve in `folder`.

    An interruption ends it with what was found by then.
    """
    begun = time.monotonic()
    start = first_policy(args, scenario)
    found = Found(start, start, validate(args, scenario, start))
    tell(folder, 0, begun, found.validated)
    try:
        with progress(args, f"search on {scenario.name}", begun) as report:
            for generation in generations(args, scenario, found, folder, begun):
                report(generation)
        found.finished = True
    except KeyboardInterrupt:
        pass  # minutes of work are not thrown away
    return found


def generations(args: Args, scenario: Scenario, found: Found, folder: Path, begun: float) -> Iterator[int]:
    """Yield the number of each generation when it has ended; update what is `found`."""
    import cma

    shape = Shape(found.start, scenario, args.sees)
    options = {"seed": args.seed + 1, "popsize": args.population, "verbose": -9, "CMA_diagonal": True}
    strategy = cma.CMAEvolutionStrategy(np.zeros(shape.size), args.spread, options)
    for generation, seed in enumerate(spawn_seeds(args.seed, most_generations(args), "search"), 1):
        asked = strategy.ask()
        measured = costs(args, scenario, [shape.policy(vector) for vector in asked], seed)
        strategy.tell(asked, measured)
        late = args.generations is None and time.monotonic() - begun > 60 * args.minutes
        last = late or generation == most_generations(args)
        result = None
        if last or generation % args.every == 0:
            average = shape.policy(strategy.mean)
            result = validate(args, scenario, average)
            if better(result, found.validated):
                found.best, found.validated = average, result
        tell(folder, generation, begun, result, measured, strategy.sigma)
        yield generation
        if last:
            break


def most_generations(args: Args) -> int:
    """Return how many generations there are at most."""
    return args.generations or MOST_GENERATIONS


def first_policy(args: Args, scenario: Scenario) -> Policy:
    """Return the network that is to be polished, or else the best of the rules.

    Raises:
        ValueError: There is no such policy, or it does not fit.
    """
    if args.start is not None:
        start = as_policy(args.start, scenario)
        check_fit(start, scenario)
        return start if start.network is not None else chain(start, scenario, args.hidden, args.seed)
    choices = list(rules(scenario, args.hidden, args.seed))
    found = costs(args, scenario, choices, spawn_seeds(args.seed, 1, "rules")[0])
    measured = [(choices[k], validate(args, scenario, choices[k])) for k in np.argsort(found)[:FINALISTS]]
    best = measured[0]
    for rule in measured[1:]:
        best = rule if better(rule[1], best[1]) else best
    return best[0]


def tell(
    folder: Path,
    generation: int,
    begun: float,
    validated: Result | None,
    found: Sequence[float] = (),
    spread: float | None = None,
) -> None:
    """Append a row to the curve: costs of the candidates, and of their average where it was validated."""
    told: dict[str, Any] = {"generation": generation, "seconds": round(time.monotonic() - begun, 1)}
    if found:
        told |= {"least": min(found), "mean": float(np.mean(found)), "spread": spread}
    if validated is not None:
        told |= {"validation": validated.cost.to_dict(), "stable": validated.stable}
    write_rows(folder / CURVE, [told])


class Timed(Protocol):
    """What is limited by a number of generations, or else by time."""

    @property
    def generations(self) -> int | None:
        """How many."""

    @property
    def minutes(self) -> float:
        """How long."""


@contextmanager
def progress(args: Timed, title: str, begun: float) -> Iterator[Report]:
    """Show how much is done, of the generations where their number is given, else of the minutes.

    Yields what is told the generation that ended.
    """
    total, done = args.generations or math.ceil(60 * args.minutes), 0
    with bar(title, total, sys.stderr.isatty()) as report:

        def told(generation: int) -> None:
            nonlocal done
            now = generation if args.generations else round(time.monotonic() - begun)
            report(min(now, total) - done)
            done = min(now, total)

        yield told


def check(args: Args) -> None:
    """Refuse arguments that cannot be, before any work is done.

    Raises:
        ValueError: One cannot; the message names it.
    """
    least = {"customers": 1, "warmup": 0, "replications": 1}
    least |= {"validation_customers": 1, "validation_warmup": 0, "score_customers": 0}
    check_limits(args, least)
    if any(units < 1 for units in args.hidden):
        raise ValueError(f"hidden is {args.hidden}: it must be whole numbers from 1")


def check_limits(args: Any, least: Mapping[str, int]) -> None:
    """Refuse what no search can be asked for, and whole numbers that are below the `least` ones.

    Raises:
        ValueError: An argument is; the message names it.
    """
    for name, low in {"seed": 0, "population": 2, "every": 1, **least}.items():
        if getattr(args, name) < low:
            raise ValueError(f"{name} is {getattr(args, name)}: it must be a whole number from {low}")
    for name in ("generations", "workers"):
        value = getattr(args, name)
        if value is not None and not 1 <= value <= MOST_GENERATIONS:
            raise ValueError(f"{name} is {value}: it must be a whole number from 1 to {MOST_GENERATIONS}")
    for name in ("minutes", "spread"):
        if not 0 < getattr(args, name) < math.inf:
            raise ValueError(f"{name} is {getattr(args, name)}: it must be a positive number")
    if args.out is not None and args.out.exists():
        raise ValueError(f"out is '{args.out}': it exists already, and results are never overwritten")


def run(args: Args) -> int:
    """Search, save and score as `args` say, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    check(args)
    scenario, began = load_scenario(args.scenario), datetime.now(timezone.utc)
    seen(scenario, args.sees)  # refuses names before any work is done
    name = f"search-{scenario.name}-seed{args.seed}"
    folder = args.out or Path("runs") / f"{name}-{began.strftime('%Y%m%d-%H%M%S')}"
    started, busy = time.perf_counter(), time.process_time()
    found = search(args, scenario, folder)
    assert found.best.network is not None
    network = replace(found.best.network, training_seed=args.seed)
    save_policy(replace(found.best, name=name, network=network), folder / POLICY)
    begun = found.start if args.start is None else as_policy(args.start, scenario)
    save_policy(replace(begun, name="start"), folder / START)
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(args).items()}
    told = {
        **plain,
        "command": command_line(sys.orig_argv[1:]),
        "scenario_content": scenario.to_dict(),
        "start_policy": found.start.to_dict(),
        "finished": found.finished,
        "time": began.isoformat(timespec="seconds"),
        "search_seconds": round(time.perf_counter() - started, 1),
        "search_cpu_seconds": round(time.process_time() - busy, 1),
        "versions": {"pull-env": pull_env.__version__, "cma": version("cma"), **versions()},
    }
    text = json.dumps(told, indent=2, sort_keys=True)
    (folder / CONFIGURATION).write_text(text + "\n", encoding="utf-8")
    print(f"began with {found.start.name}; saved in {folder}")
    if not found.finished:
        raise KeyboardInterrupt
    if args.score_customers:
        score(folder, args.scenario, args.score_customers, rivals=(found.start, *RIVALS))
    print(f"score it again: python -m agents score {folder} --scenario {args.scenario}")
    return 0
