"""The decorators that compile kernels, and the cache of what they compiled.

A `kernel` is compiled into the entries that call it; Python calls an `entry`. Numba validates a cached entry
by its own file only, so an edit of another kernel file would serve stale machine code. The cache is therefore
in a folder named by a digest of all kernel sources, the versions of numba and numpy, and the way of
compiling: with `numba_internals`, or by numba's public names only. Both ways give the same results.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from pull_env.kernels.compiler import intrinsics

CACHE_VARIABLE = "PULL_ENV_CACHE_DIR"  # moves the cache of compiled kernels
PLAIN_VARIABLE = "PULL_ENV_PLAIN_NUMBA"  # 1: use numba's public names only

OPTIONS: Any = {"nogil": True, "error_model": "numpy", "boundscheck": False}
TYPES = {"int": types.int64, "float": types.float64, "np.uint64": types.uint64, "bool": types.boolean}

F = TypeVar("F", bound=Callable[..., object])


def load_internals() -> Any:
    """Return `numba_internals`; None if not wanted, or if it fails with this numba."""
    if os.environ.get(PLAIN_VARIABLE, "") in ("1", "true"):
        return None
    try:
        return importlib.import_module("pull_env.kernels.compiler.numba_internals")
    except Exception as error:  # any change inside numba
        problem = f"numba {numba.__version__} has changed inside ({error})"
        warnings.warn(f"{problem}: pull_env compiles and runs slower, same results", stacklevel=2)
        return None


INTERNALS = load_internals()


def source_digest(folder: Path) -> str:
    """Return the digest that names the cache of the kernels in `folder`."""
    way = "plain" if INTERNALS is None else "internals"
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version} {way}".encode())
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder of all caches: the variable's, else one in the user's cache."""
    if CACHE_VARIABLE in os.environ:
        return Path(os.environ[CACHE_VARIABLE])
    if platform.system() == "Windows":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pull_env"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pull_env"


def cache_directory() -> Path:
    """Return the cache of this version; a temporary folder if it is not writable."""
    folder = cache_root() / source_digest(Path(__file__).parents[1])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # a read-only home, perhaps
    return Path(tempfile.mkdtemp(prefix="pull_env-"))  # every process compiles for itself


CACHE_DIRECTORY = cache_directory()


def kernel(function: F) -> F:
    """Compile `function` into the kernels that call it; do not call it from Python."""
    return _compile(function, {} if INTERNALS is None else INTERNALS.KERNEL_OPTIONS)


def entry(function: F) -> F:
    """Compile `function` on its first call from Python, and cache it; it holds no GIL."""
    if INTERNALS is None:
        return _compile(function, {"cache": True})
    compiled = _compile(function, {"cache": True} | INTERNALS.ENTRY_OPTIONS)
    INTERNALS.load_without_refresh(compiled)
    return compiled


def direct(function: F) -> F:
    """Compile an entry with declared arguments; return the quickest way to call it."""
    if INTERNALS is None:
        return function
    compiled: F = INTERNALS.entry_point(*_compiled_as_declared(function))
    return compiled


def address(function: Callable[..., object]) -> int:
    """Compile an entry of four integers to a float; return its address."""
    if INTERNALS is None:
        return int(_c_function(function).address)
    return int(INTERNALS.address(*_compiled_as_declared(function)))


# for kernels: `call_entry(address, system, what, first, second)` calls the entry at an address
call_entry = intrinsics.call_c if INTERNALS is None else INTERNALS.call_entry


@functools.cache  # the address is valid as long as the object exists
def _c_function(function: Any) -> Any:
    signature = types.float64(*declared_types(function))
    return _with_cache(numba.cfunc(signature, cache=True, **OPTIONS), function.py_func)


def declared_types(function: Callable[..., object]) -> tuple[Any, ...]:
    """Return the types that arguments are declared with; None: whatever is passed."""
    return tuple(TYPES.get(kind) for name, kind in function.__annotations__.items() if name != "return")


def _compiled_as_declared(function: Callable[..., object]) -> tuple[Any, tuple[Any, ...]]:
    dispatcher: Any = function
    dispatcher.compile(declared_types(function))
    return dispatcher, declared_types(function)


def _compile(function: F, options: dict[str, Any]) -> F:
    """Let `function` be compiled when it is first needed."""
    compiled: F = _with_cache(numba.njit(**OPTIONS, **options), function)
    if INTERNALS is not None:
        INTERNALS.convert_arguments(compiled, declared_types(function))
    return compiled


def _with_cache(decorator: Any, function: Callable[..., object]) -> Any:
    """Decorate `function`, and cache its machine code in CACHE_DIRECTORY."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(CACHE_DIRECTORY)  # read once, when a function is decorated
    try:
        return decorator(function)
    finally:
        config.CACHE_DIR = before
