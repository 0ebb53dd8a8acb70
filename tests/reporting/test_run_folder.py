"""Run folders: files are replaced as a whole or not at all, and existing folders are refused."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from pull_env.reporting.run_folder import choose_folder, replacing, write_json, write_text


def test_files_are_replaced_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    write_text(first, "old")
    with replacing(first, second) as drafts:
        for draft in drafts:
            draft.write_text("new")
        assert (first.read_text(), second.exists()) == ("old", False)
    assert [path.read_text() for path in (first, second)] == ["new", "new"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_an_error_replaces_nothing_and_leaves_no_draft(tmp_path: Path, stop: type[BaseException]) -> None:
    write_text(tmp_path / "a.txt", "old")

    def fail() -> None:
        with replacing(tmp_path / "a.txt") as (draft,):
            draft.write_text("half")
            raise stop

    with pytest.raises(stop):
        fail()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_json_is_sorted_and_ends_with_a_line(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": [2.5, None]})
    text = (tmp_path / "a.json").read_text()
    assert text == json.dumps({"a": [2.5, None], "b": 1}, indent=2) + "\n"


def test_a_new_run_has_a_new_folder(tmp_path: Path) -> None:
    began = datetime(2026, 1, 2, 3, 4, 5)
    assert choose_folder(None, "ppo", began) == Path("runs/ppo-20260102-030405")
    assert choose_folder(tmp_path / "new", "ppo", began) == tmp_path / "new"
    with pytest.raises(ValueError, match="it exists already"):
        choose_folder(tmp_path, "ppo", began)
