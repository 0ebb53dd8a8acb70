"""The one place that knows the compiler: `@kernel` compiles a function, and caches it under a digest of all kernels.

Numba stamps a cached kernel with its own file only, so that an edit in another kernel file would serve stale machine code.
The cache therefore lies in a directory named by a digest of every kernel source and of the versions of numba and numpy.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

CACHE_VARIABLE = "PULL_ENV_CACHE_DIR"  # moves the cache of compiled kernels

NUMBERS = {"int": types.int64, "float": types.float64, "np.uint64": types.uint64, "bool": types.boolean}

F = TypeVar("F", bound=Callable[..., object])


def source_digest(folder: Path) -> str:
    """Return the digest that names the cache of the kernels in `folder`: sources, compiler and interpreter."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for source in sorted(folder.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder under which compiled kernels are kept: the variable's, else the user's cache folder."""
    if CACHE_VARIABLE in os.environ:
        return Path(os.environ[CACHE_VARIABLE])
    if platform.system() == "Windows":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pull_env"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pull_env"


CACHE_DIRECTORY = cache_root() / source_digest(Path(__file__).parent)


def kernel(function: F) -> F:
    """Compile `function` on its first call, without the interpreter's lock, and keep the machine code on disk.

    Kernels never allocate, so reference counting is left out (`_nrt`). Each is compiled once, for the argument types of
    its annotations: left to itself, the compiler makes another version for every mixture of 32-bit, 64-bit and literal
    integers that kernels call each other with, and the first call of all takes twice as long.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_DIRECTORY)  # read once, when the function is decorated
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False, _nrt=False)(
            function
        )
    finally:
        numba.config.CACHE_DIR = before
    declared = [NUMBERS.get(kind) for name, kind in function.__annotations__.items() if name != "return"]
    template = compiled.get_call_template

    def as_declared(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return template(
            tuple(kind or given for kind, given in zip(declared, arguments, strict=True)), keywords
        )

    compiled.get_call_template = as_declared
    return compiled  # type: ignore[no-any-return]


def records(dtype: np.dtype[Any]) -> Callable[[int, int], Any]:
    """Return a function for kernels, `at(address, k)`: the k-th record of the array of `dtype` that starts at `address`.

    The record is a reference: what is assigned to its fields is written to the array.
    """
    record = numba.from_dtype(dtype)

    @intrinsic  # type: ignore[untyped-decorator]
    def at(typing_context: Any, address: Any, k: Any) -> Any:
        if not isinstance(address, types.Integer) or not isinstance(k, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            offset = builder.mul(arguments[1], context.get_constant(types.int64, dtype.itemsize))
            return builder.inttoptr(builder.add(arguments[0], offset), context.get_value_type(record))

        return record(types.int64, types.int64), generate

    return at  # type: ignore[no-any-return]
