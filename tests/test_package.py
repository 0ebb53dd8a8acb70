"""The package as it is shipped: what imports what, how fast it starts, and that the wheel works elsewhere."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import baselines
import pull_env

ROOT = Path(__file__).parents[1]
SIMULATE = (
    "import pull_env, baselines; r = pull_env.simulate('two-speeds', baselines.make('balanced(2)'), 100_000); "
    "assert r.stable and 1.0 < r.wait.mean < 2.2, r"
)


def run(code, cwd, **variables):
    """Run Python code in a new process; return the seconds until it was done, the start included."""
    command, environment = (
        [sys.executable, "-c", f"{code}\nprint('done', flush=True)"],
        {**os.environ, **variables},
    )
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "done\n"
        seconds = time.perf_counter() - started
    assert process.returncode == 0
    return seconds


IMPORTS = (
    "import numpy, gymnasium, numba, scipy.linalg, scipy.special"  # what a first simulation cannot do without
)
IMPORTS_AT_REST = 0.7  # seconds that they take on an idle machine of the kind that the bounds are stated for


@pytest.fixture(scope="module")
def slowness(tmp_path_factory):
    """How much slower than at rest this machine is now, at least 1: it may be another, or busy."""
    folder = tmp_path_factory.mktemp("imports")
    return max(1.0, min(run(IMPORTS, folder) for _ in range(3)) / IMPORTS_AT_REST)


def test_importing_is_fast_and_light(tmp_path, slowness):
    heavy = ["numba", "scipy", "matplotlib", "torch", "rich", "tyro"]
    code = (
        f"import pull_env, sys; assert not set({heavy}) & set(sys.modules), set({heavy}) & set(sys.modules)"
    )
    assert min(run(code, tmp_path) - run("pass", tmp_path) for _ in range(5)) < 0.5 * slowness


def test_a_first_simulation_compiles_within_12_s_and_later_ones_start_within_1_2_s(tmp_path, slowness):
    """Start of the process included; what only the compiler needs is not loaded again."""
    cache = {"PULL_ENV_CACHE_DIR": str(tmp_path / "kernels")}
    assert run(SIMULATE, tmp_path, **cache) < 12 * slowness
    short = SIMULATE.replace("100_000", "100_000, warmup=20_000")
    assert min(run(short, tmp_path, **cache) for _ in range(6)) < 1.2 * slowness
    compiler = "{'numba.np.arraymath', 'numba.typed.typeddict', 'numba.cpython.unicode', 'scipy.linalg'}"
    run(f"{short}; import sys; assert not {compiler} & set(sys.modules), sys.modules", tmp_path, **cache)


@pytest.mark.slow
def test_a_million_servers_fit_in_two_gibibytes(tmp_path):
    code = """
import resource, pull_env, baselines
from pull_env import Pool, Scenario
scenario = Scenario((Pool(500_000, 1.25), Pool(500_000, 0.75)), routers=10, load=0.8)
for name in ("pull", "jiq", "balanced(2)", "jsq"):
    result = pull_env.simulate(scenario, baselines.make(name), 2_000_000, warmup=1_000_000, replications=2)
    assert result.customers == 2_000_000
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
assert peak < 2, f"{peak} GiB"
"""
    run(code, tmp_path)


def test_versions_agree():
    declared = pull_env.__version__
    assert f'\nversion = "{declared}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## {declared} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {declared}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_top_level_holds_nothing_else():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    allowed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "pull_env",
        "baselines",
        "agents",
        "tests",
    }
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= allowed


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_environment(tmp_path):
    """Build the wheel, install it with its dependencies into a new environment, simulate from another folder."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"pull_env", "baselines"}
    assert "pull_env/scenario/presets/two-speeds.toml" in names
    assert "baselines/policies/tuned_presets/two-speeds.toml" in names
    assert "pull_env/py.typed" in names
    assert not [name for name in names if name.startswith("pull_env/bench")]
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], check=True
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [python, "-m", "pull_env", "simulate", "small-mixed", "pull", "--customers", "200000", "--json"]
    found = subprocess.run(command, cwd=elsewhere, env=clean, check=True, capture_output=True, text=True)
    content = json.loads(found.stdout)["result"]
    here = pull_env.simulate("small-mixed", baselines.make("pull"), 200_000).to_dict()
    assert {**content, "seconds": 0} == {**json.loads(json.dumps(here)), "seconds": 0}
    refused = subprocess.run(
        [python, "-m", "pull_env", "bench"], cwd=elsewhere, env=clean, capture_output=True, text=True
    )
    sentence = "error: bench runs from a checkout of the repository: the installed package has no benchmark\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", sentence)
    code = "import gymnasium as g; e = g.make('pull_env:pull_env/Router-v0'); e.reset(seed=0); print(e.step(0)[1])"
    subprocess.run([python, "-c", code], cwd=elsewhere, env=clean, check=True, capture_output=True)
