"""Training of the general router: repeated on any number of threads, arguments refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agents.general import train as generalise
from agents.general.router import RECALL, SHAPES, GeneralRouter, load, starting_weights
from agents.general.train import Args, Scale, moved


def test_moving_a_player_leaves_all_but_what_is_remembered() -> None:
    begin = GeneralRouter(starting_weights(0))
    there = moved(begin, np.ones(SHAPES["player.each"][1]))
    for name in SHAPES:
        change = there.weights[name] - begin.weights[name]
        expected = np.zeros(SHAPES[name])
        if name == "player.each":
            expected[RECALL] = 1.0
        assert np.array_equal(change, expected)


TINY = {"systems": 4, "held_out": 1, "generations": 2, "population": 4, "batch": 24, "validation_systems": 2}


def test_a_training_is_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    scale = Scale((20, 40), ((5, 500, 500), (5, 2_000, 2_000)), planner_steps=20, worthwhile=0.0)
    digests = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        assert generalise.run(Args(**TINY, workers=workers, out=folder, scale=scale)) == 0  # type: ignore[arg-type]
        digests.append(json.loads((folder / "training.json").read_text())["weights_sha256"])
        rows = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
        assert [row["generation"] for row in rows] == [0, 1, 2]
        assert "validation" in rows[-1]
        assert load(folder / "weights.safetensors").digest == digests[-1]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"systems": 1}, "systems is 1"),
        ({"held_out": 1_500}, "held_out is 1500: it must be less than systems"),
        ({"minutes": 0.0}, "minutes is 0.0"),
        ({"generations": 0}, "generations is 0"),
    ],
)
def test_arguments_that_cannot_be_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generalise.check(Args(**change))  # type: ignore[arg-type]
