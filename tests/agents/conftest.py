"""Short training runs, in this process."""

import dataclasses
import sys

import pytest

from agents.__main__ import main
from agents.training import evaluation_callback as curve
from agents.training import imitation as cloning
from agents.training import train
from agents.training import warm_envs as settled
from agents.training.hyperparameters import Hyperparameters

LEARN = {
    "ppo": Hyperparameters(steps=400, envs=2, n_steps=64, batch_size=64, n_epochs=2, customers=150),
    "dqn": Hyperparameters(
        steps=400, envs=2, customers=150, learning_starts=50, batch_size=16, buffer_size=300
    ),
}
LEARN["maskable-ppo"], LEARN["qr-dqn"] = LEARN["ppo"], LEARN["dqn"]


@pytest.fixture
def short(monkeypatch):
    """Make evaluations short, and return what makes the arguments of a short run."""
    monkeypatch.setattr(curve, "RUNS", 8)
    monkeypatch.setattr(curve, "SETTLED", 50)
    monkeypatch.setattr(curve, "SETTLE", 4)
    monkeypatch.setattr(settled, "FILLED", 4_000)
    monkeypatch.setattr(curve, "UPDATE", 64)
    monkeypatch.setattr(cloning, "UPDATES", 250)

    def args(out, algo="ppo", **given):
        names = {field.name for field in dataclasses.fields(train.Args)}
        learn = dataclasses.replace(LEARN[algo], **{k: given.pop(k) for k in list(given) if k not in names})
        usual = {"evaluations": 3, "evaluation_customers": 256, "score_customers": 0}
        return train.Args("small-mixed", algo, **{**usual, **given}, out=out, learn=learn)

    return args


@pytest.fixture
def call(monkeypatch, capsys):
    """Call `python -m agents` in this process; return its exit status and what it printed."""

    def called(*words):
        words = [*map(str, words)]
        monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "agents", *words])
        try:
            status = main(words)
        except SystemExit as stopped:
            status = stopped.code
        return status, *capsys.readouterr()

    return called
