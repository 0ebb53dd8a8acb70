"""Train a router: `python -m agents train --scenario two-speeds --algo ppo --seed 0`.

One customer is one step, and the reward is minus its cost, so the learner minimises the cost per customer.
What to learn with stands in agents/hyperparams, by learner and scenario. On the way the router is evaluated,
and the best kept; at the end it is scored as baselines are. A run that was stopped goes on with --resume.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from agents.training.action_set import start_policy
from agents.training.algorithms import (
    ACTOR_CRITIC,
    START,
    learner,
    load,
    read_configuration,
    write_configuration,
)
from agents.training.arguments import Args, check, configuration, offer_of, stored
from agents.training.export import POLICY, policy_of
from agents.training.hyperparameters import LEARNERS
from agents.training.score import score
from pull_env.policy.policy import save_policy
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.progress import Report, bar
from pull_env.simulation.seeds import spawn_seeds


def run(args: Args) -> int:
    """Train, keep the best and score it, as `args` say, and return the exit status.

    Raises:
        ValueError: Something that is asked for is not allowed.
    """
    folder = args.resume or args.out or default_folder(args)
    args = check(args) if args.resume is None else stored(args)
    try:
        if args.resume is None:
            folder.mkdir(parents=True)
            write_configuration(configuration(args), folder)
            if args.learn.start != "none":
                start = start_policy(args.learn.start, load_scenario(args.scenario))
                save_policy(dataclasses.replace(start, name="start"), folder / START)
            train(args, folder)
        else:
            go_on(args, folder)
    except KeyboardInterrupt:
        print(f"stopped; go on: python -m agents train --resume {folder}", file=sys.stderr)
        raise
    if args.score_customers:
        score(folder, args.scenario, args.score_customers)
    print(f"score it again: python -m agents score {folder} --scenario {args.scenario}")
    return 0


def default_folder(args: Args) -> Path:
    """Return a new folder's name, in runs/."""
    now = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{args.algo}-{Path(args.scenario).stem}-seed{args.seed}-{now}"


def train(args: Args, folder: Path) -> None:
    """Learn from the first customer to the last, and leave the results in `folder`."""
    model = make_model(args)
    with bar(f"{args.algo} on {args.scenario}", args.learn.steps, sys.stderr.isatty()) as report:
        curve = make_curve(args, folder, report)
        if args.learn.start != "none":
            teach(model, args, curve)
        model.set_logger(logger(folder))
        model.learn(args.learn.steps, callbacks(args, curve))
    finish(model, curve, folder)


def go_on(args: Args, folder: Path) -> None:
    """Learn from the customer at which a run was stopped to the last, as `train` would have."""
    from agents.training.checkpoint import restore

    model, state = restore(args.algo, folder)
    left = args.learn.steps - model.num_timesteps
    with bar(f"{args.algo} on {args.scenario}", left, sys.stderr.isatty()) as report:
        curve = make_curve(args, folder, report)
        curve.restore(state)
        model.set_logger(logger(folder))
        model.learn(left, callbacks(args, curve), reset_num_timesteps=False)
    finish(model, curve, folder)


def make_model(args: Args) -> Any:
    """Return a learner that has learned nothing yet, with its environments; rewards have unit spread."""
    from stable_baselines3.common.vec_env import VecNormalize

    from agents.training.schedule import Falling

    learn, scenario = args.learn, load_scenario(args.scenario)
    envs = environments(args, scenario)
    given = {name: value for name, value in learn.given().items() if name in LEARNERS}
    if args.algo in ACTOR_CRITIC:
        given["batch_size"] = min(learn.batch_size, learn.envs * learn.n_steps)
    policy, shape = network(args, envs.envs.local_size)
    return learner(args.algo)(
        policy,
        VecNormalize(envs, norm_obs=False, gamma=learn.gamma),
        learning_rate=Falling(learn.learning_rate, learn.final_rate),
        policy_kwargs=shape,
        seed=args.seed,  # the environments spawn theirs from it
        device="cpu",
        **given,
    )


def environments(args: Args, scenario: Scenario) -> Any:
    """Return the environments to learn in, which are in motion from the start."""
    from agents.training.warm_envs import SettledRouters, fill_customers, plain_rule

    learn = args.learn
    fill = plain_rule(scenario) if learn.start == "none" else start_policy(learn.start, scenario)
    return SettledRouters(
        scenario,
        learn.envs,
        fill.steps,
        fill_customers(scenario, learn.envs),
        customers=learn.customers,
        observation="with-state" if learn.observation == "with-state" else "local",
        **offer_of(args).arguments(),
    )


def network(args: Args, local_size: int) -> tuple[Any, dict[str, Any]]:
    """Return the class of the learner's networks, and its arguments."""
    layers = list(args.learn.layers)
    if args.algo not in ACTOR_CRITIC:
        return "MlpPolicy", {"net_arch": layers}
    from agents.training.networks import MaskableTwoViewsPolicy, TwoViewsPolicy

    policy = MaskableTwoViewsPolicy if args.algo == "maskable-ppo" else TwoViewsPolicy
    return policy, {"net_arch": {"pi": layers, "vf": layers}, "local_size": local_size}


def make_curve(args: Args, folder: Path, report: Report) -> Any:
    """Return what evaluates the learner on the way."""
    from agents.training.evaluation_callback import Curve, Examiner

    scenario, learn = load_scenario(args.scenario), args.learn
    examiner = Examiner.of(
        scenario, args.algo, learn.layers, args.evaluation_customers, args.seed, offer_of(args)
    )
    return Curve(folder, examiner, -(-learn.steps // args.evaluations), learn.average, report)


def callbacks(args: Args, curve: Any) -> list[Any]:
    """Return what is called while the learner learns: the curve, and what changes on the way."""
    from agents.training.schedule import Falling, FallingEntropy

    learn = args.learn
    if args.algo not in ACTOR_CRITIC:
        return [curve]
    return [FallingEntropy(Falling(learn.ent_coef, learn.final_entropy), learn.steps), curve]


def teach(model: Any, args: Args, curve: Any) -> None:
    """Teach the learner the policy that it starts from, and note in the curve what that policy costs."""
    from agents.training.imitation import clone

    learn = args.learn
    policy = start_policy(learn.start, load_scenario(args.scenario))
    seed = spawn_seeds(args.seed, 1, "clone")[0]
    agreed = clone(model, policy, learn.start_customers, learn.start_noise, seed)
    print(f"taught {policy.name}: the network agrees with it on {agreed:.1%} of choices", flush=True)
    curve.note("start", policy.name, curve.examiner.examine(policy))


def logger(folder: Path) -> Any:
    """Return what writes the learner's figures for TensorBoard."""
    from stable_baselines3.common.logger import configure

    return configure(str(folder / "tensorboard"), ["tensorboard"])


def finish(model: Any, curve: Any, folder: Path) -> None:
    """Note in the folder how long it took, and say what came of it."""
    from agents.training.evaluation_callback import read_best

    model.env.close()
    seconds = curve.elapsed()
    keep_policy(folder)
    took = {"training_seconds": round(seconds, 1), "training_cpu_seconds": round(time.process_time(), 1)}
    write_configuration({**read_configuration(folder), **took}, folder)
    best = read_best(folder)
    print(f"learned from {model.num_timesteps:,} customers in {seconds:.0f} s, saved in {folder}")
    cost = best["cost"]["mean"]
    print(
        f"best in evaluation: the {best['weights']} weights after {best['customers']:,} customers, "
        f"{best['choice']}, " + ("unstable" if cost is None else f"cost {cost:.4f}")
    )


def keep_policy(folder: Path) -> None:
    """Leave in a run's folder what its best router follows, as a policy without code."""
    from agents.training.evaluation_callback import read_best

    model, told, _ = load(folder)
    sampled = read_best(folder)["choice"] == "sampled"
    policy = policy_of(model, told, load_scenario(told["scenario"]), sampled=sampled)
    assert policy is not None
    save_policy(policy, folder / POLICY)
