"""The picture of a benchmark: it shows all points."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pull_env.bench import report, subjects
from pull_env.bench.timing import Measurement


def test_the_picture_shows_all_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = {}
    monkeypatch.setattr(report.Figure, "savefig", lambda figure, path, **options: drawn.update(of=figure))
    rates = (2e6, 4e6, 5e6)
    pull = partial(Measurement, name="pull", unit="customers per second", values=rates)
    sizes = [pull("policies", scenario=subjects.system(n)) for n in (10, 1000)]
    cores = [pull("cores", scenario=subjects.system(10), threads=k) for k in (1, 2)]
    report.draw([*sizes, *cores], tmp_path / "x.png")
    left, right = drawn["of"].axes
    assert left.lines[0].get_xydata().tolist() == [[10, 250], [1000, 250]]
    assert right.lines[0].get_xydata().tolist() == [[1, 4], [2, 4]]
    (bars,) = left.containers[0].lines[2]
    assert [list(bar[:, 1]) for bar in bars.get_segments()] == [[200, 500], [200, 500]]
