"""The committed page is what the committed rows give."""

from agents.report import run as report
from agents.report.page import page
from pull_env.reporting.rows import read_rows


def test_the_page_is_what_the_rows_give():
    rows, text = report.HERE / "results" / report.ROWS, report.HERE / report.PAGE
    general = report.HERE / "results" / report.GENERAL_ROWS
    assert text.read_text(encoding="utf-8") == page(read_rows(rows), read_rows(general))
