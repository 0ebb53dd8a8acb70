"""A router is trained again to the bit, in a process of its own."""

import subprocess
import sys

import pytest

from agents.training.commands import ROOT
from agents.zoo import registry, retrain
from agents.zoo.registry import load_trained

LEARN = """--scenario small-mixed --algo maskable-ppo --steps 300 --envs 2 --n-steps 75 --evaluations 1
    --evaluation-customers 2000 --score-customers 0"""
DISPATCH = "--steps 300 --envs 2 --n-steps 75 --evaluations 1 --score-customers 0"


def test_a_router_is_trained_again_to_the_bit(own_router, tmp_path, capfd):
    trained = load_trained("mine")
    assert trained.training["command"].endswith("--generations 2")
    args = retrain.Args("mine", tmp_path / "again", check=True)
    assert retrain.run(args) == 0, capfd.readouterr()
    assert "as in training.json" in capfd.readouterr().out
    other = {**trained.training, "weights_sha256": "0" * 64}
    assert not retrain.is_same("mine", other, tmp_path / "again")
    with pytest.raises(ValueError, match="it exists already"):
        retrain.run(args)


@pytest.mark.parametrize("verb", ["train", "dispatch"])
def test_what_gradients_trained_is_trained_again_to_the_bit(verb, monkeypatch, tmp_path, capfd):
    """In processes of their own, as anybody would."""
    monkeypatch.setattr(registry, "TRAINED", tmp_path / "trained")
    words = {"train": LEARN, "dispatch": DISPATCH}[verb].split()
    command = [sys.executable, "-m", "agents", verb, *words, "--out", str(tmp_path / "run")]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    registry.shelve(tmp_path / "run", "mine")
    trained = load_trained("mine")
    assert trained.full_information == (verb == "dispatch")
    assert trained.training["customers"] == 300
    assert "--out" not in trained.training["command"]
    assert retrain.run(retrain.Args("mine", tmp_path / "again", check=True)) == 0
    assert "as in training.json" in capfd.readouterr().out
