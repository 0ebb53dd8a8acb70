"""Evaluation during training: learning curve, averaged weights, best router.

A learner fluctuates, so its last weights are rarely its best, and an average of them is steadier (Izmailov et
al., UAI 2018). Each evaluation tries the latest and the averaged weights, with the best action and with
sampled actions (routers that all act alike herd). All use the same streams, which neither training nor scores
use.
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
from agents.training.action_set import ActionSet
from agents.training.algorithms import (
    ACTOR_CRITIC,
    FINAL,
    MODEL,
    Algorithm,
    actor_weights,
    router_model,
    save_model,
    set_actor_weights,
)
from agents.training.arguments import Effort
from agents.training.export import policy_of
from pull_env.policy.policy import Policy
from pull_env.reporting.rows import SCHEMA, to_line, write_rows
from pull_env.reporting.run_folder import CURVE, write_text
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.progress import Report
from pull_env.simulation.results import Result
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate
from pull_env.simulation.warmup import warmup_customers

BEST = "best.json"

Weights = dict[str, Any]


@dataclass(frozen=True)
class Evaluator:
    """Evaluates the weights of a learner by simulating the router that they make."""

    scenario: Scenario
    algorithm: Algorithm
    model: Any  # made by `router_model`
    action_set: ActionSet
    customers: int
    seed: int  # of the run
    effort: Effort

    @classmethod
    def make(
        cls,
        scenario: Scenario,
        algorithm: Algorithm,
        layers: tuple[int, ...],
        customers: int,
        seed: int,
        action_set: ActionSet | None = None,
        effort: Effort = Effort(),  # noqa: B008  it is frozen
    ) -> Evaluator:
        """Return the evaluator of the training run `seed`; `action_set` None: the default."""
        model = router_model(algorithm, scenario, layers, seed, action_set)
        action_set = action_set or ActionSet.from_configuration({}, scenario)
        return cls(scenario, algorithm, model, action_set, customers, seed, effort)

    def choices(self) -> tuple[str, ...]:
        """Return the ways to choose an action from the output of the network."""
        return ("best action", "sampled") if self.algorithm in ACTOR_CRITIC else ("best action",)

    def policy(self, weights: Weights, choice: str) -> Policy:
        """Return the policy of a router with these weights; draws no random numbers."""
        configuration = {"algo": self.algorithm, "seed": self.seed, "action_set": self.action_set.to_dict()}
        model, sampled = set_actor_weights(self.model, weights), choice == "sampled"
        policy = policy_of(model, configuration, self.scenario, sampled=sampled)
        assert policy is not None
        return policy

    def evaluate(self, policy: Policy) -> Result:
        """Return the result of a policy on streams that neither training nor scores use."""
        return simulate(
            self.scenario,
            policy,
            self.customers,
            seed=spawn_seeds(self.seed, 1, "validate")[0],
            replications=self.effort.replications,
            warmup=self.warmup(),
            workers=1,
        )

    def warmup(self) -> int:
        """Return the warm-up customers of each replication."""
        if self.scenario.replay is not None:
            return 0
        most = max(self.effort.warmup, self.effort.warmup_per_server * self.scenario.servers)
        return min(warmup_customers(self.scenario, None), most)


class EvaluationCallback(BaseCallback):
    """Evaluates a learner; saves the curve, the best router and the last one.

    Attributes:
        last_evaluation: Customers learned from at the last evaluation; None: none yet.
        last_average: Customers learned from at the last update of the average.
        best: The least cost so far.
        average: The running average of the weights; None: none yet.
    """

    def __init__(
        self, folder: Path, evaluator: Evaluator, interval: int, average_keeps: float, report: Report
    ) -> None:
        """Begin a curve.

        Args:
            folder: The folder of the run.
            evaluator: What evaluates weights.
            interval: Customers between two evaluations.
            average_keeps: Share of the old average that an update keeps.
            report: Called with the number of customers after each step.
        """
        super().__init__()
        self.folder, self.evaluator, self.interval = folder, evaluator, interval
        self.average_keeps, self.report = average_keeps, report
        self.last_evaluation: int | None = None
        self.last_average, self.best, self.seconds = 0, math.inf, 0.0
        self.average: Weights | None = None
        self._began = time.perf_counter()

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to continue from here."""
        names = ("last_evaluation", "last_average", "best", "average")
        return {"seconds": self.elapsed(), **{name: getattr(self, name) for name in names}}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        vars(self).update(state)

    def elapsed(self) -> float:
        """Return the seconds of the run, those before an interruption included."""
        return self.seconds + time.perf_counter() - self._began

    def record(self, weights: str, choice: str, result: Result, best: bool = False) -> None:
        """Append an evaluation to the curve; `best`: these weights are saved."""
        line = {
            "schema": SCHEMA,
            "customers": self.num_timesteps,
            "seconds": round(self.elapsed(), 1),
            "weights": weights,
            "choice": choice,
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
        due = self.last_average + self.evaluator.effort.averaging_interval
        if self.average is None or self.num_timesteps >= due:
            self._update_average()
        if self.last_evaluation is None or self.num_timesteps >= self.last_evaluation + self.interval:
            self._evaluate()
            self._save_checkpoint()

    def _on_training_end(self) -> None:
        self._update_average()
        if self.last_evaluation != self.num_timesteps:
            self._evaluate()
        save_model(set_actor_weights(self.evaluator.model, actor_weights(self.model)), self.folder / FINAL)
        self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        checkpoint.save(self.model, self.state(), self.folder)

    def _update_average(self) -> None:
        latest, self.last_average = actor_weights(self.model), self.num_timesteps
        if self.average is None:
            self.average = latest
        for name, value in self.average.items():
            value.lerp_(latest[name], 1.0 - self.average_keeps)

    def _evaluate(self) -> None:
        """Evaluate latest and averaged weights, and save them if they are the best."""
        candidates = {"latest": actor_weights(self.model)}
        if self.last_evaluation is not None and self.average is not None:  # at first they are equal
            candidates["average"] = self.average
        for name, weights in candidates.items():
            for choice in self.evaluator.choices():
                result = self.evaluator.evaluate(self.evaluator.policy(weights, choice))
                better = result.cost.mean < self.best or not (self.folder / MODEL).exists()
                self.record(name, choice, result, better)
                self.logger.record(f"evaluation/cost of {name}, {choice}", result.cost.mean)
                if better:
                    self._save_best(weights, name, choice, result)
        self.logger.dump(self.num_timesteps)
        self.last_evaluation = self.num_timesteps

    def _save_best(self, weights: Weights, name: str, choice: str, result: Result) -> None:
        if result.stable:  # any stable router is better than an unstable one
            self.best = result.cost.mean
        save_model(set_actor_weights(self.evaluator.model, weights), self.folder / MODEL)
        best = {"customers": self.num_timesteps, "weights": name, "choice": choice, "seed": result.seed}
        write_text(self.folder / BEST, to_line({**best, "cost": result.cost.to_dict()}) + "\n")


def read_best(folder: Path) -> dict[str, Any]:
    """Return the best router of a run: its weights, choice, and cost."""
    content: dict[str, Any] = json.loads((folder / BEST).read_text(encoding="utf-8"))
    return content
