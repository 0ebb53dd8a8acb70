"""Parts of the page: texts, Markdown tables, commands, seeds and machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agents.general.figure import Row
from agents.report.comparison import Comparison

SEARCH = "search"
_PARTS = re.split(r"<!-- (\w+) -->\n", Path(__file__).with_name("texts.md").read_text(encoding="utf-8"))
TEXTS = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))  # by name


def text(name: str, **values: object) -> str:
    """Return a text of texts.md with its values filled in."""
    return TEXTS[name].format(**values)


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def run_line(rows: Sequence[Row]) -> str:
    """Return the lengths of runs as a sentence."""
    runs = [row["run"] for row in rows]
    customers, warmups, replications = (
        number_range({run[name] for run in runs}) for name in ("customers", "warmup", "replications")
    )
    seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in runs}))
    return (
        f"{customers} customers per policy and system, over {replications} replications, each after a "
        f"warm-up of {warmups} (seed {seeds})"
    )


def number_range(numbers: set[int]) -> str:
    """Return numbers as `least to largest`, or the only one."""
    return " to ".join(f"{number:,}" for number in sorted({min(numbers), max(numbers)}))


def training_table(comparisons: dict[str, Comparison]) -> str:
    """Return how each router was trained, and the commands."""
    body, commands = [], []
    for name, comparison in comparisons.items():
        training = comparison.learned["training"]
        effort, best = effort_cells(training)
        versions = sorted(training["versions"].items())
        body.append(
            [
                f"`{name}`",
                training.get("way", SEARCH),
                effort,
                best,
                layers_cell(comparison.learned["policy"]["content"]),
                str(training["seed"]),
                f"{training['seconds']:.0f} s ({training['cpu_seconds']:.0f} s)",
                ", ".join(f"{package} {version}" for package, version in versions),
            ]
        )
        commands.append(training["command"])
    head = ["router", "method", "effort", "best at", "layers", "seed", "wall time (processor)", "versions"]
    return table(head, body) + "\n```bash\n" + "\n".join(commands) + "\n```\n"


def layers_cell(policy: dict[str, Any]) -> str:
    """Return the layers of a policy's network, or the size of its table."""
    network = policy.get("network")
    if network is None:
        return f"table of {len(policy['steps'][0]['servers'])}"
    return " x ".join(map(str, network["sizes"])) + (", sampled" if network["sampled"] else "")


def effort_cells(training: dict[str, Any]) -> tuple[str, str]:
    """Return what a router was trained with, and when it was best."""
    if training.get("way", SEARCH) == SEARCH:
        candidates = f"{training['generations']} generations ({training['candidates']:,} candidates)"
        return candidates, f"generation {training['best_generation']}"
    customers, best = training["customers"], training["best_customers"]
    return f"{customers:,} customers", f"{best:,} ({training['best_weights']})"


def provenance(rows: Sequence[Row]) -> str:
    """Return where, with what and by which commands the rows were measured."""
    lines = list(dict.fromkeys(_machine_line(row) for row in rows))
    commands = list(dict.fromkeys(row["command"] for row in rows))
    return "\n".join(["Scores were measured", *lines, "", "```bash", *commands, "```", ""])


def _machine_line(row: Row) -> str:
    machine, versions = row["machine"], row["versions"]
    packages = ", ".join(f"{package} {versions[package]}" for package in ("numpy", "numba"))
    return (
        f"- on {machine['cores']} cores of {machine['processor']}, {machine['system']}, Python "
        f"{machine['python']}, {packages}, pull-env {row['package']['version']}"
    )
