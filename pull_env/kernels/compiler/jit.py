"""The one place that knows the compiler: `@kernel` compiles a function, and caches it under a digest of all
kernels.

Numba stamps a cached kernel with its own file only, so that an edit in another kernel file would serve stale
machine code. The cache therefore lies in a directory named by a digest of every kernel source and of the
versions of numba and numpy.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes, NativeLowering

CACHE_VARIABLE = "PULL_ENV_CACHE_DIR"  # moves the cache of compiled kernels

OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
NUMBERS = {"int": types.int64, "float": types.float64, "np.uint64": types.uint64, "bool": types.boolean}

F = TypeVar("F", bound=Callable[..., object])


def source_digest(folder: Path) -> str:
    """Return the digest that names the cache of the kernels in `folder`: sources, compiler, Python."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder of compiled kernels: the variable's, else one in the user's cache."""
    if CACHE_VARIABLE in os.environ:
        return Path(os.environ[CACHE_VARIABLE])
    if platform.system() == "Windows":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pull_env"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pull_env"


def cache_directory() -> Path:
    """Return the folder of this version's compiled kernels; a temporary one where that cannot be written."""
    folder = cache_root() / source_digest(Path(__file__).parents[1])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # a read-only home, perhaps
    return Path(tempfile.mkdtemp(prefix="pull_env-"))  # every process compiles for itself


CACHE_DIRECTORY = cache_directory()


@register_pass(mutates_CFG=False, analysis_only=True)
class LeaveToEntry(AnalysisPass):
    """Leave linking, optimisation and machine code to the entry that a kernel is compiled into.

    Left to itself, the compiler does all three for every kernel, with the kernels that it calls in it: twice
    the time.
    """

    _name = "leave_to_entry"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Let the library of the kernel hold what was written, and no more."""
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library._optimize_functions = lambda module: None
        library.finalize = lambda: setattr(library, "_finalized", True)
        state.library, state.flags.no_compile = library, True
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class OfferToCallers(LoweringPass):
    """Let other kernels find this one, of which there is no machine code, and what it calls."""

    _name = "offer_to_callers"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Register the kernel under a mark that stands for its machine code."""
        nobody: list[Any] = []
        mark = nobody.append  # the dispatcher insists on a builtin function; this one is like no other
        parts = dict.fromkeys([state.library, *state.library._linking_libraries])
        state.targetctx.insert_user_function(mark, state.cr.fndesc, list(parts))
        state.cr = state.cr._replace(cfunc=mark)
        return True


class Part(CompilerBase):
    """Compiles a kernel that becomes part of others."""

    def define_pipelines(self) -> list[Any]:
        """Return the usual pipeline, without optimisation."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(LeaveToEntry, AnnotateTypes)
        passes.add_pass_after(OfferToCallers, NativeLowering)
        passes.finalize()
        return [passes]


def kernel(function: F) -> F:
    """Compile `function` into the kernels that call it; Python cannot call it.

    It gets none of the wrappers that Python calls, in each of which its code would stand once more.
    """
    # inlined: a call costs as much as most kernels do
    return _compiled(function, forceinline=True, no_cpython_wrapper=True, pipeline_class=Part)


def entry(function: F) -> F:
    """Compile `function` on its first call from Python, without the interpreter's lock, and cache it."""
    compiled: Any = _compiled(function, cache=True)
    cache = compiled._cache

    def load(signature: Any, context: Any) -> Any:
        """Load machine code without all that the compiler knows of Python and numpy, which takes longer."""
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    cache.load_overload = load
    return cast("F", compiled)


def direct(function: F) -> F:
    """Compile an entry whose arguments are declared, and return it without the part that finds their types.

    That saves a hundred nanoseconds a call.
    """
    compiled: F = _result(function).entry_point
    return compiled


def address(function: Callable[..., object]) -> int:
    """Compile an entry whose arguments are declared; return its address, for `intrinsics.call_entry`."""
    compiled = _result(function)
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def _result(function: Callable[..., object]) -> Any:
    compiled: Any = function
    kinds = tuple(NUMBERS[kind] for name, kind in function.__annotations__.items() if name != "return")
    compiled.compile(kinds)
    return compiled.overloads[kinds]


def _compiled(function: F, **options: Any) -> F:
    """Let `function` be compiled when it is needed, and the machine code be cached.

    Kernels never allocate, so reference counting is left out (`_nrt`). Each is compiled once, for the types
    of its annotations: left to itself, the compiler makes another version for every mixture of 32-bit,
    64-bit and literal integers that kernels call each other with, and the first call takes twice as long.
    """
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(CACHE_DIRECTORY)  # read once, when the function is decorated
    try:
        compiled: Any = numba.njit(**OPTIONS, **options)(function)
    finally:
        config.CACHE_DIR = before
    declared = [NUMBERS.get(kind) for name, kind in function.__annotations__.items() if name != "return"]
    template = compiled.get_call_template

    def as_declared(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return template(
            tuple(kind or given for kind, given in zip(declared, arguments, strict=True)), keywords
        )

    compiled.get_call_template = as_declared
    return compiled
