"""Search a small network by CMA-ES: `python -m agents search --scenario NAME`.

CMA-ES minimises the simulated cost. It starts from the best of some simple rules, from a chain of steps
(`--start tuned`), or from an exported network (`--start DIR/policy.toml`, which also continues an earlier
search). All candidates of a generation are compared on the same streams, each generation on new ones. The
mean of the candidates is validated on other streams at intervals, and the best one is saved, as a policy
without code.

N. Hansen and A. Ostermeier, Evolutionary Computation 9 (2001), 159-195; in its diagonal variant: R. Ros and
N. Hansen, "A simple modification in CMA-ES achieving linear time and space complexity", PPSN (2008).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import tyro

import pull_env
from agents.search.initial_networks import SearchSpace, chain_network, entry_mask, rule_networks
from agents.search.objective import candidate_costs, is_better, validate
from agents.training.score import RIVALS, score
from pull_env.policy.lookup import as_policy
from pull_env.policy.policy import Policy, save_policy
from pull_env.reporting.console import command_line
from pull_env.reporting.flags import Workers
from pull_env.reporting.rows import versions, write_rows
from pull_env.reporting.run_folder import (
    CONFIGURATION,
    CURVE,
    POLICY,
    START,
    choose_folder,
    plain_arguments,
    write_json,
)
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.scenario.validation import check_argument
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.progress import Report, progress_bar
from pull_env.simulation.results import Result
from pull_env.simulation.seeds import spawn_seeds

MOST_GENERATIONS = 100_000
FINALISTS = 8  # rules that are validated: short runs may prefer one that is good only in quiet times


@dataclass(frozen=True)
class Args:
    """What to search, and how long."""

    scenario: str = "two-speeds"
    """A preset's name, or the path of a TOML file."""
    hidden: tuple[int, ...] = ()
    """Units of a hidden layer (tanh); by default preferences are linear in the observation."""
    start: str | None = None
    """The policy to start from: a name, tuned, or a TOML file; by default the best of the rules."""
    sees: tuple[str, ...] = ()
    """Names of the entries that the network weighs, such as "found no message"; by default all that vary."""
    minutes: float = 5.0
    """How long to search; the current generation is completed."""
    generations: int | None = None
    """How many generations, in place of minutes; then the result does not depend on the machine."""
    seed: int = 0
    """Seeds the candidates and their customers; the score at the end uses other seeds."""
    population: int = 24
    """Candidates per generation."""
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
    workers: Workers = None
    score_customers: int = 1_000_000
    """Customers counted in the score at the end; 0: no score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by scenario, seed and time."""


@dataclass
class State:
    """The state of a search.

    Attributes:
        start: The network that it started from.
        best: The best policy by validation.
        validated: The validation of that policy.
        finished: Whether the search ended without an interruption.
    """

    start: Policy
    best: Policy
    validated: Result
    finished: bool = False


def run(args: Args) -> int:
    """Search, save and score as `args` say, and return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    check(args)
    scenario, began = load_scenario(args.scenario), datetime.now(timezone.utc)
    entry_mask(scenario, args.sees)  # refuses names before any work is done
    name = f"search-{scenario.name}-seed{args.seed}"
    folder = choose_folder(args.out, name, began)
    started, started_cpu = time.perf_counter(), time.process_time()
    state = search(args, scenario, folder)
    assert state.best.network is not None
    network = replace(state.best.network, training_seed=args.seed)
    save_policy(replace(state.best, name=name, network=network), folder / POLICY)
    start = state.start if args.start is None else as_policy(args.start, scenario)
    save_policy(replace(start, name="start"), folder / START)
    configuration = {
        **plain_arguments(args),
        "command": command_line(sys.orig_argv[1:]),
        "scenario_content": scenario.to_dict(),
        "start_policy": state.start.to_dict(),
        "finished": state.finished,
        "time": began.isoformat(timespec="seconds"),
        "search_seconds": round(time.perf_counter() - started, 1),
        "search_cpu_seconds": round(time.process_time() - started_cpu, 1),
        "versions": {"pull-env": pull_env.__version__, "cma": version("cma"), **versions()},
    }
    write_json(folder / CONFIGURATION, configuration)
    print(f"began with {state.start.name}; saved in {folder}")
    if not state.finished:
        raise KeyboardInterrupt
    if args.score_customers:
        score(folder, args.scenario, args.score_customers, rivals=(state.start, *RIVALS))
    print(f"score it again: python -m agents score {folder} --scenario {args.scenario}")
    return 0


def search(args: Args, scenario: Scenario, folder: Path) -> State:
    """Search as `args` say; append a row per generation to the curve in `folder`.

    An interruption ends it with the best policy so far.
    """
    began = time.monotonic()
    start = start_network(args, scenario)
    state = State(start, start, validate(args, scenario, start))
    append_row(folder, 0, began, state.validated)
    try:
        with progress(args, f"search on {scenario.name}", began) as report:
            for generation in generations(args, scenario, state, folder, began):
                report(generation)
        state.finished = True
    except KeyboardInterrupt:
        pass  # minutes of work are not thrown away
    return state


def generations(args: Args, scenario: Scenario, state: State, folder: Path, began: float) -> Iterator[int]:
    """Yield the number of each generation when it has ended; update `state`."""
    import cma

    space = SearchSpace(state.start, scenario, args.sees)
    options = {"seed": args.seed + 1, "popsize": args.population, "verbose": -9, "CMA_diagonal": True}
    strategy = cma.CMAEvolutionStrategy(np.zeros(space.size), args.spread, options)
    most = args.generations or MOST_GENERATIONS
    for generation, seed in enumerate(spawn_seeds(args.seed, most, "search"), 1):
        vectors = strategy.ask()
        costs = candidate_costs(args, scenario, [space.policy(vector) for vector in vectors], seed)
        strategy.tell(vectors, costs)
        late = args.generations is None and time.monotonic() - began > 60 * args.minutes
        last = late or generation == most
        result = None
        if last or generation % args.every == 0:
            mean = space.policy(strategy.mean)
            result = validate(args, scenario, mean)
            if is_better(result, state.validated):
                state.best, state.validated = mean, result
        append_row(folder, generation, began, result, costs, strategy.sigma)
        yield generation
        if last:
            break


def start_network(args: Args, scenario: Scenario) -> Policy:
    """Return the policy to start from as a network, or the best of the rules.

    Raises:
        ValueError: There is no such policy, or it does not fit.
    """
    if args.start is not None:
        start = as_policy(args.start, scenario)
        check_fit(start, scenario)
        return start if start.network is not None else chain_network(start, scenario, args.hidden, args.seed)
    rules = list(rule_networks(scenario, args.hidden, args.seed))
    costs = candidate_costs(args, scenario, rules, spawn_seeds(args.seed, 1, "rules")[0])
    best_rules = [rules[int(k)] for k in np.argsort(costs)[:FINALISTS]]
    finalists = [(rule, validate(args, scenario, rule)) for rule in best_rules]
    best = finalists[0]
    for rule in finalists[1:]:
        best = rule if is_better(rule[1], best[1]) else best
    return best[0]


def append_row(
    folder: Path,
    generation: int,
    began: float,
    validated: Result | None,
    costs: Sequence[float] = (),
    spread: float | None = None,
) -> None:
    """Append a row to the curve: costs of the candidates, and any validation."""
    row: dict[str, Any] = {"generation": generation, "seconds": round(time.monotonic() - began, 1)}
    if costs:
        row |= {"least": min(costs), "mean": float(np.mean(costs)), "spread": spread}
    if validated is not None:
        row |= {"validation": validated.cost.to_dict(), "stable": validated.stable}
    write_rows(folder / CURVE, [row])


class Timed(Protocol):
    """Arguments that limit a search by a number of generations, or else by time."""

    @property
    def generations(self) -> int | None:
        """How many."""

    @property
    def minutes(self) -> float:
        """How long."""


@contextmanager
def progress(args: Timed, title: str, began: float) -> Iterator[Report]:
    """Show a bar of the generations, if their number is given, else of the seconds.

    Yields:
        A function to call with the number of the generation that ended.
    """
    total, done = args.generations or math.ceil(60 * args.minutes), 0
    with progress_bar(title, total, sys.stderr.isatty()) as report:

        def advance(generation: int) -> None:
            nonlocal done
            now = generation if args.generations else round(time.monotonic() - began)
            report(min(now, total) - done)
            done = min(now, total)

        yield advance


def check(args: Args) -> None:
    """Refuse arguments that are not allowed, before any work is done.

    Raises:
        ValueError: One is not; the message names it.
    """
    least = {"customers": 1, "warmup": 0, "replications": 1}
    least |= {"validation_customers": 1, "validation_warmup": 0, "score_customers": 0}
    check_limits(args, least)
    check_argument.each("hidden", args.hidden, check_argument.whole, least=1)


def check_limits(args: Any, least: Mapping[str, int]) -> None:
    """Check the arguments of any search, and the `least` of whole numbers.

    Raises:
        ValueError: One is not allowed; the message names it.
    """
    for name, low in {"seed": 0, "population": 2, "every": 1, **least}.items():
        check_argument.whole(name, getattr(args, name), low)
    for name in ("generations", "workers"):
        check_argument.optional(check_argument.whole, name, getattr(args, name), 1, MOST_GENERATIONS)
    for name in ("minutes", "spread"):
        check_argument.positive(name, getattr(args, name))
