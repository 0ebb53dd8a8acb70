"""Learn to route with all queues in sight: `python -m agents dispatch --scenario small-mixed`.

The learner plays `pull_env/Dispatch-v0`, where looking is free (`free_information=True`), and is told nothing
of the system but what an observation shows and what a customer costs. It may choose a full server, which
turns the customer away: so does the optimum where queues are long. Its best actions, for all lengths of the
queues up to the buffers, are a table: a policy without a network, whose cost is known exactly, as that of the
optimum is. Both are simulated as well, on the same customers.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import pull_env
from agents.training.algorithms import CONFIGURATION, DISPATCH, learner
from agents.training.evaluation_callback import CURVE
from agents.training.export import POLICY
from agents.training.schedule import Falling, FallingEntropy
from pull_env.envs.dispatch import DispatchEnv
from pull_env.policy.policy import Lookup, Policy, save_policy
from pull_env.reporting.console import command_line
from pull_env.reporting.rows import versions, write_rows
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.seeds import spawn_seeds
from pull_env.simulation.simulate import simulate
from pull_env.simulation.statistics import Estimate, estimate
from pull_env.theory.exact import solve
from pull_env.theory.optimum import optimise

MOST_STATES = 100_000  # of a table


@dataclass(frozen=True)
class Args:
    """What to learn, and with what."""

    scenario: str = "small-mixed"
    """A preset's name, or the path of a TOML file: few servers with buffers, Markov."""
    seed: int = 0
    """Seeds weights, environments and exploration; the score uses another seed."""
    steps: int = 500_000
    """Customers to learn from."""
    envs: int = 16
    """Environments side by side."""
    layers: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers, of actor and critic each."""
    learning_rate: float = 1e-3
    """Step of Adam at the start; it falls to 0."""
    gamma: float = 0.98
    """Discount a customer."""
    gae_lambda: float = 0.9
    """Weight of later customers in an advantage."""
    ent_coef: float = 0.005
    """Weight of the entropy of the policy at the start; it falls to 0."""
    n_steps: int = 256
    """Customers of each environment between two updates."""
    batch_size: int = 512
    """Customers a gradient step."""
    n_epochs: int = 10
    """Passes over the customers of an update."""
    evaluations: int = 10
    """How often on the way the exact cost is noted; nothing is chosen by it."""
    score_customers: int = 2_000_000
    """Customers counted in the score."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A new folder for the results; by default one in runs/, named by scenario, seed and time."""


def train(args: Args, scenario: Scenario, folder: Path) -> Any:
    """Return a model of PPO that has learned from `args.steps` customers."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    made = [lambda: DispatchEnv(scenario, free_information=True, customers=20_000)] * args.envs
    model = learner("ppo")(
        "MlpPolicy",
        VecNormalize(DummyVecEnv(made), norm_obs=False, gamma=args.gamma),
        learning_rate=Falling(args.learning_rate, 0.0),
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
    falling = FallingEntropy(Falling(args.ent_coef, 0.0), args.steps)
    return model.learn(args.steps, [falling, _curve(args, scenario, folder)])


def _curve(args: Args, scenario: Scenario, folder: Path) -> Any:
    """Return what notes in `folder`, on the way, what the table of the moment costs exactly."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Noted(BaseCallback):
        looked = -1

        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            part = self.num_timesteps * args.evaluations // args.steps
            if part > self.looked:
                self.looked = part
                cost = solve(scenario, tabulate(self.model, scenario)).cost
                write_rows(folder / CURVE, [{"customers": self.num_timesteps, "cost": cost}])

    return Noted()


def tabulate(model: Any, scenario: Scenario) -> Policy:
    """Return the best actions of a model, for all lengths of queues up to the buffers, as a policy.

    Raises:
        ValueError: The table is too large, or a buffer is infinite.
    """
    limits = buffers(scenario)
    queues = np.array([*product(*(range(most + 1) for most in limits))])
    env = DispatchEnv(scenario, free_information=True)
    seen = np.tile(env.reset(seed=0)[0], (len(queues), 1))
    seen[:, : queues.shape[1]] = queues / (1.0 + queues)
    servers, _ = model.predict(seen, deterministic=True)
    return Policy("learned", (Lookup(tuple(limits), tuple(servers.tolist()), free=True),))


def buffers(scenario: Scenario) -> list[int]:
    """Return the buffer of each server.

    Raises:
        ValueError: One is infinite, or a table by all lengths would be too large.
    """
    limits = [pool.buffer for pool in scenario.pools for _ in range(pool.size)]
    finite = [most for most in limits if most is not None]
    if len(finite) < len(limits) or np.prod([most + 1.0 for most in finite]) > MOST_STATES:
        raise ValueError(
            f"scenario is {scenario.name}: all buffers must be finite, and their lengths have at most "
            f"{MOST_STATES:,} combinations"
        )
    return finite


def costs(scenario: Scenario, policy: Policy) -> tuple[float, float]:
    """Return what an arriving customer costs under a table, and under the optimum, both exactly."""
    return solve(scenario, policy).cost, optimise(scenario).exact.cost


def above(scenario: Scenario, policy: Policy, customers: int) -> Estimate:
    """Return by how much a table costs more than the optimum in simulation, in % of what that costs."""
    run: dict[str, Any] = {"seed": spawn_seeds(0, 1, "dispatch")[0], "replications": 16}
    found, best = (
        simulate(scenario, each, customers, **run).cost for each in (policy, optimise(scenario).policy())
    )
    return estimate(np.subtract(found.samples, best.samples) * (100 / best.mean))


def run(args: Args) -> int:
    """Learn, save and score as `args` say, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    scenario, began = load_scenario(args.scenario), datetime.now(timezone.utc)
    buffers(scenario)
    name = f"dispatch-{scenario.name}-seed{args.seed}"
    folder = args.out or Path("runs") / f"{name}-{began.strftime('%Y%m%d-%H%M%S')}"
    if folder.exists():
        raise ValueError(f"out is '{folder}': it exists already, and results are never overwritten")
    folder.mkdir(parents=True)
    started, busy = time.perf_counter(), time.process_time()
    policy = tabulate(train(args, scenario, folder), scenario)
    took = {
        "training_seconds": time.perf_counter() - started,
        "training_cpu_seconds": time.process_time() - busy,
    }
    save_policy(policy, folder / POLICY)
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(args).items()}
    told = {
        **{key: plain.pop(key) for key in ("scenario", "seed")},
        "learn": {key: plain[key] for key in plain if key not in ("out", "score_customers")},
        "env": DISPATCH,
        "algo": "ppo",
        "command": command_line(sys.orig_argv[1:]),
        "time": began.isoformat(timespec="seconds"),
        "versions": {"pull-env": pull_env.__version__, **versions()},
        **{key: round(value, 1) for key, value in took.items()},
    }
    (folder / CONFIGURATION).write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"learned from {args.steps:,} customers in {took['training_seconds']:.0f} s, saved in {folder}")
    learned, best = costs(scenario, policy)
    print(f"exactly: learned {learned:.5f}, optimum {best:.5f}, {100 * (learned / best - 1):+.2f} %")
    if args.score_customers:
        gap = above(scenario, policy, args.score_customers)
        print(f"simulated: {gap.mean:+.2f} % ({gap.low:+.2f} to {gap.high:+.2f})")
    return 0
