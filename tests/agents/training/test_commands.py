"""Commands of runs: what repeats them, and those of earlier versions."""

import json

import pytest
import tyro

from agents.__main__ import VERBS, module_of
from agents.training.commands import arguments_of, repeatable
from agents.zoo.registry import TRAINED


def test_a_command_repeats_by_generations_in_place_of_minutes():
    command = "python -m agents search --minutes 4 --seed 2 --workers 1 --out 'runs/a b'"
    assert repeatable(command, 7) == "python -m agents search --seed 2 --generations 7"


@pytest.mark.parametrize("path", sorted(TRAINED.glob("*/training.json")), ids=lambda path: path.parent.name)
def test_committed_commands_are_commands_of_today(path):
    words = arguments_of(json.loads(path.read_text(encoding="utf-8"))["command"])
    assert words[:2] == ["-m", "agents"]
    assert words[2] in VERBS
    args = tyro.cli(module_of(words[2]).Args, args=words[3:])
    if getattr(args, "start", None) is not None:
        assert (TRAINED.parents[2] / args.start).is_file()
