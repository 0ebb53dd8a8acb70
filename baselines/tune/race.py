"""A race of candidates: many short runs, few long ones, the same customers.

A log holds a row per measurement. An interrupted race continues from it, measures nothing twice, and as the
search is seeded makes the same choices as an uninterrupted one.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baselines.tune.search_space import candidate, well_known
from pull_env.policy.policy import Policy
from pull_env.reporting.rows import SCHEMA, provenance, read_rows, scenario_content, write_rows
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.progress import Report
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate
from pull_env.simulation.statistics import Estimate, estimate, nan_estimate, paired

if TYPE_CHECKING:
    from optuna import Study, Trial

PURPOSES = ("search", "choose", "report")  # each with its own seed


@dataclass(frozen=True)
class Plan:
    """How much is simulated.

    Attributes:
        trials: Candidates in the first rung.
        shortest: Customers counted in the first rung.
        rungs: Rungs, as multiples of `shortest`; a candidate is dropped if it is not in the best quarter so
            far, or costs more than the best by a paired interval of 95 %.
        finalists: Candidates of the last rung from which the winner is chosen.
        chosen_by: Customers counted for each finalist.
        reported: Customers counted for the reported cost of the winner.
        warmup: Uncounted customers per replication of the last two; None: as `simulate` chooses.
        replications: Independent runs behind every measurement.
    """

    trials: int = 240
    shortest: int = 200_000
    rungs: tuple[int, ...] = (1, 4, 16)
    finalists: int = 4
    chosen_by: int = 4_000_000
    reported: int = 4_000_000
    warmup: int | None = None
    replications: int = 8


@dataclass(frozen=True)
class Measured:
    """The cost per customer of a policy, and whether it was stable."""

    cost: Estimate
    stable: bool


class Log:
    """A file of measurements on one scenario, written as they are made, none twice.

    Attributes:
        path: The file.
        scenario: The system.
        plan: How much is simulated.
        workers: Threads, as `simulate` takes them.
        seeds: By purpose.
        begun: Whether the file has a first row.
    """

    def __init__(self, path: Path, scenario: Scenario, plan: Plan, seed: int, workers: int | None) -> None:
        """Read earlier measurements.

        Raises:
            ValueError: The file holds measurements of something else.
        """
        self.path, self.scenario, self.plan, self.workers = path, scenario, plan, workers
        self.seeds = {purpose: spawn_seeds(seed, 1, f"tune {purpose}")[0] for purpose in PURPOSES}
        rows = read_rows(path) if drop_partial_line(path) else []
        plain = {**asdict(plan), "rungs": list(plan.rungs)}
        self._head = {"scenario": scenario_content(scenario), "plan": plain, "seeds": self.seeds}
        if rows and {name: rows[0].get(name) for name in self._head} != self._head:
            raise ValueError(
                f"{path} is of another scenario, plan or seed: name another folder, or delete it"
            )
        if rows and rows[0]["package"]["commit"] != provenance("", 1)["package"]["commit"]:
            raise ValueError(f"{path} was measured by another version: name another folder, or delete it")
        self.begun = bool(rows)
        self._known = {self._key(row["policy"]["sha256"], row["run"]): row for row in rows[1:]}

    def begin(self, command: str) -> None:
        """Write the first row, with what all rows share, unless there is one."""
        threads = min(self.workers or os.cpu_count() or 1, self.plan.replications)
        if not self.begun:
            write_rows(self.path, [{**provenance(command, threads), **self._head}])
        self.begun = True

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        return len(self._known)

    def measure(self, policy: Policy, purpose: str, customers: int, warmup: int | None) -> Measured:
        """Return the cost of a policy, measured now or before."""
        run: dict[str, Any] = {
            "purpose": purpose,
            "seed": self.seeds[purpose],
            "customers": customers,
            "warmup": warmup,
        }
        key = self._key(policy.digest, run)
        if key not in self._known:
            result = simulate(
                self.scenario,
                policy,
                customers,
                seed=run["seed"],
                replications=self.plan.replications,
                warmup=warmup,
                workers=self.workers,
            )
            self._known[key] = {
                "schema": SCHEMA,
                "policy": {"content": policy.to_dict(), "sha256": policy.digest},
                "run": run,
                "cost": list(result.cost.samples),
                "stable": result.stable,
                "seconds": result.seconds,
            }
            write_rows(self.path, [self._known[key]])
        row = self._known[key]
        return Measured(estimate(row["cost"]) if row["stable"] else nan_estimate(0), row["stable"])

    @staticmethod
    def _key(digest: str, run: dict[str, Any]) -> tuple[Any, ...]:
        return digest, *(run[name] for name in ("purpose", "customers", "warmup"))


def drop_partial_line(path: Path) -> bool:
    """Cut off a half-written last line; return whether the file exists."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        path.write_bytes(content[:complete])
    return True


def race(log: Log, report: Report) -> list[Policy]:
    """Return the finalists, the cheapest of the last rung first."""
    scenario, plan = log.scenario, log.plan
    best: dict[int, Estimate] = {}  # by rung
    finished: dict[Policy, float] = {}
    study = _study(log.seeds["search"])
    for parameters in well_known(scenario):
        study.enqueue_trial(parameters)

    def objective(trial: Trial) -> float:
        from optuna import TrialPruned

        policy = candidate(trial, scenario)
        cost = math.nan
        for rung in plan.rungs:
            customers = rung * plan.shortest
            measured = log.measure(policy, "search", customers, customers // (2 * plan.replications))
            if not measured.stable:
                raise TrialPruned
            cost, leader = measured.cost.mean, best.setdefault(rung, measured.cost)
            trial.report(cost, rung)
            if cost < leader.mean:
                best[rung] = measured.cost
            elif rung < plan.rungs[-1] and (paired(measured.cost, leader).low > 0.0 or trial.should_prune()):
                raise TrialPruned
        finished[policy] = cost
        return cost

    study.optimize(objective, plan.trials, callbacks=[lambda study, trial: report(1)])
    return sorted(finished, key=finished.__getitem__)[: plan.finalists]


def _study(seed: int) -> Study:
    """Return an empty study whose suggestions depend only on seed and results."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=16),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4),
    )


def choose(log: Log, finalists: list[Policy], report: Report) -> Policy:
    """Return the cheapest finalist in a long run on new customers.

    Raises:
        ValueError: No finalist is stable.
    """
    costs = {}
    for policy in finalists:
        measured = log.measure(policy, "choose", log.plan.chosen_by, log.plan.warmup)
        if measured.stable:
            costs[policy] = measured.cost.mean
        report(1)
    if not costs:
        raise ValueError(f"no stable policy was found for {log.scenario.name}: more trials may help")
    return min(costs, key=costs.__getitem__)
