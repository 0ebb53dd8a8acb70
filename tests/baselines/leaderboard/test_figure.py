"""The picture: valid files whatever the scores are, and names that can be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from baselines import make
from baselines.leaderboard import figure, report
from baselines.leaderboard.run import default_policies
from pull_env import Policy, Pool, Scenario, load_scenario, simulate
from pull_env.simulation.results import Result


def test_names_do_not_cover_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load_scenario("small-mixed")
    results = [(policy, [simulate(scenario, policy, 2000, warmup=100)]) for policy in default_policies()]
    drawn: list[Axes] = []
    place = figure._place_labels

    def watched(axes: Axes, results: list[tuple[Policy, Result]]) -> None:
        place(axes, results)
        drawn.append(axes)

    monkeypatch.setattr(figure, "_place_labels", watched)
    figure.draw([report.board(scenario, results)], tmp_path)
    names = {policy.name for policy, _ in results}
    labels = [text for text in drawn[0].texts if text.get_text() in names]
    for label in labels:
        label.get_window_extent()  # brings the position of the text up to date
    boxes = [np.array(Text.get_window_extent(label).extents) for label in labels]
    assert len(boxes) == len(names)
    covered = [figure._overlap(np.array(boxes[:k]), box).max() for k, box in enumerate(boxes) if k]
    assert max(covered) < 1.0  # square pixels


@pytest.mark.parametrize("names", [["random"], ["jsq"], ["balanced(2)"]])
def test_one_policy_can_be_drawn(names: list[str], tmp_path: Path) -> None:
    scenario = Scenario((Pool(3),), load=0.1)  # hardly anybody waits
    results = [(make(name), [simulate(scenario, make(name), 500, replications=2)]) for name in names]
    png, svg = figure.draw([report.board(scenario, results)], tmp_path)
    assert png.stat().st_size > 10_000
    assert svg.stat().st_size > 10_000


def test_a_panel_without_stable_policies_is_drawn_and_says_so(tmp_path: Path) -> None:
    scenario = Scenario((Pool(3),), load=1.1)
    board = report.board(scenario, [(make("random"), [simulate(scenario, make("random"), 500)])])
    figure.draw([board], tmp_path)
    assert not board.results[0][1].stable


def test_the_same_board_gives_the_same_svg(tmp_path: Path) -> None:
    scenario = load_scenario("small-mixed")
    board = report.board(scenario, [(make("jsq"), [simulate(scenario, make("jsq"), 500)])])
    first, second = (figure.draw([board], tmp_path / name)[1].read_bytes() for name in "ab")
    assert first == second


def test_a_picture_names_units_sizes_and_seeds(tmp_path: Path) -> None:
    scenario = load_scenario("small-mixed")
    board = report.board(scenario, [(make("jsq"), [simulate(scenario, make("jsq"), 500, seed=41)])])
    text = " ".join(figure.draw([board], tmp_path)[1].read_text(encoding="utf-8").split())
    for said in (
        "mean wait, time units",
        "messages per customer",
        "n = 4 servers",
        "seed 41",
        "95 %",
        "warm-up",
    ):
        assert said in text, said


def test_every_policy_has_a_marker() -> None:
    assert {figure.information(policy) for policy in default_policies()} == set(figure.INFORMATION)
