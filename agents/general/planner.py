"""The planner of the general router: what the plans cost on many systems, and a network that learns it.

Every plan is simulated on every system of a draw, on the same customers. The network is trained by gradient
descent on two losses: the cost in % of the best that a soft choice by its outputs would have, and how far
these are from the truth.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from agents.general.plans import PLANS
from agents.general.random_systems import span
from agents.general.router import SHAPES, Floats, declared, shares, starting_weights
from agents.search.objective import mean_cost
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

DEAREST = 1.0  # of the logarithm of a cost by the least: what is dearer counts as this
SHARPNESS = 20.0  # of the soft choice, in which what seems dearer by 0.05 has 1/e of the weight
TRUTH = 0.06  # weight of the second loss, a plan
NEAR, FAR = 0.2, 0.02  # the truth weighs exp(-excess / NEAR) + FAR: what is far behind need not be known well
BATCH, STEPS, RATE, DECAY = 256, 3_000, 5e-3, 0.1


def cost(scenario: Scenario, policy: Policy, seed: int) -> float:
    """Return the mean cost of a customer in one short run, whose beginning is left out."""
    return mean_cost(scenario, policy, seed, *span(scenario))


def measure(
    systems: Sequence[Scenario], seeds: Sequence[int], workers: int | None, report: Callable[[int], None]
) -> Floats:
    """Return what each plan costs on each system, (systems, plans)."""

    def row(scenario: Scenario, seed: int) -> list[float]:
        found = [cost(scenario, plan.on(scenario), seed) for plan in PLANS]
        report(1)
        return found

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return np.array(list(pool.map(row, systems, seeds)))


@dataclass(frozen=True)
class Fit:
    """A planner, and how it does.

    Attributes:
        weights: Of the whole router; its player adds nothing.
        regret: Mean of the logarithm of its cost by that of the best plan, on the systems it was trained on.
        held_out: The same on systems that it was not trained on.
    """

    weights: dict[str, Floats]
    regret: float
    held_out: float


def train(systems: Sequence[Scenario], costs: Floats, seed: int, held_out: int, steps: int = STEPS) -> Fit:
    """Train a planner on what plans cost, (systems, plans), on all but the last `held_out` systems."""
    import torch

    torch.set_num_threads(1)  # so that sums are taken in one order
    excess = np.log(costs / costs.min(axis=1, keepdims=True))
    names = [name for name in SHAPES if name.startswith("planner")]
    weights, rng = starting_weights(seed), np.random.default_rng(seed)
    parts = [torch.tensor(weights[name], requires_grad=True) for name in names]
    seen, sizes, known = (torch.tensor(each) for each in laid_out(systems))
    truth, many = torch.tensor(excess), len(systems) - held_out
    optimiser = torch.optim.AdamW(parts, RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)

    def affine(part: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ part[:, :-1].T + part[:, -1]

    def told(rows: torch.Tensor) -> torch.Tensor:
        encoded = torch.tanh(affine(parts[0], seen[rows]))
        pooled = (sizes[rows][:, :, None] * encoded).sum(1)
        return affine(parts[2], torch.tanh(affine(parts[1], torch.cat([pooled, known[rows]], 1))))

    for _ in range(steps):
        rows = torch.tensor(rng.choice(many, min(BATCH, many), replace=False))
        guess, right = told(rows), truth[rows]
        chosen = (torch.softmax(-SHARPNESS * guess, 1) * right.clamp(max=2 * DEAREST)).sum(1).mean()
        off = (guess - right.clamp(max=DEAREST)).square() * (torch.exp(-right / NEAR) + FAR)
        optimiser.zero_grad()
        (chosen + TRUTH * off.sum(1).mean()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    every = torch.arange(len(systems))
    regrets = truth[every, told(every).argmin(1)].detach().numpy()
    weights |= {name: part.detach().numpy() for name, part in zip(names, parts, strict=True)}
    return Fit(weights, float(regrets[:many].mean()), float(regrets[many:].mean()))


def laid_out(systems: Sequence[Scenario]) -> tuple[Floats, Floats, Floats]:
    """Return what is declared of all systems.

    Returns:
        Of every pool and its system, (systems, J, entries), the sizes of pools, (systems, J), 0 for pools
        that are not there, and of the systems, (systems, entries).
    """
    J = max(len(scenario.pools) for scenario in systems)
    known, rows, sizes = [], [], []
    for scenario in systems:
        system, pools = declared(scenario)
        missing = ((0, J - len(pools)), (0, 0))
        rows.append(np.pad(np.column_stack([pools, np.tile(system, (len(pools), 1))]), missing))
        sizes.append(np.pad(shares(scenario), missing[0]))
        known.append(system)
    return np.array(rows), np.array(sizes), np.array(known)
