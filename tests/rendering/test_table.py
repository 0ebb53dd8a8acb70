"""The text shows what the simulator holds."""

import numpy as np

from pull_env.rendering import ansi, snapshot
from tests.oracles.pictures import LARGE, TAKE_OR_PROBE, simulated, table_rows


def test_the_text_of_a_known_state(known):
    text = ansi(known)
    assert "Small 1: time " in text
    assert ", 50 customers\n" in text
    assert "router 1 probed servers 0, 4, chose 2 of pool 0: wait 1.25\n" in text
    assert table_rows(text, "pool") == [
        ["0", "3", "1.5", "-", "8", "1", "1", ".", ".", ".", "1", ".", "."],
        ["1", "2", "0.5", "4", "27", ".", ".", "1", ".", ".", ".", ".", "1"],
    ]
    assert table_rows(text, "router") == [
        ["0", "5", "1", "4", "has the next"],
        ["1", "0", "0", "0", "had the last"],
    ]
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_the_text_counts_servers_and_routers_of_a_large_system():
    simulator = simulated(LARGE, TAKE_OR_PROBE, 100_000)
    text, arrays = ansi(simulator), simulator.arrays
    bounds = [*snapshot.LEVELS, np.inf]
    for row, queues in zip(table_rows(text, "pool"), np.split(arrays.servers["queue"], [6_000]), strict=True):
        assert row[5:] == [str(c) if c else "." for c in np.histogram(queues, bounds)[0]]
        assert int(row[4]) == queues.sum()
    held = arrays.lists["held"]
    for row, counts in zip(table_rows(text, "routers by messages"), (held.sum(axis=1), *held.T), strict=True):
        assert row[2:] == [str(c) if c else "." for c in np.histogram(counts, bounds)[0]]
        assert int(row[1]) == counts.sum()
    assert held.sum() > 0
    assert max(map(len, text.splitlines())) <= 110
