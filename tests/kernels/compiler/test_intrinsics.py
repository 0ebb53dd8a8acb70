"""What the instructions do, by numpy."""

import numba
import numpy as np
import pytest

from pull_env.kernels.compiler import intrinsics
from pull_env.kernels.compiler.intrinsics import ALL_LANES, LANES


def compiled(name):
    """Return the instruction `name` as a function of integers, for Python."""
    instruction = getattr(intrinsics, name)
    if name in ("lowest_bit", "load_atomic"):
        return numba.njit(lambda first: instruction(first))
    if name in ("copy", "compare_exchange", "store_float32"):
        return numba.njit(lambda first, second, third: instruction(first, second, third))
    return numba.njit(lambda first, second: instruction(first, second))


@pytest.mark.parametrize("bits", [32, 64])
def test_vectors(bits):
    rng = np.random.default_rng(bits)
    equal, least = compiled(f"equal_lanes_{bits}"), compiled(f"min_{bits}")
    for _ in range(20):
        lanes = rng.integers(-3, 4, LANES).astype(f"int{bits}")
        mask = int(rng.integers(1, ALL_LANES + 1))
        selected = [int(value) for k, value in enumerate(lanes) if mask >> k & 1]
        assert equal(lanes.ctypes.data, 2) == sum(1 << k for k, value in enumerate(lanes) if value == 2)
        assert least(lanes.ctypes.data, mask) == min(selected)
        if bits == 64:
            assert compiled("max_64")(lanes.ctypes.data, mask) == max(selected)
    assert least(lanes.ctypes.data, 0) == np.iinfo(lanes.dtype).max


def test_lowest_bit():
    lowest = compiled("lowest_bit")
    assert [lowest(mask) for mask in (1, 6, 128, 0)] == [0, 1, 7, 64]


def test_memory():
    source, target = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    compiled("copy")(target.ctypes.data, source.ctypes.data, 16)
    assert target.tolist() == [0, 1, 2, 3, 0]
    compiled("store_float32")(target.ctypes.data, 4, 0.1)
    assert compiled("load_float32")(target.ctypes.data, 4) == target[4] == np.float32(0.1)


def test_atomic_access():
    word = np.array([5])
    at = word.ctypes.data
    assert compiled("exchange")(at, 7) == 5
    assert compiled("compare_exchange")(at, 5, 9) == 7
    assert compiled("load_atomic")(at) == 7
    assert compiled("compare_exchange")(at, 7, 9) == 7
    assert word[0] == 9
