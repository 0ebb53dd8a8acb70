"""The report: rows are measured once, and the page shows their differences."""

import dataclasses

import pytest

from agents.report import run as report
from agents.report.comparison import Comparison, at_price, difference
from agents.report.page import page
from agents.zoo.registry import load_trained
from pull_env.reporting.rows import read_rows


def test_scores_and_page(own_router, call, tmp_path):
    """Rows are measured once; the page shows the router's differences as the rows have them."""
    words = ["--quick", "--out", str(tmp_path / "scores")]
    assert call("report", *words)[0] == 0
    rows = read_rows(tmp_path / "scores" / "rows.jsonl")
    text = (tmp_path / "scores" / "README.md").read_text(encoding="utf-8")
    assert text == page(rows)
    comparison = Comparison(tuple(row for row in rows if row["part"] == "preset"))
    gap = difference(comparison.learned, comparison.row_of("pull"))
    assert f"| {gap} |" in text
    before = (tmp_path / "scores" / "rows.jsonl").read_bytes()
    assert call("report", *words)[0] == 0
    assert (tmp_path / "scores" / "rows.jsonl").read_bytes() == before
    assert call("report", "--page", *words)[0] == 0
    check_prices(comparison, tmp_path)


def check_prices(comparison, tmp_path):
    """The cost at another price is what a run at that price measures."""
    row = comparison.row_of("balanced(2)")
    trained = load_trained("mine")
    priced = dataclasses.replace(
        trained.scenario, prices=dataclasses.replace(trained.scenario.prices, message=0.5)
    )
    task = report.Task("preset", "", "baseline", trained, priced, report.baselines.make("balanced(2)"))
    args = dataclasses.replace(report.Args(), customers=20_000, replications=4, warmup=500, quick=True)
    samples = report.measure(args, task)["samples"]["cost"]
    assert at_price(row, 0.5)["samples"]["cost"] == pytest.approx(samples, rel=1e-12)
