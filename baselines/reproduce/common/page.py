"""The page of a reproduction: claim, measurements, verdict, from rows alone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from baselines.reproduce.common.study import Row, Section, Study

VERDICTS = {True: "reproduced", False: "not reproduced", None: "undecided"}
WIDTH = 115


def page(study: Study, rows: Sequence[Row]) -> str:
    """Return the page of a study in Markdown; the same rows give the same text."""
    sections = study.sections(rows)
    summary = [(section.heading, VERDICTS[section.reproduced]) for section in sections]
    parts = [
        f"# {study.title}",
        _paragraph(study.source),
        _paragraph(study.about),
        f"![{study.title}]({study.name}.png)",
        _table(("claim", "in these rows"), summary),
        "± marks 95 % intervals. Every verdict is computed from the rows, by the criterion it states.",
        *(_section(section) for section in sections),
        f"## How it was made\n\n{_paragraph(provenance_text(study, rows))}",
    ]
    return "\n\n".join(parts) + "\n"


def provenance_text(study: Study, rows: Sequence[Row]) -> str:
    """Return command, time, versions and machine of the rows."""

    def distinct(values: Sequence[object]) -> str:
        return " and ".join(dict.fromkeys(map(str, values)))

    commits = [
        f"{str(row['package']['commit'] or 'of no checkout')[:12]}"
        + {True: "", False: " with changes", None: ""}[row["package"]["clean"]]
        for row in rows
    ]
    versions = [", ".join(f"{k} {v}" for k, v in sorted(row["versions"].items())) for row in rows]
    machine = rows[0]["machine"]
    seconds = sum(row["speed"]["seconds"] for row in rows)
    return (
        f"By `{distinct([row['command'] for row in rows])}`, {rows[0]['time'][:10]}, in {seconds:,.0f} s "
        f"of simulation; seed {distinct([row['run']['seed'] for row in rows])}; pull_env "
        f"{distinct([row['package']['version'] for row in rows])}, commit {distinct(commits)}; "
        f"Python {machine['python']}, {distinct(versions)}; {machine['processor']}, "
        f"{machine['cores']} cores. The rows are in [{study.name}.jsonl]({study.name}.jsonl); "
        f"page and figure are made from them by `python -m baselines.reproduce {study.name} --page`."
    )


def _section(section: Section) -> str:
    return "\n\n".join(
        (
            f"## {section.heading}",
            _paragraph(f"**Claim.** {section.claim}"),
            _paragraph(f"**Setting.** {section.setting}"),
            _table(section.header, section.table),
            _paragraph(f"**{VERDICTS[section.reproduced].capitalize()}.** {section.verdict}"),
        )
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _table(header: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *table]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
