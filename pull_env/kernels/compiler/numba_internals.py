"""Everything that reaches into numba beyond what it documents.

`jit` imports this module. If this numba lacks one of NAMES, the import fails, and `jit` compiles the same
kernels by public names: the same results, but `simulate("two-speeds", "pull")` compiles for 21 s of CPU time
in place of 5, and then runs a third slower. What each part contributes is said below.
"""

from __future__ import annotations

import pkgutil
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

NAMES = (  # private or undocumented; `module:attribute`
    "numba.core.caching:FunctionCache._guard_against_spurious_io_errors",
    "numba.core.caching:FunctionCache._load_overload",
    "numba.core.callconv:CPUCallConv.call_function",
    "numba.core.callconv:CPUCallConv.get_function_type",
    "numba.core.codegen:CodeLibrary._finalized",
    "numba.core.codegen:CPUCodeLibrary._optimize_functions",
    "numba.core.codegen:CodeLibrary.finalize",
    "numba.core.codegen:JITCodeLibrary.get_pointer_to_function",
    "numba.core.codegen:JITCPUCodegen.create_library",
    "numba.core.compiler:CompilerBase",
    "numba.core.compiler:CompilerBase.define_pipelines",
    "numba.core.compiler:CompileResult.entry_point",
    "numba.core.compiler:CompileResult.fndesc",
    "numba.core.compiler:CompileResult.library",
    "numba.core.compiler:DefaultPassBuilder",
    "numba.core.compiler:DefaultPassBuilder.define_nopython_pipeline",
    "numba.core.compiler:Flags.no_compile",
    "numba.core.compiler_machinery:AnalysisPass",
    "numba.core.compiler_machinery:LoweringPass",
    "numba.core.compiler_machinery:PassManager.add_pass_after",
    "numba.core.compiler_machinery:register_pass",
    "numba.core.cpu:CPUContext.call_conv",
    "numba.core.cpu:CPUContext.codegen",
    "numba.core.cpu:CPUContext.insert_user_function",
    "numba.core.cpu:CPUTargetOptions._nrt",
    "numba.core.cpu:CPUTargetOptions.forceinline",
    "numba.core.cpu:CPUTargetOptions.no_cfunc_wrapper",
    "numba.core.cpu:CPUTargetOptions.no_cpython_wrapper",
    "numba.core.dispatcher:Dispatcher.get_call_template",
    "numba.core.funcdesc:FunctionDescriptor.llvm_func_name",
    "numba.core.typed_passes:AnnotateTypes",
    "numba.core.typed_passes:NativeLowering",
)


def check_names() -> None:
    """Raise AttributeError or ImportError if this numba lacks a name used here."""
    for name in NAMES:
        pkgutil.resolve_name(name)
    dispatcher: Any = numba.njit(check_names)  # these attributes exist on objects only; nothing is compiled
    library = dispatcher.targetctx.codegen().create_library("example")
    _ = dispatcher._cache, dispatcher.overloads, library._linking_libraries


check_names()

from numba.core.compiler import CompilerBase, DefaultPassBuilder  # noqa: E402
from numba.core.compiler_machinery import AnalysisPass, LoweringPass, register_pass  # noqa: E402
from numba.core.typed_passes import AnnotateTypes, NativeLowering  # noqa: E402


@register_pass(mutates_CFG=False, analysis_only=True)
class LeaveToEntry(AnalysisPass):
    """Leave linking, optimisation and machine code to the entries that call a kernel.

    Otherwise the compiler does all three for every kernel, including all the kernels that it calls: the first
    run of two-speeds takes 11.8 s of CPU time in place of 5.0.
    """

    _name = "leave_to_entry"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Give the kernel a library that holds unoptimised code."""
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library._optimize_functions = lambda module: None
        library.finalize = lambda: setattr(library, "_finalized", True)
        state.library, state.flags.no_compile = library, True
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class OfferToCallers(LoweringPass):
    """Let other kernels find this one, which has no machine code, and what it calls."""

    _name = "offer_to_callers"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Register the kernel under an object that stands for its machine code."""
        unused: list[Any] = []
        key = unused.append  # the dispatcher requires a builtin function; this one is unique
        parts = dict.fromkeys([state.library, *state.library._linking_libraries])
        state.targetctx.insert_user_function(key, state.cr.fndesc, list(parts))
        state.cr = state.cr._replace(cfunc=key)
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


# Kernels never allocate, so reference counting is left out; nothing calls an entry from C. Each option saves
# a few percent of the time to compile.
ENTRY_OPTIONS: dict[str, Any] = {"_nrt": False, "no_cfunc_wrapper": True}
# Inlined, as a call costs as much as most kernels do: otherwise two-speeds runs a third slower. Without the
# wrapper that Python calls, which would contain the kernel's code once more.
KERNEL_OPTIONS = ENTRY_OPTIONS | {"forceinline": True, "no_cpython_wrapper": True, "pipeline_class": Part}


def convert_arguments(dispatcher: Any, declared: list[Any]) -> None:
    """Compile once, for the `declared` types; None: for the type of the argument.

    Otherwise the compiler makes another version for every mixture of 32-bit, 64-bit and literal integers that
    kernels call each other with: the first run of two-speeds takes 6.6 s of CPU time in place of 5.0.
    """
    template = dispatcher.get_call_template

    def as_declared(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        converted = (kind or given for kind, given in zip(declared, arguments, strict=True))
        return template(tuple(converted), keywords)

    dispatcher.get_call_template = as_declared


def load_without_refresh(dispatcher: Any) -> None:
    """Load cached machine code without the compiler's knowledge of Python and numpy.

    Otherwise every process takes another 0.2 s to its first result.
    """
    cache = dispatcher._cache

    def load(signature: Any, context: Any) -> Any:
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    cache.load_overload = load


def entry_point(dispatcher: Any, declared: tuple[Any, ...]) -> Any:
    """Return what was compiled for the `declared` types, without dispatch on types.

    That saves 0.1 microseconds of the 0.27 that a call from Python takes at least.
    """
    return dispatcher.overloads[declared].entry_point


def address(dispatcher: Any, declared: tuple[Any, ...]) -> int:
    """Return the address of what was compiled for the `declared` types.

    `call_entry` calls it by numba's own convention; by that of C, the preset failures runs 25 % slower.
    """
    result = dispatcher.overloads[declared]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def _call_entry(typing_context: Any, address: Any, system: Any, what: Any, first: Any, second: Any) -> Any:
    """Call the compiled function at `address`, with four integers; it returns a float."""
    declared, result = (types.int64,) * 4, types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = context.call_conv.get_function_type(result, declared)
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        return context.call_conv.call_function(builder, function, result, declared, arguments[1:])[1]

    return result(types.int64, *declared), generate


call_entry: Any = intrinsic(_call_entry)
