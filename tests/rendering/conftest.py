"""Simulators for pictures, and one whose state is set by hand."""

import pytest

from tests.oracles.pictures import SMALL, TAKE_OR_PROBE, simulated


@pytest.fixture
def known():
    """A simulator whose state is set by hand: queues 0, 1, 7 and 2, 25; router 1 probed 0 and 4, and chose 2."""
    simulator = simulated(SMALL, TAKE_OR_PROBE, 50)
    arrays = simulator.arrays
    arrays.servers["queue"] = [0, 1, 7, 2, 25]
    arrays.lists["held"] = [[1, 4], [0, 0]]
    arrays.head["last_router"], arrays.head["last_server"], arrays.head["probed_count"] = 1, 2, 2
    arrays.head["router"], arrays.head["blocked"], arrays.head["wait"] = 0, 0, 1.25
    arrays.probed[:2] = [0, 4]
    return simulator
