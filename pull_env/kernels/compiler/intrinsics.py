"""Single instructions that the language has no words for: of memory that threads share, and of vectors.

Vectors are of LANES integers that lie side by side; a mask has bit k set where number k is meant.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8
EVERY = (1 << LANES) - 1  # the mask of all
LEAST, MOST = "smin", "smax"

ir: Any = vars(cgutils)["ir"]  # the builder of machine code that the compiler brings along


def _fetching(write: int, locality: int) -> Any:
    """Return `prefetch(address)`: fetch the cache line at `address`, and do not wait for it."""

    def prefetch(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), (pointer, number, number, number))
            fetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
            line = builder.inttoptr(arguments[0], pointer)
            builder.call(fetch, (line, number(write), number(locality), number(1)))  # data
            return context.get_dummy_value()

        return types.none(types.int64), generate

    return intrinsic(prefetch)


prefetch = _fetching(write=1, locality=3)  # what is needed next
prefetch_far = _fetching(write=0, locality=2)  # into the second cache, to which many more can be on their way


def _copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy `size` bytes from the address `source` to the address `target`; they must not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ends = (builder.inttoptr(end, cgutils.voidptr_t) for end in arguments[:2])
        vars(cgutils)["raw_memcpy"](builder, *ends, arguments[2], 1)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


copy: Any = intrinsic(_copy)


def _call(typing_context: Any, address: Any, system: Any, what: Any, first: Any, second: Any) -> Any:
    """Call the entry at `address`, of four integers, which gives a float."""
    kinds, result = (types.int64,) * 4, types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.call_conv.get_function_type(result, kinds)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return context.call_conv.call_function(builder, function, result, kinds, arguments[1:])[1]

    return result(types.int64, *kinds), generate


call: Any = intrinsic(_call)


def _single_at(typing_context: Any, address: Any, k: Any) -> Any:
    """Return the k-th float32 from `address` on: the compiler sees that loops go along an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_single(builder, *arguments))

    return types.float32(types.int64, types.int64), generate


def _set_single(typing_context: Any, address: Any, k: Any, value: Any) -> Any:
    """Write the k-th float32 from `address` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _single(builder, *arguments[:2]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.float32), generate


def _single(builder: Any, address: Any, k: Any) -> Any:
    """Return the pointer to the k-th float32 from `address` on."""
    return builder.gep(builder.inttoptr(address, ir.FloatType().as_pointer()), [k])


single_at: Any = intrinsic(_single_at)
set_single: Any = intrinsic(_set_single)


def _word(builder: Any, address: Any) -> Any:
    """Return the pointer to the 64-bit word at `address`."""
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


def _look(typing_context: Any, address: Any) -> Any:
    """Return the word at `address`, which another thread may write: what it wrote before is seen then."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_word(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


def _exchange(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the word at `address`, and return what stood there, at one instant for all threads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", _word(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _exchange_if(typing_context: Any, address: Any, expected: Any, value: Any) -> Any:
    """Write the word at `address` if `expected` stands there, and return what stood there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, expected, value = _word(builder, arguments[0]), arguments[1], arguments[2]
        found = builder.cmpxchg(place, expected, value, "seq_cst", "seq_cst")
        return builder.extract_value(found, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


look: Any = intrinsic(_look)
exchange: Any = intrinsic(_exchange)
exchange_if: Any = intrinsic(_exchange_if)


def _load(builder: Any, address: Any, bits: int) -> Any:
    """Return the vector of integers of `bits` bits at `address`."""
    kind = ir.VectorType(ir.IntType(bits), LANES)
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=bits // 8)


def _repeat(builder: Any, value: Any, bits: int) -> Any:
    """Return a vector of `value`, an integer of 64 bits, in every lane."""
    kind, number = ir.VectorType(ir.IntType(bits), LANES), ir.IntType(32)
    value = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, number(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(number, LANES), [0] * LANES))


def _equal(bits: int) -> Any:
    """Return `equal(address, value)`: the mask of the integers at `address` that are `value`."""

    def equal(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found = _load(builder, arguments[0], bits)
            flags = builder.icmp_signed("==", found, _repeat(builder, arguments[1], bits))
            return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return intrinsic(equal)


def _extreme(bits: int, kind: str) -> Any:
    """Return `extreme(address, mask)`: the LEAST or the MOST of the integers at `address` that are in `mask`.

    Where none is, that is the greatest or the smallest integer of `bits` bits.
    """
    otherwise = (1 << (bits - 1)) - 1 if kind == LEAST else -(1 << (bits - 1))

    def extreme(typing_context: Any, address: Any, mask: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found, flag = _load(builder, arguments[0], bits), ir.IntType(1)
            meant = builder.trunc(arguments[1], ir.IntType(LANES))
            meant = builder.bitcast(meant, ir.VectorType(flag, LANES))
            vector = builder.select(meant, found, ir.Constant(found.type, [otherwise] * LANES))
            form = ir.FunctionType(ir.IntType(bits), (found.type,))
            name = f"llvm.vector.reduce.{kind}.v{LANES}i{bits}"
            reduce = vars(cgutils)["get_or_insert_function"](builder.module, form, name)
            value = builder.call(reduce, (vector,))
            return value if bits == 64 else builder.sext(value, ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return intrinsic(extreme)


def _first(typing_context: Any, mask: Any) -> Any:
    """Return the lowest number in `mask`, 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


equal_32, equal_64 = _equal(32), _equal(64)
least_32, least_64, most_64 = _extreme(32, LEAST), _extreme(64, LEAST), _extreme(64, MOST)
first: Any = intrinsic(_first)
