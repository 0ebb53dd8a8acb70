"""The README: its tables are those of the code, its Python runs, its commands exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import baselines
from pull_env import load_scenario, scenario_names
from pull_env.reporting.describe import workload_line
from pull_env.scenario.scenario import traced_names

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def policy_table():
    lines = ["| policy | rule for a customer | messages | source |", "|---|---|---|---|"]
    for entry in baselines.POLICIES.values():
        lines.append(f"| `{entry.usage}` | {entry.rule} | {entry.messages} | {entry.reference} |")
    return "\n".join(lines)


def scenario_table():
    lines = [
        "| scenario | pools | routers | load | workload | price of a message, of a block |",
        "|---|---|---|---|---|---|",
    ]
    presets = [load_scenario(name) for name in scenario_names()]
    for s in [*presets, *(load_scenario(name, trace="requests.csv") for name in traced_names())]:
        pools = "; ".join(
            f"{p.size:,} at {p.rate:g}" + ("" if p.buffer is None else f" B {p.buffer}") for p in s.pools
        )
        fixed = isinstance(s.shares, tuple)
        shares = "" if not fixed else " (shares " + ", ".join(f"{share:g}" for share in s.shares) + ")"
        block = "-" if s.never_blocks else f"{s.prices.block:g}"
        lines.append(
            f"| `{s.name}` | {pools} | {s.routers}{shares} | {s.nominal_load:g} | {workload_line(s)} "
            f"| {s.prices.message:g}, {block} |"
        )
    return "\n".join(lines)


def test_tables():
    for table in (policy_table(), scenario_table()):
        assert table in TEXT, f"README.md must hold:\n{table}"


def test_files_named_exist():
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT):
        assert (ROOT / path).is_file(), path


def test_files_of_the_guide_for_contributors_exist():
    guide = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`?((?:pull_env|baselines|agents|tests)/[\w./]+)", guide)
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_files_of_the_map_exist():
    """In a cell, names without a folder are beside the first."""
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+) \|$", TEXT.split("## Where is what")[1], re.MULTILINE)
    assert len(rows) > 10
    for cell in rows:
        folder = ROOT
        for name in re.findall(r"`([\w./]+/|[\w./]+\.py)`", cell):
            path = ROOT / name if "/" in name else folder / name
            folder = path.parent
            assert path.exists(), name


def commands():
    """Yield the commands of the shell blocks, but for installation and tests, which CI runs."""
    for block in blocks("bash"):
        for line in block.strip().splitlines():
            for command in line.split("&&"):
                words = shlex.split(command)
                if words[0] == "python" and "pytest" not in words:
                    yield words


def chains():
    """Return the commands that build on one another, in the order of the README, and each of the others."""
    chain = [words for words in commands() if any(word.startswith("runs/") for word in words)]
    return [chain, *([words] for words in commands() if words not in chain)]


@pytest.mark.slow
@pytest.mark.parametrize("chain", chains(), ids=lambda chain: " ".join(chain[0]))
def test_commands_run(chain, tmp_path):
    """Run every command as it stands, from the checkout; results go elsewhere."""
    for words in chain:
        words = [str(tmp_path / word) if word.startswith("runs/") else word for word in words]
        if words[2].startswith("baselines.") or words[3] == "bench":
            words += ["--out", str(tmp_path / f"board-{len(words)}")]
        command = [sys.executable, *words[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"), ids=["train", "simulate"])
def test_python_runs(code, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(code, encoding="utf-8")
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # torch with more is slow where another process runs
    command = [sys.executable, path]
    done = subprocess.run(command, cwd=tmp_path, env=one_thread, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_example_is_twelve_lines():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 12
