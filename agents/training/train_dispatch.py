"""Train with full information: `python -m agents dispatch --scenario small-mixed`.

The learner acts in `pull_env/Dispatch-v0` with `free_information=True`, and knows nothing of the system but
observations and rewards. It may choose a full server, which blocks the customer: so does the optimum when
queues are long. Its best actions for all queue lengths up to the buffers are a table: a policy without a
network, whose cost is known exactly, as that of the optimum is. Both are simulated as well, on the same
customers.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import pull_env
from agents.training.algorithms import DISPATCH, learner
from agents.training.schedule import EntropySchedule, LinearSchedule
from pull_env.envs.dispatch import DispatchEnv
from pull_env.policy.policy import Lookup, Policy, save_policy
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import versions, write_rows
from pull_env.reporting.run_folder import (
    CONFIGURATION,
    CURVE,
    POLICY,
    choose_folder,
    plain_arguments,
    write_json,
)
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate
from pull_env.simulation.statistics import Estimate, estimate
from pull_env.theory.exact import solve
from pull_env.theory.optimum import optimise

MOST_STATES = 100_000  # of the table


@dataclass(frozen=True)
class Args:
    """How to train."""

    scenario: str = "small-mixed"
    """A preset's name, or the path of a TOML file: few servers with buffers, Markov."""
    seed: int = 0
    """Seeds weights, environments and exploration; the score uses another seed."""
    steps: int = 500_000
    """Customers to learn from."""
    envs: int = 16
    """Parallel environments."""
    layers: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers, of actor and critic each."""
    learning_rate: float = 1e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""
    gamma: float = 0.98
    """Discount per customer."""
    gae_lambda: float = 0.9
    """Weight of later customers in an advantage."""
    ent_coef: float = 0.005
    """Weight of the entropy of the policy at the start; it falls linearly to 0."""
    n_steps: int = 256
    """Customers of each environment between two updates."""
    batch_size: int = 512
    """Customers per gradient step."""
    n_epochs: int = 10
    """Passes over the customers of an update."""
    evaluations: int = 10
    """How often the exact cost is recorded during training; nothing is chosen by it."""
    score_customers: int = 2_000_000
    """Customers counted in the score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by scenario, seed and time."""


def run(args: Args) -> int:
    """Train, save and score as `args` say, and return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    scenario, began = load_scenario(args.scenario), datetime.now(timezone.utc)
    buffers(scenario)
    folder = choose_folder(args.out, f"dispatch-{scenario.name}-seed{args.seed}", began)
    folder.mkdir(parents=True)
    started, started_cpu = time.perf_counter(), time.process_time()
    policy = tabulate(train(args, scenario, folder), scenario)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    save_policy(policy, folder / POLICY)
    plain, not_learn = plain_arguments(args), ("scenario", "seed", "out", "score_customers")
    configuration = {
        "scenario": args.scenario,
        "seed": args.seed,
        "learn": {key: plain[key] for key in plain if key not in not_learn},
        "env": DISPATCH,
        "algo": "ppo",
        "command": command_line(sys.orig_argv[1:]),
        "time": began.isoformat(timespec="seconds"),
        "versions": {"pull-env": pull_env.__version__, **versions()},
        "training_seconds": round(seconds, 1),
        "training_cpu_seconds": round(cpu_seconds, 1),
    }
    write_json(folder / CONFIGURATION, configuration)
    print(f"learned from {args.steps:,} customers in {seconds:.0f} s, saved in {folder}")
    learned, best = exact_costs(scenario, policy)
    print(f"exactly: learned {learned:.5f}, optimum {best:.5f}, {100 * (learned / best - 1):+.2f} %")
    if args.score_customers:
        gap = simulated_gap(scenario, policy, args.score_customers)
        print(f"simulated: {gap.mean:+.2f} % ({gap.low:+.2f} to {gap.high:+.2f})")
    return 0


def train(args: Args, scenario: Scenario, folder: Path) -> Any:
    """Return a model of PPO that has learned from `args.steps` customers."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    def make() -> Any:
        return DispatchEnv(scenario, free_information=True, customers=20_000)

    model = learner("ppo")(
        "MlpPolicy",
        VecNormalize(DummyVecEnv([make] * args.envs), norm_obs=False, gamma=args.gamma),
        learning_rate=LinearSchedule(args.learning_rate, 0.0),
        n_steps=args.n_steps,
        batch_size=min(args.batch_size, args.envs * args.n_steps),
        n_epochs=args.n_epochs,
        gamma=args.gamma,
        gae_lambda=args.gae_lambda,
        ent_coef=args.ent_coef,
        policy_kwargs={"net_arch": list(args.layers)},
        seed=args.seed,
        device="cpu",
    )
    entropy = EntropySchedule(LinearSchedule(args.ent_coef, 0.0), args.steps)
    return model.learn(args.steps, [entropy, exact_cost_callback(args, scenario, folder)])


def exact_cost_callback(args: Args, scenario: Scenario, folder: Path) -> Any:
    """Return a callback that appends the table's exact cost to the curve."""
    from stable_baselines3.common.callbacks import BaseCallback

    class ExactCost(BaseCallback):
        last_part = -1

        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            part = self.num_timesteps * args.evaluations // args.steps
            if part > self.last_part:
                self.last_part = part
                cost = solve(scenario, tabulate(self.model, scenario)).cost
                write_rows(folder / CURVE, [{"customers": self.num_timesteps, "cost": cost}])

    return ExactCost()


def tabulate(model: Any, scenario: Scenario) -> Policy:
    """Return the best action at all queue lengths up to the buffers, as a policy.

    Raises:
        ValueError: The table is too large, or a buffer is infinite.
    """
    limits = buffers(scenario)
    queues = np.array([*product(*(range(limit + 1) for limit in limits))])
    env = DispatchEnv(scenario, free_information=True)
    observations = np.tile(env.reset(seed=0)[0], (len(queues), 1))
    observations[:, : queues.shape[1]] = queues / (1.0 + queues)
    servers, _ = model.predict(observations, deterministic=True)
    return Policy("learned", (Lookup(tuple(limits), tuple(servers.tolist()), free=True),))


def buffers(scenario: Scenario) -> list[int]:
    """Return the buffer of each server.

    Raises:
        ValueError: One is infinite, or a table of all queue lengths would be too large.
    """
    limits = [pool.buffer for pool in scenario.pools for _ in range(pool.size)]
    finite = [limit for limit in limits if limit is not None]
    if len(finite) < len(limits) or np.prod([limit + 1.0 for limit in finite]) > MOST_STATES:
        raise ValueError(
            f"scenario is {scenario.name}: all buffers must be finite, and their lengths have at most "
            f"{MOST_STATES:,} combinations"
        )
    return finite


def exact_costs(scenario: Scenario, policy: Policy) -> tuple[float, float]:
    """Return the exact cost per arriving customer of a table, and of the optimum."""
    return solve(scenario, policy).cost, optimise(scenario).exact.cost


def simulated_gap(scenario: Scenario, policy: Policy, customers: int) -> Estimate:
    """Return by how much a table costs more than the optimum in simulation, in %."""
    run: dict[str, Any] = {"seed": spawn_seeds(0, 1, "dispatch")[0], "replications": 16}
    policies = (policy, optimise(scenario).policy())
    own, best = (simulate(scenario, each, customers, **run).cost for each in policies)
    return estimate(np.subtract(own.samples, best.samples) * (100 / best.mean))
