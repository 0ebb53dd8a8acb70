"""The guard of speed: a customer of `pull` against a loop of fixed work, in one process and in turns.

Times alone say as much of the machine as of the kernels; their ratio says more of the kernels. The loop does what an
event of a simulation does, always the same amount: a random number by xoshiro256++, a load whose address the last one
gave, an unpredictable branch, and a store.
"""

from __future__ import annotations

import time

import numba
import numpy as np

import baselines
from pull_env import Pool, Scenario
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator

MEASURED = 8.2  # a customer in steps of the loop: median of ten runs of this test
BOUND = 1.3 * MEASURED

CUSTOMERS, STEPS = 10_000, 100_000  # about a millisecond each: short enough to be undisturbed now and then
ROUNDS = 1_000

U = np.uint64
S17, S19, S23, S41, S45, LOW, HALF = U(17), U(19), U(23), U(41), U(45), U(0xFFFFFFFF), U(32)
RECORD = np.dtype([("next", np.int64), ("length", np.int64), ("visits", np.int64)], align=True)
RECORDS = 128


@numba.njit
def walk(words, records, steps):
    """Walk over the records, and return where it ends; changes the stream and the records."""
    a, b, c, d = words
    at = 0
    for _ in range(steps):
        total = a + d
        drawn = ((total << S23) | (total >> S41)) + a
        shifted = b << S17
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = (d << S45) | (d >> S19)
        record = records[(at + np.int64(((drawn & LOW) * U(RECORDS)) >> HALF)) % RECORDS]
        if drawn >> U(63):
            record.length += 1
            at = record.next
        elif record.length > 0:
            record.length -= 1
            at = record.next + record.length
        else:
            record.visits += 1
    words[0], words[1], words[2], words[3] = a, b, c, d
    return at


def reference():
    """Return a call that walks `STEPS` steps."""
    generator = np.random.default_rng(0)
    words = generator.integers(2**63, size=4).astype(np.uint64)
    records = np.zeros(RECORDS, RECORD)
    records["next"] = generator.permutation(RECORDS)
    return lambda: walk(words, records, STEPS)


def simulation():
    """Return a call that simulates `CUSTOMERS` customers of `pull` on 100 servers and 10 routers, warm."""
    scenario = Scenario((Pool(50, 1.25), Pool(50, 0.75)), routers=10, load=0.8)
    policy = baselines.make("pull")
    simulator, chain = Simulator(scenario, policy.steps, policy.announce), encode(policy.steps, scenario)
    simulator.reset(0)
    simulator.run(chain, 100_000)
    return lambda: simulator.run(chain, CUSTOMERS)


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio():
    """Return the time of a customer in steps of the loop: least times, undisturbed by other processes."""
    ours, fixed = simulation(), reference()
    fixed()  # compiles
    times = np.array([(seconds(ours), seconds(fixed)) for _ in range(ROUNDS)])
    a_customer, a_step = times.min(axis=0) / (CUSTOMERS, STEPS)
    return a_customer / a_step


def test_a_customer_takes_no_longer_than_before():
    measured = ratio()
    assert measured <= BOUND, f"a customer takes {measured:.1f} steps of the loop, was {MEASURED:.1f}"


if __name__ == "__main__":
    for _ in range(10):
        print(f"{ratio():.2f}", flush=True)
