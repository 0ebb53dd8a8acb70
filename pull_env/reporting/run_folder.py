"""The folder of a run: its place, the names of its files, and atomic writes.

| file | content |
|---|---|
| `policy.toml` | the policy found or learned; weights of a network beside it, in `policy.safetensors` |
| `config.json` | arguments, command, time, versions, duration |
| `training.json` | the same, of a router kept in `agents/zoo/trained/` |
| `start.toml` | the policy that the search or the training began with |
| `curve.jsonl` | a row per evaluation |
| `rows.jsonl` | a row per measurement, see `rows` |
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICY, CONFIGURATION, TRAINING = "policy.toml", "config.json", "training.json"
START, CURVE, ROWS = "start.toml", "curve.jsonl", "rows.jsonl"


def choose_folder(out: Path | None, name: str, began: datetime) -> Path:
    """Return the folder of a new run: `out`, or one in `runs/` by name and time.

    Raises:
        ValueError: It already exists.
    """
    folder = out or Path("runs") / f"{name}-{began.strftime('%Y%m%d-%H%M%S')}"
    if folder.exists():
        raise ValueError(f"out is '{folder}': it exists already, and results are never overwritten")
    return folder


@contextmanager
def replacing(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Yield a draft path beside each of `paths`; at the end the drafts replace them.

    After an error or an interruption earlier files are unchanged, and no draft is left.
    """
    drafts = tuple(path.with_name(f".{path.stem}.unfinished{path.suffix}") for path in paths)
    try:
        yield drafts
        for draft, path in zip(drafts, paths, strict=True):
            os.replace(draft, path)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file; an earlier one stays until the new one is complete."""
    with replacing(path) as (draft,):
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with sorted keys, as `write_text` does."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Save a figure as PNG and SVG; equal figures give equal files."""
    from matplotlib import rc_context  # takes half a second

    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    figure.savefig(png)
    with rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):  # outlines take ten times the space
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def plain_arguments(arguments: Any) -> dict[str, Any]:
    """Return the fields of a dataclass of arguments as plain JSON values."""
    return {key: str(value) if isinstance(value, Path) else value for key, value in asdict(arguments).items()}
