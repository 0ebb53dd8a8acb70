"""Records are read and written by the address of an array, and by a handle."""

import numba
import numpy as np

from pull_env.kernels.compiler.addresses import elements, records, tagged

ITEM = np.dtype([("flag", np.int8), ("value", np.float64)], align=True)
HEAD = np.dtype([("n", np.int32), ("items", np.int64)], align=True)
BITS = 48
item_at, head_of, item_of = records(ITEM), tagged(HEAD, BITS), elements(HEAD, BITS, "items", ITEM)


@numba.njit
def add(handle, array, k):
    """Count in the head, and write to the k-th item in both ways."""
    head_of(handle).n += k
    item_at(array, k).value += 1.0
    item_of(handle, k).value *= 3.0
    return item_of(handle, k).flag


def test_records_are_references():
    items, head = np.zeros(3, ITEM), np.zeros(1, HEAD)
    items["flag"], head["items"] = [1, 2, 3], items.ctypes.data
    handle = head.ctypes.data | 5 << BITS
    assert add(handle, items.ctypes.data, 2) == 3
    assert head["n"] == 2
    assert items["value"].tolist() == [0.0, 0.0, 3.0]
