"""The command line and the page of the reproductions: complete results or none, and pages made from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from baselines import make
from baselines.reproduce import run as reproduce
from baselines.reproduce.common.page import page
from baselines.reproduce.common.study import Row, Section, Setup, Study, make_row, value
from pull_env import load_scenario, simulate
from pull_env.reporting.rows import read_rows
from pull_env.simulation.statistics import estimate

RESULTS = Path(reproduce.__file__).with_name("results")


def measure(setup: Setup, customers: int) -> Row:
    scenario, policy = load_scenario("small-mixed"), make("pull")
    result = simulate(scenario, policy, customers, seed=setup.seed, warmup=10, workers=setup.workers)
    return make_row(
        setup, scenario, policy, result, {"customers": customers}, {"twice": estimate([1.0, 3.0])}
    )


def tasks(setup: Setup) -> Iterator[Callable[[], Row]]:
    return (partial(measure, setup, customers) for customers in (300, 400)[: 1 if setup.quick else 2])


def sections(rows: list[Row]) -> list[Section]:
    table = [(str(row["point"]["customers"]), f"{value(row, 'p_wait').mean:.3f}") for row in rows]
    return [
        Section("Half | half", "Some wait.", "A few.", ("customers", "P(wait)"), table, None, "It is early.")
    ]


def figure(rows: list[Row]) -> Figure:
    drawn = Figure()
    drawn.subplots().plot([row["point"]["customers"] for row in rows])
    return drawn


STUDY = Study("toy", "A toy", "Nobody 2000.", "Nothing.", tasks, sections, figure)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "load", lambda name: STUDY)


def run(folder: Path, *arguments: str) -> int:
    return reproduce.main(["stolyar", "--out", str(folder), *arguments])


# What comes out


@pytest.mark.usefixtures("study")
def test_rows_page_and_figure_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--seed", "3", "--workers", "1") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"toy.jsonl", "toy.md", "toy.png", "toy.svg"}
    rows = read_rows(tmp_path / "toy.jsonl")
    assert [row["point"] for row in rows] == [{"customers": 300}, {"customers": 400}]
    assert {row["run"]["seed"] for row in rows} == {3}
    assert {row["machine"]["threads"] for row in rows} == {1}
    command = f"python -m baselines.reproduce stolyar --out {tmp_path} --seed 3 --workers 1"
    assert {row["command"] for row in rows} == {command}
    assert (tmp_path / "toy.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert ElementTree.parse(tmp_path / "toy.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    out, err = capsys.readouterr()
    assert err == ""
    assert "toy.md" in out


@pytest.mark.usefixtures("study")
def test_a_page_has_verdicts_tables_and_where_it_comes_from(tmp_path: Path) -> None:
    assert run(tmp_path, "--quick") == 0
    text = (tmp_path / "toy.md").read_text()
    (row,) = read_rows(tmp_path / "toy.jsonl")
    assert "| Half \\| half | undecided |" in text
    assert "**Undecided.** It is early." in text
    assert f"| 300 | {row['measures']['p_wait']['mean']:.3f} |" in text
    for part in (
        row["command"],
        row["package"]["version"],
        row["versions"]["numpy"],
        row["machine"]["processor"],
    ):
        assert part in " ".join(text.split())
    for reproduced, word in ((True, "reproduced"), (False, "not reproduced")):
        told = replace(STUDY, sections=lambda rows, r=reproduced: [replace(sections(rows)[0], reproduced=r)])
        assert f"| {word} |" in page(told, [row])


@pytest.mark.usefixtures("study")
def test_page_and_figure_can_be_made_again_from_rows(tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in tmp_path.glob("toy.[mps]*"):
        path.unlink()
    assert run(tmp_path, "--page") == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize("name", reproduce.STUDIES)
def test_a_committed_page_is_what_its_rows_give(name: str) -> None:
    text = page(reproduce.load(name), read_rows(RESULTS / f"{name}.jsonl"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", reproduce.STUDIES)
def test_every_study_of_the_table_is_there(name: str) -> None:
    assert reproduce.load(name).name == name


# Complete results or none


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(("stop", "status"), [(KeyboardInterrupt(), 130), (ValueError("no more"), 2)])
def test_what_is_not_finished_replaces_nothing(
    stop: BaseException, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path) == 0
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def stopped(setup: Setup) -> Iterator[Callable[[], Row]]:
        def fail() -> Row:
            raise stop

        yield partial(measure, setup, 500)
        yield fail

    monkeypatch.setattr(reproduce, "load", lambda name: replace(STUDY, tasks=stopped))
    assert run(tmp_path) == status
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_quick_results_never_land_where_full_ones_are_kept() -> None:
    full = reproduce.Args("stolyar")
    assert reproduce.choose_results(full) == RESULTS
    assert reproduce.choose_results(replace(full, quick=True)) == Path("results/reproductions-quick")
    assert reproduce.choose_results(replace(full, out=Path("elsewhere"))) == Path("elsewhere")


def test_outside_a_checkout_results_do_not_go_among_the_sources(tmp_path: Path) -> None:
    assert reproduce.choose_results(reproduce.Args("stolyar"), tmp_path) == Path("results/reproductions")


# Refusals


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seed", "-1"], "seed is -1: it must be a whole number from 0"),
        (["--workers", "0"], "workers is 0: it must be a whole number from 1"),
        (["--page"], "toy.jsonl cannot be read: No such file"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_an_unknown_paper_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        reproduce.main(["stolar"])
    assert refused.value.code == 2
    assert "brightwell-luczak" in capsys.readouterr().err
