"""The learning curve: what is evaluated and averaged, and that the best is kept."""

import dataclasses
import json

import numpy as np
import torch

from agents.training import train
from agents.training.algorithms import actor_weights, load, router_model
from agents.training.arguments import Effort
from agents.training.evaluation_callback import EvaluationCallback, Evaluator, read_best
from pull_env.policy.policy import load_policy
from pull_env.reporting.rows import read_rows
from pull_env.reporting.run_folder import CURVE
from pull_env.scenario.scenario import Pool, Scenario, load_scenario
from pull_env.simulation.warmup import warmup_customers

SCENARIO = load_scenario("small-mixed")


def test_the_best_of_the_curve_is_kept(short, tmp_path, capsys):
    folder = tmp_path / "run"
    train.run(short(folder, start="pull-fastest", start_customers=500))
    rows = read_rows(folder / CURVE)
    assert [row["customers"] for row in rows] == [0] * 3 + [256] * 4 + [512] * 4
    assert rows[0]["weights"] == "start"
    assert rows[0]["choice"] == "pull-fastest"
    assert {(row["weights"], row["choice"]) for row in rows[3:7]} == {
        (weights, choice) for weights in ("latest", "average") for choice in ("best action", "sampled")
    }
    learned = [row for row in rows if row["weights"] != "start"]
    least = min(learned, key=lambda row: row["cost"]["mean"])
    best = read_best(folder)
    assert {name: best[name] for name in ("customers", "weights", "choice", "cost")} == {
        name: least[name] for name in ("customers", "weights", "choice", "cost")
    }
    kept = [row["cost"]["mean"] for row in rows if row["best"]]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == best["cost"]["mean"]
    model, configuration, _ = load(folder)
    evaluator = Evaluator.make(
        SCENARIO, "ppo", (64, 64), 256, configuration["seed"], effort=short(None).effort
    )
    kept_policy = evaluator.policy(actor_weights(model), best["choice"])
    assert evaluator.evaluate(kept_policy).cost.mean == best["cost"]["mean"]
    assert load_policy(folder / "policy.toml").network == kept_policy.network
    final = evaluator.evaluate(evaluator.policy(actor_weights(load(folder / "final.zip")[0]), "best action"))
    assert final.cost.mean == next(r for r in rows[7:] if r["weights"] == "latest")["cost"]["mean"]
    printed = capsys.readouterr().out
    assert "taught pull-fastest: the network agrees with it on" in printed
    assert f"cost {best['cost']['mean']:.4f}" in printed
    assert json.loads((folder / "config.json").read_text())["training_seconds"] > 0
    assert list((folder / "tensorboard").iterdir())


def test_the_average_follows_the_weights(short, tmp_path, monkeypatch):
    kept = []
    update = EvaluationCallback._update_average

    def recorded(callback):
        update(callback)
        average = {k: v.clone() for k, v in callback.average.items()}
        kept.append((actor_weights(callback.model), average))

    monkeypatch.setattr(EvaluationCallback, "_update_average", recorded)
    train.run(short(tmp_path / "run", average=0.75, evaluations=1))
    assert len(kept) == 5  # before the first update, and after each of four
    expected = kept[0][0]
    for latest, average in kept:
        expected = {k: 0.75 * v + 0.25 * latest[k] for k, v in expected.items()}
        assert all(torch.allclose(average[k], v, rtol=1e-4, atol=1e-6) for k, v in expected.items())
    assert any((average[k] != latest[k]).any() for k in average)


def test_an_evaluation_is_repeated_and_leaves_random_generators_alone(short):
    evaluator = Evaluator.make(SCENARIO, "ppo", (8,), 300, 0, effort=short(None).effort)
    weights = actor_weights(router_model("ppo", SCENARIO, (8,), 1))
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (evaluator.evaluate(evaluator.policy(weights, "sampled")) for _ in range(2))
    assert first == second
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_a_router_that_is_never_stable_is_kept_and_said_to_be_so(short, tmp_path, capsys):
    (tmp_path / "hot.toml").write_text("load = 3.0\n[[pools]]\nsize = 2\nrate = 1.0\n")
    args = dataclasses.replace(short(tmp_path / "run"), scenario=str(tmp_path / "hot.toml"))
    train.run(args)
    assert "unstable" in capsys.readouterr().out
    assert read_best(tmp_path / "run")["cost"]["mean"] is None
    assert [row["best"] for row in read_rows(tmp_path / "run" / CURVE)].count(True) == 1
    assert load(tmp_path / "run")


def test_a_warmup_is_as_long_as_the_system_needs_within_bounds():
    effort = Effort()

    def before(servers, load):
        scenario = Scenario((Pool(servers, 1.0),), routers=2, load=load)
        return Evaluator.make(scenario, "ppo", (8,), 300, 0).warmup()

    system = Scenario((Pool(10, 1.0),), routers=2, load=0.5)
    assert before(10, 0.5) == warmup_customers(system, None) < effort.warmup
    assert before(10, 0.99) == effort.warmup
    assert before(1_000, 0.99) == effort.warmup_per_server * 1_000
