"""The benchmark of the general router: rows, nothing measured twice, and its section of the page."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from agents.general import benchmark
from agents.general.router import GeneralRouter, save, starting_weights
from agents.report.general_page import by_system, general_section
from baselines.tune.race import Plan
from pull_env.reporting.rows import read_rows

SHORT = Plan(trials=6, shortest=2_000, rungs=(1,), finalists=1, chosen_by=2_000, warmup=100, replications=2)


@pytest.fixture
def args(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "agents", "benchmark"])
    save(GeneralRouter(starting_weights(0)), tmp_path / "weights.safetensors")
    return benchmark.Args(
        router=tmp_path / "weights.safetensors",
        systems=2,
        picking=1,
        warmup=5.0,
        time=5.0,
        customers=2_000,
        workers=1,
        out=tmp_path / "rows",
        scope=benchmark.Scope(
            servers=(20, 40),
            plan=SHORT,
            presets=("two-speeds",),
            price_presets=("two-speeds",),
            prices=(0.01, 0.5),
            any_price=("pull-weighted",),
        ),
    )


def test_a_benchmark_measures_everything_once(args, capsys):
    assert benchmark.run(args) == 0
    rows = read_rows(args.out / benchmark.ROWS)
    assert {row["part"] for row in rows} == {"picking", "exam", "preset", "front"}
    systems = by_system(rows, "exam")
    assert len(systems) == 2
    assert all(set(system) == {"tuned", "single", "general", *benchmark.BESIDE} for system in systems)
    assert (args.out / benchmark.PICTURE).stat().st_size > 10_000
    assert benchmark.run(args) == 0
    assert read_rows(args.out / benchmark.ROWS) == rows
    text = general_section(rows)
    assert "## The general router" in text
    assert f"beside `{systems[0]['single']['policy']['name']}`" in text.replace("\n", " ")
    other = args.router.with_name("other.safetensors")
    save(GeneralRouter(starting_weights(1)), other)
    assert benchmark.run(replace(args, router=other)) == 0
    again = read_rows(args.out / benchmark.ROWS)
    assert len(again) == len(rows)
    changed = [row for row in again if row not in rows]
    assert changed
    assert {row["role"] for row in changed} == {"general"}, "only another router is measured anew"


def test_a_missing_router_is_refused_before_anything_is_measured(args):
    with pytest.raises(ValueError, match="cannot be read"):
        benchmark.run(replace(args, router=args.router.with_name("none")))
    assert not args.out.exists()
