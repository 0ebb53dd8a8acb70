"""Short training runs and calls of the command line, in this process."""

import dataclasses
import hashlib
import sys

import pytest

from agents.__main__ import main
from agents.training import train
from agents.training.arguments import Effort
from agents.training.hyperparameters import Hyperparameters
from agents.zoo import registry
from pull_env.policy.policy import Announce, Policy, Send, Take, save_policy

LEARN = {
    "ppo": Hyperparameters(steps=400, envs=2, n_steps=64, batch_size=64, n_epochs=2, episode_customers=150),
    "dqn": Hyperparameters(
        steps=400, envs=2, episode_customers=150, learning_starts=50, batch_size=16, buffer_size=300
    ),
}
LEARN["maskable-ppo"], LEARN["qr-dqn"] = LEARN["ppo"], LEARN["dqn"]
EFFORT = Effort(
    warmup=50, warmup_per_server=4, averaging_interval=64, env_warmup=4_000, imitation_updates=250
)

SEARCH = """--scenario small-mixed --generations 2 --every 1 --population 6 --customers 2000 --warmup 100
    --replications 2 --validation-customers 4000 --validation-warmup 100 --score-customers 0 --seed 3"""


def weights_digest(model):
    """Return the sha256 of a model's weights, in order of their names."""
    digest = hashlib.sha256()
    for name, value in sorted(model.policy.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


@pytest.fixture
def short():
    """Return a function that makes the arguments of a short run."""

    def args(out, algo="ppo", **given):
        names = {field.name for field in dataclasses.fields(train.Args)}
        learn = dataclasses.replace(LEARN[algo], **{k: given.pop(k) for k in list(given) if k not in names})
        usual = {"evaluations": 3, "evaluation_customers": 256, "score_customers": 0, "effort": EFFORT}
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


@pytest.fixture
def own_router(monkeypatch, tmp_path):
    """A folder of trained routers with one, searched for a moment; returns the folder of its search."""
    monkeypatch.setattr(registry, "TRAINED", tmp_path / "trained")
    start = registry.TRAINED / "mine" / "start.toml"
    start.parent.mkdir(parents=True)
    save_policy(Policy("start", (Take(order="fastest"), Send(weights="rate")), Announce()), start)
    words = ["search", *SEARCH.split(), "--start", str(start), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "agents", *words])
    assert main(words) == 0
    registry.shelve(tmp_path / "run", "mine")
    return tmp_path / "run"
