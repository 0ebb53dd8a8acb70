"""How kernels reach records: by an address or a handle (see `pull_env.kernels`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

INT64 = ir.IntType(64)


def records(dtype: np.dtype[Any]) -> Callable[[int, int], Any]:
    """Return `at(address, k)` for kernels: the k-th record of an array.

    The array, of `dtype`, starts at `address`. The record is a reference: what is assigned to its fields is
    written to the array.
    """
    record = numba.from_dtype(dtype)

    def at(typing_context: Any, address: Any, k: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            offset = builder.mul(arguments[1], INT64(dtype.itemsize))
            return builder.inttoptr(builder.add(arguments[0], offset), context.get_value_type(record))

        return record(types.int64, types.int64), generate

    compiled: Any = intrinsic(at)
    return compiled


def tagged(dtype: np.dtype[Any], bits: int) -> Callable[[int], Any]:
    """Return `at(handle)` for kernels: the record at the low `bits` of a handle."""
    record = numba.from_dtype(dtype)

    def at(typing_context: Any, handle: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = builder.and_(arguments[0], INT64((1 << bits) - 1))
            return builder.inttoptr(address, context.get_value_type(record))

        return record(types.int64), generate

    compiled: Any = intrinsic(at)
    return compiled


def elements(head: np.dtype[Any], bits: int, field: str, dtype: np.dtype[Any]) -> Callable[[int, int], Any]:
    """Return `at(handle, k)` for kernels: the k-th record of an array of a system.

    The array, of `dtype`, starts at the address in `field` of the head, which is the record of type `head`
    at the low `bits` of the handle.
    """
    assert head.fields is not None
    field_offset, record = head.fields[field][1], numba.from_dtype(dtype)

    def at(typing_context: Any, handle: Any, k: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = builder.and_(arguments[0], INT64((1 << bits) - 1))
            pointer = builder.inttoptr(builder.add(address, INT64(field_offset)), INT64.as_pointer())
            offset = builder.mul(arguments[1], INT64(dtype.itemsize))
            return builder.inttoptr(
                builder.add(builder.load(pointer), offset), context.get_value_type(record)
            )

        return record(types.int64, types.int64), generate

    compiled: Any = intrinsic(at)
    return compiled
