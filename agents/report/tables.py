"""How trained routers and their scores were made, as parts of the page: commands, seeds, machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents.report.comparison import Contest, Row

SEARCH = "search"


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def run_line(rows: Sequence[Row]) -> str:
    """Return how long the runs were, in a sentence."""
    runs = [found["run"] for found in rows]
    warmups, replications = ({run[name] for run in runs} for name in ("warmup", "replications"))
    seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in runs}))
    return (
        f"{between({run['customers'] for run in runs})} customers a policy and system, over "
        f"{between(replications)} replications, each after a warm-up of {between(warmups)} (seed {seeds})"
    )


def between(numbers: set[int]) -> str:
    """Return numbers as `least to largest`, or the one there is."""
    return " to ".join(f"{number:,}" for number in sorted({min(numbers), max(numbers)}))


def training_table(found: dict[str, Contest]) -> str:
    """Return the cost of training, and the commands."""
    body, commands = [], []
    for name, contest in found.items():
        told = contest.learned["training"]
        how, best = effort(told)
        body.append(
            [
                f"`{name}`",
                told.get("way", SEARCH),
                how,
                best,
                shape(contest.learned["policy"]["content"]),
                str(told["seed"]),
                f"{told['seconds']:.0f} s ({told['cpu_seconds']:.0f} s)",
                ", ".join(f"{package} {version}" for package, version in sorted(told["versions"].items())),
            ]
        )
        commands.append(told["command"])
    head = ["router", "way", "learned from", "best at", "layers", "seed", "wall time (processor)", "versions"]
    return table(head, body) + "\n```bash\n" + "\n".join(commands) + "\n```\n"


def shape(policy: dict[str, Any]) -> str:
    """Return in words what a router's policy is: the layers of its network, or a table."""
    network = policy.get("network")
    if network is None:
        return f"table of {len(policy['steps'][0]['servers'])}"
    return " x ".join(map(str, network["sizes"])) + (", sampled" if network["sampled"] else "")


def effort(told: dict[str, Any]) -> tuple[str, str]:
    """Return in words what a router was trained with, and when it was at its best."""
    if told.get("way", SEARCH) == SEARCH:
        candidates = f"{told['generations']} generations ({told['candidates']:,} candidates)"
        return candidates, f"generation {told['best_generation']}"
    return f"{told['customers']:,} customers", f"{told['best_customers']:,} ({told['best_weights']})"


def provenance(rows: Sequence[Row]) -> str:
    """Return where, with what and by which commands the rows were measured."""
    lines = list(dict.fromkeys(_made(found) for found in rows))
    commands = list(dict.fromkeys(found["command"] for found in rows))
    return "\n".join(["Scores were measured", *lines, "", "```bash", *commands, "```", ""])


def _made(found: Row) -> str:
    machine, versions = found["machine"], found["versions"]
    using = ", ".join(f"{package} {versions[package]}" for package in ("numpy", "numba"))
    return (
        f"- on {machine['cores']} cores of {machine['processor']}, {machine['system']}, Python "
        f"{machine['python']}, {using}, pull-env {found['package']['version']}"
    )
