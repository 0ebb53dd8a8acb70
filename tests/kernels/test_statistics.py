"""The bins of realised waits."""

from pull_env.kernels import statistics
from tests.oracles.naive import wait_bin


def test_wait_bins():
    waits = [0.0, 5e-324, *(2.0**k * (1 + part) for k in range(-40, 60) for part in (0, 0.3, 1 - 2**-52))]
    assert [statistics.wait_bin.py_func(wait) for wait in waits] == [wait_bin(wait) for wait in waits]
