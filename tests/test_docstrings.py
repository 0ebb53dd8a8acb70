"""First lines of docstrings: one line each, of at most 80 characters."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for folder in ("pull_env", "baselines", "agents") for path in (ROOT / folder).rglob("*.py")
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_first_lines_are_short(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        lines = (ast.get_docstring(node) or "").splitlines() if isinstance(node, DOCUMENTED) else []
        assert not lines or len(lines[0]) <= 80, f"{path}: {lines[0]}"
        assert len(lines) < 2 or not lines[1], f"{path}: {lines[0]} goes on without a blank line"
