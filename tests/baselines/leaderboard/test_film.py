"""The film of the README: it shows what the code draws, and is small."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from baselines.leaderboard.film import NAME, Args, film, main


def frames(path):
    with Image.open(path) as image:
        return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]


def test_the_film_in_the_readme_is_what_the_code_draws():
    path = Args().out / NAME
    assert path.name in (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert path.stat().st_size < 300_000
    assert np.array_equal(frames(path), film(Args()))


def test_a_film_of_another_system(tmp_path, capsys):
    path = tmp_path / "new" / "routers.gif"
    words = [
        "--scenario",
        "small-mixed",
        "--frames",
        "3",
        "--start",
        "0",
        "--seed",
        "1",
        "--out",
        str(path.parent),
    ]
    assert main(words) == 0
    assert str(path) in capsys.readouterr().out
    first, second, *_ = pictures = frames(path)
    assert np.array_equal(pictures, film(Args("small-mixed", frames=3, start=0, seed=1)))
    assert not np.array_equal(first, second)
    with Image.open(path) as image:
        assert (image.n_frames, image.info["duration"], image.info["loop"]) == (3, 250, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--frames", "0"], "frames is 0: it must be a whole number from 1"),
        (["--start", "-1"], "start is -1: it must be a whole number from 0"),
        (["--scenario", "two-sped"], "two-speeds"),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_refusals_are_a_sentence(words, message, tmp_path, capsys):
    assert main([*words, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("error: ")
    assert not list(tmp_path.iterdir())
