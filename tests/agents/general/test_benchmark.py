"""The exam of the general router: rows, nothing measured twice, and the page's part."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from agents.general import benchmark as exam
from agents.general.router import General, save, starting_weights
from agents.report.general_page import by_system, general_section, share_above, total_above
from baselines.tune.race import Plan
from pull_env.reporting.rows import read_rows

SHORT = Plan(trials=6, shortest=2_000, rungs=(1,), finalists=1, chosen_by=2_000, warmup=100, replications=2)


@pytest.fixture
def args(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agents.general.random_systems.SERVERS", (20, 40))
    monkeypatch.setattr(exam, "plan_of", lambda args, scenario: SHORT)
    monkeypatch.setattr(exam, "FRONTS", ("two-speeds",))
    monkeypatch.setattr(exam, "PRICES", (0.01, 0.5))
    monkeypatch.setattr(exam, "BLIND", ("pull-weighted",))
    monkeypatch.setattr(exam, "scenario_names", lambda: ("two-speeds",))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "agents", "benchmark"])
    save(General(starting_weights(0)), tmp_path / "weights.safetensors")
    return exam.Args(
        router=tmp_path / "weights.safetensors",
        systems=2,
        picking=1,
        warmup=5.0,
        time=5.0,
        customers=2_000,
        workers=1,
        out=tmp_path / "rows",
    )


def test_an_exam_measures_everything_once(args, capsys):
    assert exam.run(args) == 0
    rows = read_rows(args.out / exam.ROWS)
    assert {row["part"] for row in rows} == {"picking", "exam", "preset", "front"}
    systems = by_system(rows, "exam")
    assert len(systems) == 2
    assert all(set(system) == {"tuned", "single", "general", *exam.BESIDE} for system in systems)
    assert (args.out / exam.PICTURE).stat().st_size > 10_000
    assert exam.run(args) == 0
    assert read_rows(args.out / exam.ROWS) == rows
    text = general_section(rows)
    assert "## The general router" in text
    assert f"beside `{systems[0]['single']['policy']['name']}`" in text.replace("\n", " ")
    other = args.router.with_name("other.safetensors")
    save(General(starting_weights(1)), other)
    assert exam.run(replace(args, router=other)) == 0
    again = read_rows(args.out / exam.ROWS)
    assert len(again) == len(rows)
    changed = [row for row in again if row not in rows]
    assert changed
    assert {row["role"] for row in changed} == {"general"}, "only another router is measured anew"


def test_a_missing_router_is_refused_before_anything_is_measured(args):
    with pytest.raises(ValueError, match="cannot be read"):
        exam.run(replace(args, router=args.router.with_name("none")))
    assert not args.out.exists()


def test_differences_are_those_of_the_costs():
    """Two systems, twice and half as dear as the rival: +25 % on average, and +10 % in all."""

    def row(role, costs):
        return {"role": role, "samples": {"cost": costs}, "stable": True}

    exam_rows = [
        {"general": row("general", [2.0, 2.0]), "tuned": row("tuned", [1.0, 1.0])},
        {"general": row("general", [0.5, 0.5]), "tuned": row("tuned", [1.0, 1.0])},
    ]
    assert share_above(exam_rows, "tuned").mean == pytest.approx(25.0)
    assert total_above(exam_rows, "tuned").mean == pytest.approx(25.0)
    exam_rows[0]["general"]["samples"]["cost"] = [1.6, 1.8]
    total = total_above(exam_rows, "tuned")
    assert total.mean == pytest.approx(10.0)
    assert np.allclose(total.samples, [5.0, 15.0])
    exam_rows[1]["tuned"]["stable"] = False
    assert share_above(exam_rows, "tuned").mean == pytest.approx(70.0)


def test_without_rows_there_is_no_section():
    assert general_section(()) == ""
