"""Seeds for training, evaluation and leaderboards, which do not overlap."""

from __future__ import annotations

import zlib

import numpy as np


def spawn_seeds(run: int, count: int, key: str = "train") -> list[int]:
    """Return `count` different seeds below 2^32 for one run and one purpose.

    Gymnasium gives env i of a vector the seed `seed + i`, so that runs 0 and 1 of 256 envs would share 255
    streams. These seeds are scattered, and differ between runs and between keys.

    Args:
        run: The user's seed, from 0.
        count: How many.
        key: What they are for, such as `train` or `evaluate`.

    >>> spawn_seeds(0, 2) == spawn_seeds(0, 2), spawn_seeds(0, 2) == spawn_seeds(0, 2, "evaluate")
    (True, False)
    """
    sequence = np.random.SeedSequence(run, spawn_key=(zlib.crc32(key.encode()),))
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.update(dict.fromkeys(sequence.spawn(1)[0].generate_state(count).tolist()))
    return list(drawn)[:count]
