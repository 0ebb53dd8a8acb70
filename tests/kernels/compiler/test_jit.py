"""Compiling with numba's internals or by its public names gives the same results; the cache is never stale."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pull_env.kernels.compiler import jit
from pull_env.kernels.compiler.jit import CACHE_DIRECTORY, CACHE_VARIABLE, PLAIN_VARIABLE, source_digest

ROOT = Path(__file__).parents[3]
PARTS = """from __future__ import annotations
from pull_env.kernels.compiler import jit

@jit.kernel
def double(x: int) -> int:
    return 2 * x

@jit.entry
def total(a: int, b: int, c: int, d: int) -> float:
    return double(a) + b + c + d / 2

@jit.entry
def call(at: int, a: int) -> float:
    return jit.call_entry(at, a, 1, 2, 3)
"""
CALLS = """
import parts
from pull_env.kernels.compiler import jit
print(jit.INTERNALS is None, parts.call(jit.address(parts.total), 5), jit.direct(parts.total)(5, 1, 2, 3))
"""
MEAN = 'from pull_env import simulate; print(simulate("small-mixed", "pull", 2000, seed=1).wait.mean)'
RUNS = """
import hashlib, json
import gymnasium as gym
import numpy as np
from pull_env import load_scenario, simulate
from pull_env.kernels.compiler import jit
from oracles.networks import follow
import baselines

def values(result):
    return {key: value for key, value in result.to_dict().items() if key != "seconds"}

found = {"plain": jit.INTERNALS is None}
for name in ("small-mixed", "failures", "slow-news"):
    scenario = load_scenario(name)
    policies = [baselines.make(policy) for policy in ("pull", "lsq(2,16)", "balanced(2)", "sed")]
    for policy in (*policies, follow(scenario, 16)):
        found[f"{name} {policy.name}"] = values(simulate(scenario, policy, 20_000, seed=3, replications=2))
env = gym.make("pull_env/Router-v0", scenario="failures", customers=300)
observation, info = env.reset(seed=7)
seen, choices, truncated = hashlib.sha256(observation), np.random.default_rng(1), False
while not truncated:
    observation, reward, _, truncated, info = env.step(int(choices.integers(env.action_space.n)))
    seen.update(observation.tobytes() + info["action_mask"].tobytes() + repr(reward).encode())
print(json.dumps(found | {"env": seen.hexdigest()}))
"""


def run(code, folder=ROOT, **variables):
    """Return what `code` prints in a new process that imports from `folder` first."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT, ROOT / "tests"))),
        **variables,
    }
    command = [sys.executable, "-W", "error:numba", "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("plain", ["0", "1"])
def test_kernels_and_entries_without_a_simulator(plain, tmp_path):
    (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
    variables = {CACHE_VARIABLE: str(tmp_path / "cache"), PLAIN_VARIABLE: plain}
    for _ in range(2):  # compiled, and from the cache
        assert run(CALLS, tmp_path, **variables) == f"{plain == '1'} 14.5 14.5\n"


@pytest.mark.slow
def test_both_ways_of_compiling_give_the_same_bits():
    quick, plain = (json.loads(run(RUNS, **{PLAIN_VARIABLE: value})) for value in "01")
    assert plain.pop("plain")
    assert not quick.pop("plain")
    assert len(quick) == 16
    assert quick == plain


@pytest.mark.slow
def test_numba_that_lacks_a_name_still_simulates():
    code = f"""
import warnings
from numba.core.cpu import CPUTargetOptions
for base in CPUTargetOptions.__mro__:
    if "forceinline" in vars(base):
        del base.forceinline
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {MEAN}
print(*(warning.message for warning in caught))
"""
    mean, warning = run(code).splitlines()
    assert mean == run(MEAN).strip()
    assert "has changed inside" in warning


def copy_files(source, target, suffixes):
    """Copy the files below `source` that end so."""
    for path in source.rglob("*"):
        if path.suffix in suffixes:
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())


def test_an_edit_of_a_kernel_moves_the_cache(tmp_path, monkeypatch):
    """Numba stamps a kernel with its own file only, so an edit elsewhere must lead to another cache."""
    copy_files(ROOT / "pull_env/kernels", tmp_path, (".py",))
    assert source_digest(tmp_path) == CACHE_DIRECTORY.name
    with monkeypatch.context() as other_way:
        other_way.setattr(jit, "INTERNALS", None if jit.INTERNALS else jit)
        assert source_digest(tmp_path) != CACHE_DIRECTORY.name
    (tmp_path / "random.py").write_bytes((tmp_path / "random.py").read_bytes() + b"\n")
    assert source_digest(tmp_path) != CACHE_DIRECTORY.name


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    assert run(MEAN, **{CACHE_VARIABLE: str(blocked)}) == run(MEAN)


@pytest.mark.slow
def test_an_edited_copy_does_not_serve_stale_machine_code(tmp_path):
    """Run a copy of the package, double the messages of a probe in one kernel file, and run it again."""
    copy_files(ROOT / "pull_env", tmp_path / "pull_env", (".py", ".toml"))
    code = (
        "from pull_env import Policy, Probe, simulate; "
        "r = simulate('small-mixed', Policy('p', (Probe(at_most=2),)), 1000); print(r.messages['probe'].mean)"
    )
    cache = {CACHE_VARIABLE: str(tmp_path / "cache")}
    assert float(run(code, tmp_path, **cache)) == 4.0
    steps = tmp_path / "pull_env/kernels/routing/steps.py"
    text = steps.read_text(encoding="utf-8")
    assert text.count(".probes += 2\n") == 1
    steps.write_text(text.replace(".probes += 2\n", ".probes += 3\n"), encoding="utf-8")
    assert float(run(code, tmp_path, **cache)) == 6.0
