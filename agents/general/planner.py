"""The planner of the general router: a network that predicts costs of plans.

Every plan is simulated on every system, on the same streams. The network is trained by gradient descent on
two losses: the excess cost of a soft choice by its outputs, and the error of these outputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from agents.general.plans import PLANS
from agents.general.random_systems import SPANS, Spans, run_length
from agents.general.router import SHAPES, Floats, features, pool_shares, starting_weights
from agents.search.objective import mean_cost
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

MOST_EXCESS = 1.0  # an excess, the logarithm of cost / least cost, counts as this at most
SHARPNESS = 20.0  # of the soft choice, in which an excess of 0.05 has a weight of 1/e
ERROR_WEIGHT = 0.06  # of the second loss, per plan
NEAR, FAR = 0.2, 0.02  # errors weigh exp(-excess / NEAR) + FAR: bad plans need no precise prediction
BATCH, STEPS, RATE, DECAY = 256, 3_000, 5e-3, 0.1


def short_run_cost(scenario: Scenario, policy: Policy, seed: int, spans: Spans = SPANS) -> float:
    """Return the mean cost per customer in one short run, after a warm-up."""
    return mean_cost(scenario, policy, seed, *run_length(scenario, spans))


def measure_plans(
    systems: Sequence[Scenario],
    seeds: Sequence[int],
    workers: int | None,
    report: Callable[[int], None],
    spans: Spans = SPANS,
) -> Floats:
    """Return the cost of each plan on each system, (systems, plans)."""

    def costs(scenario: Scenario, seed: int) -> list[float]:
        row = [short_run_cost(scenario, plan.on(scenario), seed, spans) for plan in PLANS]
        report(1)
        return row

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return np.array(list(pool.map(costs, systems, seeds)))


@dataclass(frozen=True)
class Fit:
    """A trained planner.

    Attributes:
        weights: Of the whole router; its player adds nothing.
        regret: Mean of the logarithm of its cost / that of the best plan, on the training systems.
        held_out: The same on systems that it was not trained on.
    """

    weights: dict[str, Floats]
    regret: float
    held_out: float


def train(systems: Sequence[Scenario], costs: Floats, seed: int, held_out: int, steps: int = STEPS) -> Fit:
    """Train a planner on costs of plans, (systems, plans).

    The last `held_out` systems are not trained on.
    """
    import torch

    torch.set_num_threads(1)  # so that sums are taken in one order
    excess = np.log(costs / costs.min(axis=1, keepdims=True))
    names = [name for name in SHAPES if name.startswith("planner")]
    weights, rng = starting_weights(seed), np.random.default_rng(seed)
    encoder, hidden, output = parts = [torch.tensor(weights[name], requires_grad=True) for name in names]
    of_pools, sizes, of_systems = (torch.tensor(each) for each in inputs(systems))
    truth, train_count = torch.tensor(excess), len(systems) - held_out
    optimiser = torch.optim.AdamW(parts, RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)

    def affine(part: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return values @ part[:, :-1].T + part[:, -1]

    def predict(rows: torch.Tensor) -> torch.Tensor:
        encoded = torch.tanh(affine(encoder, of_pools[rows]))
        pooled = (sizes[rows][:, :, None] * encoded).sum(1)
        return affine(output, torch.tanh(affine(hidden, torch.cat([pooled, of_systems[rows]], 1))))

    for _ in range(steps):
        rows = torch.tensor(rng.choice(train_count, min(BATCH, train_count), replace=False))
        predicted, true = predict(rows), truth[rows]
        chosen = (torch.softmax(-SHARPNESS * predicted, 1) * true.clamp(max=2 * MOST_EXCESS)).sum(1).mean()
        errors = (predicted - true.clamp(max=MOST_EXCESS)).square() * (torch.exp(-true / NEAR) + FAR)
        optimiser.zero_grad()
        (chosen + ERROR_WEIGHT * errors.sum(1).mean()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    every = torch.arange(len(systems))
    regrets = truth[every, predict(every).argmin(1)].detach().numpy()
    weights |= {name: part.detach().numpy() for name, part in zip(names, parts, strict=True)}
    return Fit(weights, float(regrets[:train_count].mean()), float(regrets[train_count:].mean()))


def inputs(systems: Sequence[Scenario]) -> tuple[Floats, Floats, Floats]:
    """Return the features of all systems as arrays.

    Returns:
        Of every pool and its system, (systems, J, entries), the shares of pools, (systems, J), 0 for pools
        that a system does not have, and of the systems, (systems, entries).
    """
    J = max(len(scenario.pools) for scenario in systems)
    of_pools, sizes, of_systems = [], [], []
    for scenario in systems:
        system, pools = features(scenario)
        missing = ((0, J - len(pools)), (0, 0))
        of_pools.append(np.pad(np.column_stack([pools, np.tile(system, (len(pools), 1))]), missing))
        sizes.append(np.pad(pool_shares(scenario), missing[0]))
        of_systems.append(system)
    return np.array(of_pools), np.array(sizes), np.array(of_systems)
