"""Machine instructions for kernels: prefetch, copy, atomic access, vectors.

They use what numba documents: `numba.extending.intrinsic`, the builder of `llvmlite.ir`, and the context that
every generator is given. What goes beyond that is in `numba_internals`.

Vectors are of LANES integers side by side in memory; a mask has bit k set if lane k is selected.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 8
ALL_LANES = (1 << LANES) - 1  # mask
INT64, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


def _prefetch(write: int, locality: int) -> Any:
    """Return `prefetch(address)`: start fetching a cache line, without waiting."""

    def prefetch(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = ir.IntType(32)
            function_type = ir.FunctionType(ir.VoidType(), (BYTES, number, number, number))
            function = builder.module.declare_intrinsic("llvm.prefetch", (BYTES,), function_type)
            line = builder.inttoptr(arguments[0], BYTES)
            builder.call(function, (line, number(write), number(locality), number(1)))  # 1: data
            return context.get_dummy_value()

        return types.none(types.int64), generate

    return intrinsic(prefetch)


prefetch = _prefetch(write=1, locality=3)  # what is needed next
prefetch_far = _prefetch(write=0, locality=2)  # into the second-level cache: many more can be on their way


def _copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy `size` bytes between addresses, of memory that does not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.memcpy", [BYTES, BYTES, INT64])
        pointers = [builder.inttoptr(address, BYTES) for address in arguments[:2]]
        builder.call(function, (*pointers, arguments[2], ir.IntType(1)(0)))  # 0: not volatile
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


copy: Any = intrinsic(_copy)


def _call_c(typing_context: Any, address: Any, system: Any, what: Any, first: Any, second: Any) -> Any:
    """Call the C function at `address`, with four integers; it returns a float."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = ir.FunctionType(ir.DoubleType(), (INT64,) * 4)
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        return builder.call(function, arguments[1:])

    return types.float64(*(types.int64,) * 5), generate


call_c: Any = intrinsic(_call_c)


def _float32_pointer(builder: Any, address: Any, k: Any) -> Any:
    """Return the pointer to the k-th float32 of the array at `address`."""
    return builder.gep(builder.inttoptr(address, ir.FloatType().as_pointer()), [k])


def _load_float32(typing_context: Any, address: Any, k: Any) -> Any:
    """Return the k-th float32 of an array; the compiler can vectorise such loads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_float32_pointer(builder, *arguments))

    return types.float32(types.int64, types.int64), generate


def _store_float32(typing_context: Any, address: Any, k: Any, value: Any) -> Any:
    """Write the k-th float32 of the array at `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _float32_pointer(builder, *arguments[:2]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.float32), generate


load_float32: Any = intrinsic(_load_float32)
store_float32: Any = intrinsic(_store_float32)


def _int64_pointer(builder: Any, address: Any) -> Any:
    """Return the pointer to the int64 at `address`."""
    return builder.inttoptr(address, INT64.as_pointer())


def _load_atomic(typing_context: Any, address: Any) -> Any:
    """Return the int64 at `address`; what its writer wrote before is visible then."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_int64_pointer(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


def _exchange(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the int64 at `address`; return its old value, atomically."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", _int64_pointer(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _compare_exchange(typing_context: Any, address: Any, expected: Any, value: Any) -> Any:
    """Write the int64 at `address` if it is `expected`; return its old value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, expected, value = _int64_pointer(builder, arguments[0]), arguments[1], arguments[2]
        old = builder.cmpxchg(pointer, expected, value, "seq_cst", "seq_cst")
        return builder.extract_value(old, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


load_atomic: Any = intrinsic(_load_atomic)
exchange: Any = intrinsic(_exchange)
compare_exchange: Any = intrinsic(_compare_exchange)


def _load_lanes(builder: Any, address: Any, bits: int) -> Any:
    """Return the vector of integers of `bits` bits at `address`."""
    pointer = builder.inttoptr(address, ir.VectorType(ir.IntType(bits), LANES).as_pointer())
    return builder.load(pointer, align=bits // 8)


def _broadcast(builder: Any, value: Any, bits: int) -> Any:
    """Return a vector with the int64 `value` in every lane, in `bits` bits."""
    vector_type, number = ir.VectorType(ir.IntType(bits), LANES), ir.IntType(32)
    value = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
    first = builder.insert_element(ir.Constant(vector_type, ir.Undefined), value, number(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(number, LANES), [0] * LANES))


def _equal_lanes(bits: int) -> Any:
    """Return `equal_lanes(address, value)`: the mask of lanes that equal `value`."""

    def equal_lanes(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load_lanes(builder, arguments[0], bits)
            flags = builder.icmp_signed("==", lanes, _broadcast(builder, arguments[1], bits))
            return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), INT64)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(equal_lanes)


def _extreme(bits: int, kind: str) -> Any:
    """Return `extreme(address, mask)`: the least (smin) or greatest (smax) in `mask`.

    If none is selected, that is the greatest or least integer of `bits` bits.
    """
    unselected = (1 << (bits - 1)) - 1 if kind == "smin" else -(1 << (bits - 1))

    def extreme(typing_context: Any, address: Any, mask: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load_lanes(builder, arguments[0], bits)
            mask = builder.trunc(arguments[1], ir.IntType(LANES))
            selected = builder.bitcast(mask, ir.VectorType(ir.IntType(1), LANES))
            vector = builder.select(selected, lanes, ir.Constant(lanes.type, [unselected] * LANES))
            function_type = ir.FunctionType(ir.IntType(bits), (lanes.type,))
            name = f"llvm.vector.reduce.{kind}.v{LANES}i{bits}"
            value = builder.call(builder.module.declare_intrinsic(name, (), function_type), (vector,))
            return value if bits == 64 else builder.sext(value, INT64)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(extreme)


def _lowest_bit(typing_context: Any, mask: Any) -> Any:
    """Return the lowest lane in `mask`, 64 if it is empty."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


equal_lanes_32, equal_lanes_64 = _equal_lanes(32), _equal_lanes(64)
min_32, min_64, max_64 = _extreme(32, "smin"), _extreme(64, "smin"), _extreme(64, "smax")
lowest_bit: Any = intrinsic(_lowest_bit)
