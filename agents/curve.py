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

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from agents import checkpoint
from agents.algorithms import ACTOR_CRITIC, FINAL, MODEL, Algorithm, actor, router, save_router, set_actor
from baselines.rows import SCHEMA, to_line, write_rows
from pull_env.envs.catalog import MOST_PROBED, mean_service_time
from pull_env.evaluation import evaluate
from pull_env.policy import Announce, Policy, Probe, Take
from pull_env.results import Result
from pull_env.scenario import Scenario
from pull_env.seeds import spawn_seeds
from pull_env.simulation import simulate
from pull_env.terminal import Report

CURVE, BEST = "curve.jsonl", "best.json"
RUNS = 64  # replications of an evaluation, side by side
SETTLE = 50  # customers a server, from an empty system to the first that is counted
OWN = 5_000  # customers of each replication, at most, of these that the router itself places
UPDATE = 8192  # customers between two weights that are averaged, at least

Weights = dict[str, Any]


@dataclass(frozen=True)
class Examiner:
    """Evaluates weights of a learner in the router that they make."""

    scenario: Scenario
    algorithm: Algorithm
    model: Any  # what `router` made
    customers: int
    seed: int  # of the streams

    @classmethod
    def of(cls, scenario: Scenario, algorithm: Algorithm, layers: tuple[int, ...], customers: int, seed: int):
        """Return the examiner of the training run `seed`."""
        model = router(algorithm, scenario, layers, seed)
        return cls(scenario, algorithm, model, customers, spawn_seeds(seed, 1, "validate")[0])

    def ways(self) -> tuple[str, ...]:
        """Return how a router may choose from what its network says."""
        return ("best action", "sampled") if self.algorithm in ACTOR_CRITIC else ("best action",)

    def examine(self, weights: Weights, way: str) -> Result:
        """Return what a router with these weights comes to; all random generators stay as they were.

        A plain rule fills a large system before the router's turn. A small one the router fills itself, as in
        scores: what it remembers of probes is then its own, and routers that seldom ask depend on it.
        """
        set_actor(self.model, weights)
        kept = np.random.get_state()  # noqa: NPY002  the generator of Stable-Baselines3
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            result = evaluate(
                self.model,
                self.scenario,
                self.customers,
                seed=self.seed,
                replications=RUNS,
                fill=plain_rule(self.scenario),
                **self._before(),
                deterministic=way == "best action",
            )
        np.random.set_state(kept)  # noqa: NPY002
        return result

    def _before(self) -> dict[str, int]:
        """Return how many customers come before those counted, by the names that `evaluate` has for them."""
        if self.scenario.replay is not None:
            return {}
        settle = SETTLE * self.scenario.servers
        return {"warmup": min(settle, OWN), "fill_customers": max(0, settle - OWN)}

    def compare(self, policy: Policy) -> Result:
        """Return what a policy comes to on the same streams."""
        return simulate(self.scenario, policy, self.customers, seed=self.seed, replications=RUNS, workers=1)


def plain_rule(scenario: Scenario) -> Policy:
    """Return the rule to take a message, else to probe until a wait is short: nowhere a bad one."""
    wait = mean_service_time(scenario)
    probe = Probe(weights="rate", at_most=MOST_PROBED, stop_at=wait, rank="delay")
    return Policy("take, then probe", (Take(order="fastest"), probe), Announce())


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
                result = self.examiner.examine(weights, way)
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
        told = {"customers": self.num_timesteps, "weights": name, "choice": way, "seed": self.examiner.seed}
        (self.folder / BEST).write_text(
            to_line({**told, "cost": result.cost.to_dict()}) + "\n", encoding="utf-8"
        )


def read_best(folder: Path) -> dict[str, Any]:
    """Return which router of a run is the best: its weights, how it chooses, and its cost in evaluation."""
    content: dict[str, Any] = json.loads((folder / BEST).read_text(encoding="utf-8"))
    return content
