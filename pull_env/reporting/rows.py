"""Rows: what was measured, on what, by what and where; one JSON object per line.

Keys are sorted, so that rows can be compared as text; unknown values are null, never NaN.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pull_env
from pull_env.policy.policy import Policy
from pull_env.reporting.run_folder import replacing
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.results import Result

SCHEMA = 1  # goes up whenever a key is renamed or changes its meaning

MEASURES = (
    "wait",
    "response",
    "p_wait",
    "p_block",
    "p_lost",
    "mean_number",
    "busy",
    "messages",
    "stale",
    "missed",
    "wait_quantiles",
    "cost",
)
PACKAGES = ("numpy", "numba", "gymnasium")
PACKAGES_IF_LOADED = {  # distribution by module
    "torch": "torch",
    "stable_baselines3": "stable-baselines3",
    "optuna": "optuna",
}


@dataclass(frozen=True)
class Network:
    """The origin of the network of a learned policy.

    Attributes:
        sha256: Digest of its weights, in hexadecimal.
        training_seed: The seed it was trained with; None: unknown.
    """

    sha256: str
    training_seed: int | None


def row(
    scenario: Scenario,
    policy: Policy,
    result: Result,
    *,
    command: str,
    workers: int | None = None,
    network: Network | None = None,
) -> dict[str, Any]:
    """Return a run with its provenance as plain JSON values.

    Args:
        scenario: The system simulated.
        policy: The policy of its routers.
        result: The measurements.
        command: The command line that ran it.
        workers: As given to `simulate`.
        network: The network of an agent that is not a `Policy`; None: that of the policy, if it has one.
    """
    if network is None and policy.network is not None:
        network = Network(policy.network.digest, policy.network.training_seed)
    measured = result.to_dict()
    simulated = result.customers + result.replications * result.warmup
    return {
        **provenance(command, min(workers or os.cpu_count() or 1, result.replications)),
        "scenario": scenario_content(scenario),
        "policy": {**policy_content(policy), "network": None if network is None else asdict(network)},
        "run": {name: measured[name] for name in ("seed", "warmup", "customers", "replications")},
        "measures": {name: measured[name] for name in MEASURES},
        "stable": result.stable,
        "growth": measured["growth"],
        "speed": {"seconds": result.seconds, "customers_per_second": simulated / result.seconds},
    }


def provenance(command: str, threads: int) -> dict[str, Any]:
    """Return time, package, command, machine and versions of a measurement."""
    return {
        "schema": SCHEMA,
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "package": {"version": pull_env.__version__, **checkout(Path(pull_env.__file__).parents[1])},
        "command": command,
        "machine": {**machine(), "threads": threads},
        "versions": versions(),
    }


def scenario_content(scenario: Scenario) -> dict[str, Any]:
    """Return the part of a row that describes a scenario."""
    return {
        "name": scenario.name,
        "version": scenario.version,
        "content": scenario.to_dict(),
        "sha256": scenario.digest,
    }


def policy_content(policy: Policy) -> dict[str, Any]:
    """Return the part of a row that describes a policy."""
    return {"name": policy.name, "content": policy.to_dict(), "sha256": policy.digest}


def to_line(content: Mapping[str, Any]) -> str:
    """Return `content` as one line of JSON, keys sorted, null for NaN and infinities."""
    return json.dumps(_finite(content), sort_keys=True, allow_nan=False)


def write_rows(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Append `rows` to a file, which is created if necessary.

    Raises:
        OSError: The file cannot be written.
    """
    lines = "".join(to_line(content) + "\n" for content in rows)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a killed run may have left half a line
                lines = "\n" + lines
        file.write(lines.encode())


def replace_rows(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the rows of a file; earlier ones stay until the new ones are complete."""
    with replacing(Path(path)) as (draft,):
        write_rows(draft, rows)


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows in a file, in order; blank lines are skipped.

    Raises:
        ValueError: The file cannot be read, or a line is not a row; the message names file and line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ValueError(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} is not a file of rows in UTF-8: {error}") from None
    return [_parse(line, f"{os.fspath(path)}, line {k}") for k, line in enumerate(lines, 1) if line.strip()]


def _parse(line: str, position: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{position}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{position}: a row is a JSON object, but this is {line[:40]!r}")
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{position}: schema is {content.get('schema')!r}: this version reads {SCHEMA}")
    return content


@cache  # the state of the sources when they were loaded, not later in the run
def checkout(folder: Path) -> dict[str, str | bool | None]:
    """Return the git commit of `folder` and whether it is clean; None: no checkout."""
    unknown: dict[str, str | bool | None] = {"commit": None, "clean": None}
    if not (folder / ".git").exists():  # it may be installed inside a checkout of something else
        return unknown
    try:
        commit = _git(folder, "rev-parse", "HEAD").strip()
        return {"commit": commit, "clean": not _git(folder, "status", "--porcelain").strip()}
    except (OSError, subprocess.SubprocessError):
        return unknown


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=30).stdout


@cache
def machine() -> dict[str, Any]:
    """Return Python's version, operating system, processor model and number of cores."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    """Return the model of the processor; on Linux only the kernel's list names it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of packages that results depend on; heavy ones if loaded."""
    loaded = [package for module, package in PACKAGES_IF_LOADED.items() if module in sys.modules]
    return {package: version(package) for package in (*PACKAGES, *loaded)}


def _finite(value: Any) -> Any:
    """Return a JSON value with None in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
