"""Private names of numba are in one file, and if one is missing the plain path is chosen."""

import ast
import pkgutil
import sys
from pathlib import Path

import pytest

from pull_env.kernels.compiler import jit, numba_internals

FOLDER = Path(numba_internals.__file__).parent
PUBLIC = {"numba", "numba.types", "numba.extending.intrinsic", "llvmlite.ir"}
OURS = {"entry_point"}  # a function of `numba_internals`, named like what it returns
ON_OBJECTS = {  # attributes that the constructor sets
    "_cache": "numba.core.dispatcher:Dispatcher",
    "overloads": "numba.core.dispatcher:Dispatcher",
    "targetctx": "numba.core.dispatcher:Dispatcher",
    "_linking_libraries": "numba.core.codegen:CPUCodeLibrary",
}
LAST = {name.rpartition(":")[2].rpartition(".")[2] for name in numba_internals.NAMES} | ON_OBJECTS.keys()


def nodes(file):
    """Return the syntax tree of a file of the compiler's folder, node by node."""
    return list(ast.walk(ast.parse((FOLDER / file).read_text(encoding="utf-8"))))


def names_from(node):
    """Return the dotted names that a `from` statement imports."""
    return {f"{node.module}.{name.name}" for name in node.names}


def chooses_the_plain_path(monkeypatch):
    """Return whether an import of the internals fails, with a warning of one line."""
    monkeypatch.delitem(sys.modules, numba_internals.__name__)
    with pytest.warns(UserWarning, match=r"^numba [\d.]+ has changed inside .* slower, same results$"):
        return jit.load_internals() is None


def test_the_internals_are_chosen(monkeypatch):
    monkeypatch.delenv(jit.PLAIN_VARIABLE, raising=False)
    assert jit.load_internals() is numba_internals


@pytest.mark.parametrize("name", numba_internals.NAMES)
def test_without_a_name_the_plain_path_is_chosen(name, monkeypatch):
    monkeypatch.delenv(jit.PLAIN_VARIABLE, raising=False)
    module, _, path = name.partition(":")
    owner_path, _, attribute = path.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{owner_path}")
    if isinstance(owner, type):  # it may be inherited
        owner = next(base for base in owner.__mro__ if attribute in vars(base))
    monkeypatch.delattr(owner, attribute)
    assert chooses_the_plain_path(monkeypatch)


@pytest.mark.parametrize(("attribute", "name"), ON_OBJECTS.items())
def test_without_an_attribute_of_an_object_the_plain_path_is_chosen(attribute, name, monkeypatch):
    monkeypatch.delenv(jit.PLAIN_VARIABLE, raising=False)
    owner = pkgutil.resolve_name(name)
    construct = owner.__init__

    def construct_without(self, *arguments, **keywords):
        construct(self, *arguments, **keywords)
        delattr(self, attribute)

    monkeypatch.setattr(owner, "__init__", construct_without)
    assert chooses_the_plain_path(monkeypatch)


def test_a_variable_forces_the_plain_path(monkeypatch):
    monkeypatch.setenv(jit.PLAIN_VARIABLE, "1")
    assert jit.load_internals() is None


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.py")))
def test_other_files_use_public_names_of_numba(file):
    tree = nodes(file)
    imported = {name for node in tree if isinstance(node, ast.ImportFrom) for name in names_from(node)}
    imported |= {name.name for node in tree if isinstance(node, ast.Import) for name in node.names}
    imported = {name for name in imported if name.partition(".")[0] in ("numba", "llvmlite")}
    if file == "numba_internals.py":
        assert imported <= PUBLIC | {name.replace(":", ".") for name in numba_internals.NAMES}
        return
    assert imported <= PUBLIC
    attributes = {node.attr for node in tree if isinstance(node, ast.Attribute)}
    assert not {name for name in attributes if name.startswith("_") and not name.endswith("__")}
    options = {node.value for node in tree if isinstance(node, ast.Constant)}
    keywords = {node.arg for node in tree if isinstance(node, ast.keyword)}
    assert LAST.isdisjoint((attributes - OURS) | options | keywords)


def test_every_private_name_is_listed_and_used():
    tree = nodes("numba_internals.py")
    attributes = {node.attr for node in tree if isinstance(node, ast.Attribute)}
    assert {name for name in attributes if name.startswith("_")} <= LAST | {"__init__", "_replace"}
    imported = {name.name for node in tree if isinstance(node, ast.ImportFrom) for name in node.names}
    options = {node.value for node in tree if isinstance(node, ast.Constant)}
    methods = {node.name for node in tree if isinstance(node, ast.FunctionDef)}
    assert attributes | imported | options | methods >= LAST
