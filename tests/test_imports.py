"""Which folder may import which: those on the left of `ORDER`, wherever in a file the import is written."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = (
    "pull_env.scenario",
    "pull_env.policy",
    "pull_env.kernels",
    "pull_env.simulation",
    "pull_env.theory",
    "pull_env.rendering",
    "pull_env.envs",
    "pull_env",  # the names that users import
    "pull_env.sb3",
    "pull_env.reporting",
    "pull_env.bench",
    "pull_env.__main__",
    "baselines.policies",
    "baselines",
    "baselines.leaderboard",
    "baselines.tune",
    "baselines.reproduce",
    "agents",
    "agents.training",
    "agents.search",
    "agents.general",
    "agents.zoo",
    "agents.report",
    "agents.__main__",
)
FILES = sorted(
    path for folder in ("pull_env", "baselines", "agents") for path in (ROOT / folder).rglob("*.py")
)


def module_of(path):
    """Return the dotted name of a file's module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path) for path in FILES}


def imported(path):
    """Yield every module that a file imports: at the top, within functions, and for type checking."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in MODULES else node.module


def place(module):
    """Return where the folder of a module is in the order."""
    return max((folder for folder in ORDER if module == folder or module.startswith(f"{folder}.")), key=len)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_point_one_way(path):
    mine = place(module_of(path))
    for module in imported(path):
        if module.partition(".")[0] in ("pull_env", "baselines", "agents"):
            theirs = place(module)
            assert ORDER.index(theirs) <= ORDER.index(mine), f"{module_of(path)} imports {module}"


def test_one_lookup_goes_against_the_direction():
    """A policy given by name is looked up in the package that stands on this one, in one place."""
    lazy = [path for path in FILES if 'import_module("baselines")' in path.read_text(encoding="utf-8")]
    assert [module_of(path) for path in lazy] == ["pull_env.policy.lookup"]


def test_folders_hold_about_ten_modules():
    folders = {path.parent for path in FILES if path.is_relative_to(ROOT / "pull_env")} - {ROOT / "pull_env"}
    sizes = {module_of(folder): len([*folder.glob("[!_]*.py")]) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > 12} == {}


def test_kernels_import_numpy_and_numba_only():
    allowed = {"numpy", "numba", "llvmlite", "pull_env", *sys.stdlib_module_names}
    for path in FILES:
        if path.is_relative_to(ROOT / "pull_env/kernels"):
            assert {module.partition(".")[0] for module in imported(path)} <= allowed, path


def test_one_folder_knows_the_compiler():
    for path in FILES:
        if not path.is_relative_to(ROOT / "pull_env/kernels/compiler"):
            assert {module.partition(".")[0] for module in imported(path)}.isdisjoint(
                {"numba", "llvmlite"}
            ), path


def test_heavy_libraries_are_imported_in_their_adapters_only():
    homes = {"torch": (), "stable_baselines3": ("stable_baselines3.py",), "pettingzoo": ("pettingzoo.py",)}
    for path in FILES:
        if not path.is_relative_to(ROOT / "agents"):
            for module in imported(path):
                home = homes.get(module.partition(".")[0])
                assert home is None or path.name in home, f"{path} imports {module}"
