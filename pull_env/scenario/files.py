"""Files of scenarios: presets, reading of TOML, and paths in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pull_env.scenario.validation import ScenarioError, check_scenario, one_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = Path(__file__).with_name("presets")
TRACED = PRESETS / "traced"  # presets that replay a trace, which the user provides


def scenario_names() -> tuple[str, ...]:
    """Return the names of the presets that need no trace, in alphabetical order."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.toml")))


def traced_names() -> tuple[str, ...]:
    """Return the names of the presets that replay a trace, in alphabetical order."""
    return tuple(sorted(path.stem for path in TRACED.glob("*.toml")))


def scenario_path(name_or_path: str) -> Path:
    """Return the path of a preset's file, or of any other TOML file.

    Raises:
        ScenarioError: There is no such preset, and it does not look like a path.
    """
    for folder, names in ((PRESETS, scenario_names()), (TRACED, traced_names())):
        if name_or_path in names:
            return folder / f"{name_or_path}.toml"
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1 or path.is_file():
        return path
    known = one_of(name_or_path, scenario_names() + traced_names())
    raise ScenarioError(f"{name_or_path!r} is not a known scenario: {known}, or a path to a TOML file")


def read_toml(path: Path, error: type[ValueError], kind: str = "") -> dict[str, Any]:
    """Return what a TOML file holds.

    Args:
        path: The file.
        error: The class of the error if it cannot be read.
        kind: What the file is, for that error.

    Raises:
        ValueError: The file cannot be read, or is not TOML.
    """
    name = f"{kind} {str(path)!r}" if kind else str(path)
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as cause:
        raise error(f"{name} cannot be read: {cause.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise error(f"{name} is not valid TOML: {cause}") from None


def read_scenario(path: Path, trace: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Return the table in the TOML file of a scenario.

    Its name is that of the file if it has none. Relative paths in it start at the folder of the file;
    `trace`, if given, replaces the recorded customers and starts at the current folder.

    Raises:
        ScenarioError: The file cannot be read, is not TOML, or replays no trace although one is given.
    """
    table: dict[str, Any] = {"name": path.stem, **read_toml(path, ScenarioError)}
    arrivals, service = table.get("arrivals"), table.get("service")
    if trace is not None:
        if not isinstance(arrivals, Mapping) or "kind" in arrivals:
            refusal = check_scenario.refusal("trace", os.fspath(trace), "left out: the scenario replays none")
            raise ScenarioError(f"{path}: {refusal}")
        table["arrivals"] = {**arrivals, "trace": os.path.abspath(trace)}
    else:
        _resolve(arrivals, "trace", path.parent)
    _resolve(arrivals.get("gaps") if isinstance(arrivals, Mapping) else None, "file", path.parent)
    _resolve(service, "file", path.parent)
    return table


def _resolve(table: Any, key: str, folder: Path) -> None:
    """Make the path at `key` absolute, if there is one; it is checked later."""
    if isinstance(table, dict) and isinstance(table.get(key), str) and table[key]:
        table[key] = str((folder / table[key]).resolve())
