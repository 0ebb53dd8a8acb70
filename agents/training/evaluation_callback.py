"""The learning curve: a learner is evaluated at intervals, its weights averaged, and the best router kept.

A learner wanders around what it can reach, so its last weights are rarely its best, and an average of them is
steadier (Izmailov et al., UAI 2018). Each evaluation tries the latest weights and the average, by their best
actions and by sampled ones, as routers that all do the same herd; all on the same streams, on which nothing
is trained and no score is taken.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from agents.training import checkpoint
from agents.training.action_set import Offer
from agents.training.algorithms import (
    ACTOR_CRITIC,
    FINAL,
    MODEL,
    Algorithm,
    actor,
    router,
    save_router,
    set_actor,
)
from agents.training.export import policy_of
from pull_env.policy.policy import Policy
from pull_env.reporting.rows import SCHEMA, to_line, write_rows
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.progress import Report
from pull_env.simulation.results import Result
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate
from pull_env.simulation.warmup import warmup_customers

CURVE, BEST = "curve.jsonl", "best.json"
RUNS = 8  # replications of an evaluation
SETTLED = 20_000  # customers of each before the first that is counted, at most,
SETTLE = 50  # or this many a server, where that is more
UPDATE = 8192  # customers between two weights that are averaged, at least

Weights = dict[str, Any]


@dataclass(frozen=True)
class Examiner:
    """Evaluates weights of a learner in the router that they make, as the simulator plays it."""

    scenario: Scenario
    algorithm: Algorithm
    model: Any  # what `router` made
    offer: Offer
    customers: int
    seed: int  # of the run

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        algorithm: Algorithm,
        layers: tuple[int, ...],
        customers: int,
        seed: int,
        offer: Offer | None = None,
    ) -> Examiner:
        """Return the examiner of the training run `seed`; without an `offer` of the default one."""
        model = router(algorithm, scenario, layers, seed, offer)
        return cls(scenario, algorithm, model, offer or Offer.of({}, scenario), customers, seed)

    def ways(self) -> tuple[str, ...]:
        """Return how a router may choose from what its network says."""
        return ("best action", "sampled") if self.algorithm in ACTOR_CRITIC else ("best action",)

    def policy(self, weights: Weights, way: str) -> Policy:
        """Return the policy of a router with these weights; all random generators stay as they were."""
        told = {"algo": self.algorithm, "seed": self.seed, "offer": self.offer.to_dict()}
        policy = policy_of(set_actor(self.model, weights), told, self.scenario, sampled=way == "sampled")
        assert policy is not None
        return policy

    def examine(self, policy: Policy) -> Result:
        """Return what a policy comes to, on streams of which nothing is trained and no score is taken."""
        return simulate(
            self.scenario,
            policy,
            self.customers,
            seed=spawn_seeds(self.seed, 1, "validate")[0],
            replications=RUNS,
            warmup=self.warmup(),
            workers=1,
        )

    def warmup(self) -> int:
        """Return how many customers of each replication come before those counted."""
        if self.scenario.replay is not None:
            return 0
        return min(warmup_customers(self.scenario, None), max(SETTLED, SETTLE * self.scenario.servers))


class Curve(BaseCallback):
    """Follows a learner, and leaves in its folder the curve, the best router and the last one.

    Attributes:
        looked: Customers learned from at the last evaluation; None: none yet.
        best: The least cost so far.
        average: The running average of the weights; None: none yet.
    """

    def __init__(
        self,
        folder: Path,
        examiner: Examiner,
        every: int,
        keep: float,
        report: Report,
    ) -> None:
        """Begin a curve.

        Args:
            folder: Where everything goes.
            examiner: What evaluates.
            every: Customers between two evaluations.
            keep: Share of the old that the average keeps at an update.
            report: Told of customers learned from.
        """
        super().__init__()
        self.folder, self.examiner, self.every = folder, examiner, every
        self.keep, self.report = keep, report
        self.looked: int | None = None
        self.averaged, self.best, self.seconds = 0, math.inf, 0.0
        self.average: Weights | None = None
        self._began = time.perf_counter()

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on from here."""
        names = ("looked", "averaged", "best", "average")
        return {"seconds": self.elapsed(), **{name: getattr(self, name) for name in names}}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        vars(self).update(state)

    def elapsed(self) -> float:
        """Return the seconds of the run, those before it was stopped included."""
        return self.seconds + time.perf_counter() - self._began

    def note(self, weights: str, way: str, result: Result, best: bool = False) -> None:
        """Append a line to the curve; `best`: these weights are kept."""
        line = {
            "schema": SCHEMA,
            "customers": self.num_timesteps,
            "seconds": round(self.elapsed(), 1),
            "weights": weights,
            "choice": way,
            "cost": result.cost.to_dict(),
            "wait": result.wait.to_dict(),
            "messages": result.messages["total"].to_dict(),
            "p_block": result.p_block.to_dict(),
            "stable": result.stable,
            "best": best,
        }
        write_rows(self.folder / CURVE, [line])

    def _on_step(self) -> bool:
        self.report(self.training_env.num_envs)
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.averaged + UPDATE or self.average is None:
            self._update_average()
        if self.looked is None or self.num_timesteps >= self.looked + self.every:
            self._look()
            self._save()

    def _on_training_end(self) -> None:
        self._update_average()
        if self.looked != self.num_timesteps:
            self._look()
        save_router(set_actor(self.examiner.model, actor(self.model)), self.folder / FINAL)
        self._save()

    def _save(self) -> None:
        checkpoint.save(self.model, self.state(), self.folder)

    def _update_average(self) -> None:
        latest, self.averaged = actor(self.model), self.num_timesteps
        if self.average is None:
            self.average = latest
        for name, value in self.average.items():
            value.lerp_(latest[name], 1.0 - self.keep)

    def _look(self) -> None:
        """Evaluate the latest weights and the average, and keep what is better than all before."""
        latest = actor(self.model)
        candidates = {"latest": latest, "average": self.average}
        if self.looked is None:  # they are the same
            del candidates["average"]
        for name, weights in candidates.items():
            for way in self.examiner.ways():
                result = self.examiner.examine(self.examiner.policy(weights, way))
                better = result.cost.mean < self.best or not (self.folder / MODEL).exists()
                self.note(name, way, result, better)
                self.logger.record(f"evaluation/cost of {name}, {way}", result.cost.mean)
                if better:
                    self._keep(weights, name, way, result)
        self.logger.dump(self.num_timesteps)
        self.looked = self.num_timesteps

    def _keep(self, weights: Weights, name: str, way: str, result: Result) -> None:
        if result.stable:  # else any that is will be better
            self.best = result.cost.mean
        save_router(set_actor(self.examiner.model, weights), self.folder / MODEL)
        told = {"customers": self.num_timesteps, "weights": name, "choice": way, "seed": result.seed}
        (self.folder / BEST).write_text(
            to_line({**told, "cost": result.cost.to_dict()}) + "\n", encoding="utf-8"
        )


def read_best(folder: Path) -> dict[str, Any]:
    """Return which router of a run is the best: its weights, how it chooses, and its cost in evaluation."""
    content: dict[str, Any] = json.loads((folder / BEST).read_text(encoding="utf-8"))
    return content
