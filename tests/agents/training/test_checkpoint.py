"""An interrupted run continues bit-identically, and a run is repeated to the bit."""

import dataclasses
import gzip

import pytest

from agents.training import train
from agents.training.algorithms import load
from agents.training.checkpoint import CHECKPOINT
from agents.training.evaluation_callback import EvaluationCallback
from pull_env.reporting.rows import read_rows
from tests.agents.conftest import EFFORT, weights_digest


def left(folder):
    """What a run left: its routers and its curve, without the times."""
    digests = [weights_digest(load(folder / name)[0]) for name in ("best.zip", "final.zip")]
    rows = read_rows(folder / "curve.jsonl")
    return digests, [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


@pytest.fixture
def stop(monkeypatch):
    """Interrupt training after some steps of the envs."""

    def after(steps):
        count, on_step = 0, EvaluationCallback._on_step

        def counted(callback):
            nonlocal count
            count += 1
            if count > steps:
                raise KeyboardInterrupt
            return on_step(callback)

        monkeypatch.setattr(EvaluationCallback, "_on_step", counted)
        return lambda: monkeypatch.setattr(EvaluationCallback, "_on_step", on_step)

    return after


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_stopped_run_continues_bit_identically(short, stop, tmp_path, algo, capsys):
    train.run(short(tmp_path / "whole", algo))
    go_on = stop(170)  # of 200
    with pytest.raises(KeyboardInterrupt):
        train.run(short(tmp_path / "stopped", algo))
    assert f"--resume {tmp_path / 'stopped'}" in capsys.readouterr().err
    go_on()
    assert not (tmp_path / "stopped" / "final.zip").exists()
    train.run(train.Args(resume=tmp_path / "stopped", effort=EFFORT))
    assert left(tmp_path / "whole") == left(tmp_path / "stopped")


@pytest.mark.parametrize("algo", ["maskable-ppo", "qr-dqn"])
def test_a_run_is_repeated_to_the_bit_and_another_seed_gives_another(short, tmp_path, algo):
    for name, seed in (("first", 1), ("second", 1), ("third", 2)):
        train.run(short(tmp_path / name, algo, seed=seed, evaluations=1))
    assert left(tmp_path / "first") == left(tmp_path / "second")
    assert left(tmp_path / "first")[0][1] != left(tmp_path / "third")[0][1]


def test_a_resume_that_cannot_be(short, stop, tmp_path):
    with pytest.raises(ValueError, match=r"config.json cannot be read: No such file"):
        train.run(train.Args(resume=tmp_path))
    with pytest.raises(ValueError, match="the run goes on as it was begun, so give nothing else"):
        train.run(train.Args(resume=tmp_path, seed=3))
    stop(100)
    with pytest.raises(KeyboardInterrupt):
        train.run(short(tmp_path / "run"))
    for damage in (b"", b"no archive", gzip.compress(b"no pickle")):
        (tmp_path / "run" / CHECKPOINT).write_bytes(damage)
        with pytest.raises(ValueError, match=r"checkpoint '.*' cannot be read"):
            train.run(train.Args(resume=tmp_path / "run", effort=EFFORT))
    (tmp_path / "run" / CHECKPOINT).unlink()
    with pytest.raises(ValueError, match=r"checkpoint '.*' cannot be read: No such file"):
        train.run(train.Args(resume=tmp_path / "run", effort=EFFORT))
    configuration = (tmp_path / "run" / "config.json").read_text()
    (tmp_path / "run" / "config.json").write_text(configuration.replace('"routers": 2', '"routers": 3'))
    with pytest.raises(ValueError, match="its scenario small-mixed has changed since"):
        train.run(train.Args(resume=tmp_path / "run", effort=EFFORT))


def test_a_scenario_in_a_file_can_be_resumed(short, stop, tmp_path):
    (tmp_path / "mine.toml").write_text("load = 0.5\n[[pools]]\nsize = 3\nrate = 1.0\n")
    args = dataclasses.replace(short(tmp_path / "run"), scenario=str(tmp_path / "mine.toml"))
    go_on = stop(150)
    with pytest.raises(KeyboardInterrupt):
        train.run(args)
    go_on()
    train.run(train.Args(resume=tmp_path / "run", effort=EFFORT))
    assert (tmp_path / "run" / "final.zip").exists()
