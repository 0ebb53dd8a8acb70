"""Train a router: `python -m agents train --scenario two-speeds --algo ppo`.

One step is one customer, and the reward is minus its cost, so the learner minimises the cost per customer.
Hyperparameters are in agents/hyperparams: a default section, overridden per scenario. The router is evaluated
during training, and the best is saved; at the end it is scored like a baseline. An interrupted run continues
with --resume.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from agents.training.action_set import start_policy
from agents.training.algorithms import ACTOR_CRITIC, learner, load, read_configuration
from agents.training.arguments import Args, action_set_of, check, configuration, stored
from agents.training.export import policy_of
from agents.training.hyperparameters import STABLE_BASELINES
from agents.training.score import score
from pull_env.policy.policy import save_policy
from pull_env.reporting.run_folder import CONFIGURATION, POLICY, START, choose_folder, write_json
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.progress import Report, progress_bar
from pull_env.simulation.seeds import spawn_seeds


def run(args: Args) -> int:
    """Train, save the best router and score it, as `args` say; return the exit status.

    Raises:
        ValueError: An argument is not allowed.
    """
    name = f"{args.algo}-{Path(args.scenario).stem}-seed{args.seed}"
    folder = args.resume or choose_folder(args.out, name, datetime.now(timezone.utc))
    args = check(args) if args.resume is None else stored(args.resume, args)
    try:
        if args.resume is None:
            folder.mkdir(parents=True)
            write_json(folder / CONFIGURATION, configuration(args))
            train(args, folder)
        else:
            resume(args, folder)
    except KeyboardInterrupt:
        print(f"stopped; go on: python -m agents train --resume {folder}", file=sys.stderr)
        raise
    if args.score_customers:
        score(folder, args.scenario, args.score_customers)
    print(f"score it again: python -m agents score {folder} --scenario {args.scenario}")
    return 0


def train(args: Args, folder: Path) -> None:
    """Learn from the first customer to the last, and leave the results in `folder`."""
    learn: Any = args.learn  # resolved: all are given
    model = make_model(args)
    with progress_bar(f"{args.algo} on {args.scenario}", learn.steps, sys.stderr.isatty()) as report:
        evaluations = make_evaluations(args, folder, report)
        if learn.start != "none":
            imitate_start(model, args, evaluations)
        model.set_logger(make_logger(folder))
        model.learn(learn.steps, make_callbacks(args, evaluations))
    finish(model, evaluations)


def resume(args: Args, folder: Path) -> None:
    """Learn from the last checkpoint to the last customer, as `train` would have."""
    from agents.training.checkpoint import restore

    model, state = restore(args.algo, folder)
    left = (args.learn.steps or 0) - model.num_timesteps
    with progress_bar(f"{args.algo} on {args.scenario}", left, sys.stderr.isatty()) as report:
        evaluations = make_evaluations(args, folder, report)
        evaluations.restore(state)
        model.set_logger(make_logger(folder))
        model.learn(left, make_callbacks(args, evaluations), reset_num_timesteps=False)
    finish(model, evaluations)


def make_model(args: Args) -> Any:
    """Return an untrained learner with its envs; rewards have unit variance."""
    from stable_baselines3.common.vec_env import VecNormalize

    from agents.training.schedule import LinearSchedule

    learn: Any = args.learn
    envs = make_envs(args, load_scenario(args.scenario))
    further = {name: value for name, value in learn.given().items() if name in STABLE_BASELINES}
    if args.algo in ACTOR_CRITIC:
        further["batch_size"] = min(learn.batch_size, learn.envs * learn.n_steps)
    policy, policy_arguments = network_of(args, envs.envs.local_size)
    return learner(args.algo)(
        policy,
        VecNormalize(envs, norm_obs=False, gamma=learn.gamma),
        learning_rate=LinearSchedule(learn.learning_rate, learn.final_rate),
        policy_kwargs=policy_arguments,
        seed=args.seed,  # the environments spawn theirs from it
        device="cpu",
        **further,
    )


def make_envs(args: Args, scenario: Scenario) -> Any:
    """Return the environments to learn in, warmed up by the policy to start from."""
    from agents.training.warm_envs import WarmRouters, customers_before, default_warmup_policy

    learn: Any = args.learn
    warm = default_warmup_policy(scenario) if learn.start == "none" else start_policy(learn.start, scenario)
    return WarmRouters(
        scenario,
        learn.envs,
        warm.steps,
        customers_before(scenario, learn.envs, args.effort.env_warmup),
        customers=learn.episode_customers,
        observation="with-state" if learn.observation == "with-state" else "local",
        **action_set_of(args).env_arguments(),
    )


def network_of(args: Args, local_size: int) -> tuple[Any, dict[str, Any]]:
    """Return the class of the learner's networks, and its arguments."""
    layers = list(args.learn.layers or ())
    if args.algo not in ACTOR_CRITIC:
        return "MlpPolicy", {"net_arch": layers}
    from agents.training.networks import AsymmetricPolicy, MaskableAsymmetricPolicy

    policy = MaskableAsymmetricPolicy if args.algo == "maskable-ppo" else AsymmetricPolicy
    return policy, {"net_arch": {"pi": layers, "vf": layers}, "local_size": local_size}


def make_evaluations(args: Args, folder: Path, report: Report) -> Any:
    """Return the callback that evaluates the learner during training."""
    from agents.training.evaluation_callback import EvaluationCallback, Evaluator

    learn: Any = args.learn
    evaluator = Evaluator.make(
        load_scenario(args.scenario),
        args.algo,
        learn.layers,
        args.evaluation_customers,
        args.seed,
        action_set_of(args),
        args.effort,
    )
    interval = -(-learn.steps // args.evaluations)
    return EvaluationCallback(folder, evaluator, interval, learn.average, report)


def make_callbacks(args: Args, evaluations: Any) -> list[Any]:
    """Return the callbacks: evaluations, and for PPO the falling entropy."""
    from agents.training.schedule import EntropySchedule, LinearSchedule

    learn: Any = args.learn
    if args.algo not in ACTOR_CRITIC:
        return [evaluations]
    entropy = LinearSchedule(learn.ent_coef, learn.final_entropy)
    return [EntropySchedule(entropy, learn.steps), evaluations]


def imitate_start(model: Any, args: Args, evaluations: Any) -> None:
    """Train the learner to imitate the policy to start from, which is saved."""
    from agents.training.imitation import imitate

    learn: Any = args.learn
    policy = start_policy(learn.start, load_scenario(args.scenario))
    save_policy(dataclasses.replace(policy, name="start"), evaluations.folder / START)
    seed = spawn_seeds(args.seed, 1, "clone")[0]
    agreed = imitate(
        model, policy, learn.start_customers, learn.start_noise, seed, args.effort.imitation_updates
    )
    print(f"taught {policy.name}: the network agrees with it on {agreed:.1%} of choices", flush=True)
    evaluations.record("start", policy.name, evaluations.evaluator.evaluate(policy))


def make_logger(folder: Path) -> Any:
    """Return what logs the learner's statistics for TensorBoard."""
    from stable_baselines3.common.logger import configure

    return configure(str(folder / "tensorboard"), ["tensorboard"])


def finish(model: Any, evaluations: Any) -> None:
    """Save the best policy and the times of the run, and print the result."""
    from agents.training.evaluation_callback import read_best

    folder, seconds = evaluations.folder, evaluations.elapsed()
    model.env.close()
    best = read_best(folder)
    best_model, stored_configuration, _ = load(folder)
    scenario = load_scenario(stored_configuration["scenario"])
    policy = policy_of(best_model, stored_configuration, scenario, sampled=best["choice"] == "sampled")
    assert policy is not None
    save_policy(policy, folder / POLICY)
    times = {"training_seconds": round(seconds, 1), "training_cpu_seconds": round(time.process_time(), 1)}
    write_json(folder / CONFIGURATION, {**read_configuration(folder), **times})
    print(f"learned from {model.num_timesteps:,} customers in {seconds:.0f} s, saved in {folder}")
    cost = best["cost"]["mean"]
    print(
        f"best in evaluation: the {best['weights']} weights after {best['customers']:,} customers, "
        f"{best['choice']}, " + ("unstable" if cost is None else f"cost {cost:.4f}")
    )
