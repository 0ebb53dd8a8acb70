"""The threads that move the envs of a batch."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

import numpy as np

from pull_env.kernels.envs.batch_threads import ASLEEP, ORDERED, TASK, TASK_BYTES, carry_out, gather, order
from pull_env.simulation.kernel_data.state_arrays import Array, lines

give_way: Callable[[], None] = getattr(
    os, "sched_yield", lambda: time.sleep(0)
)  # Windows has the latter only
PATIENCE = 20_000  # looks for an order before a thread sleeps: some 50 microseconds


class Crew:
    """One thread for each chunk of envs: that of the caller, and others that wait for its orders."""

    def __init__(self, batch: int, chunks: list[tuple[int, int]]) -> None:
        """Start the threads.

        Args:
            batch: Address of the BATCH record; the crew does not keep it alive.
            chunks: The first env of each thread, and the one after its last.
        """
        self._tasks = lines((len(chunks) + 1) * TASK_BYTES).view(TASK)  # the last one: for a single env
        self._tasks["state"], self._tasks["batch"] = ASLEEP, batch
        self._tasks["first"][:-1], self._tasks["last"][:-1] = np.transpose(chunks)
        self._address, self._count, self._envs = int(self._tasks.ctypes.data), len(chunks), chunks[-1][1]
        self._bells = [threading.Lock() for _ in chunks[1:]]
        stopped: list[bool] = []
        for k, bell in enumerate(self._bells, start=1):
            bell.acquire()
            arguments = self._tasks, self._address + k * TASK_BYTES, bell, stopped
            threading.Thread(target=_wait, args=arguments, name=f"pull_env-{k}", daemon=True).start()
        self.close = weakref.finalize(self, _dismiss, self._bells, stopped)

    def act(self, answer: Array) -> tuple[int, int]:
        """Let all envs act and write what they show to `answer`.

        Returns:
            The first env that cannot act, N if all can: only then do they. How many ended or did not move.
        """
        if self._count == 1:
            ordered = order(self._address, 1, answer)
            return ordered, carry_out(self._address, 0) if ordered == self._envs else 0
        others = 0
        try:
            ordered = order(self._address, self._count, answer)
            if ordered < self._envs:
                return ordered, 0
            if ordered > self._envs:
                self._wake()
            stopped = carry_out(self._address, 0)
        finally:  # interrupted or not: nobody writes to `answer` from now on
            others = self._others()
        return self._envs, stopped + others

    def act_one(self, k: int, answer: Array) -> None:
        """Let env `k` act, which did not move when all others did."""
        task = self._tasks[-1]
        task["first"], task["last"], task["answer"], task["state"] = k, k + 1, answer.ctypes.data, ORDERED
        carry_out(self._address + self._count * TASK_BYTES, 0)

    def _wake(self) -> None:
        """Ring for the threads that must be woken for this order, once."""
        asleep = self._tasks["asleep"]
        for k, bell in enumerate(self._bells, start=1):
            if asleep[k]:
                _ring(bell)
                asleep[k] = 0

    def _others(self) -> int:
        """Wait for the other threads; return how many of their envs ended, or did not move."""
        while (stopped := gather(self._address + TASK_BYTES, self._count - 1, PATIENCE)) < 0:
            self._wake()  # an interruption may have come before
            give_way()  # a thread has no processor: leave it this one
        return stopped


def _wait(tasks: Array, task: int, bell: threading.Lock, stopped: list[bool]) -> None:
    """Carry out the orders of the task at address `task`, one of `tasks`, which must not vanish meanwhile."""
    while bell.acquire() and not stopped:
        carry_out(task, PATIENCE)


def _dismiss(bells: list[threading.Lock], stopped: list[bool]) -> None:
    """Let the threads end, none of which has anything to do."""
    stopped.append(True)
    for bell in bells:
        _ring(bell)


def _ring(bell: threading.Lock) -> None:
    """Let the thread go on that waits for `bell`, or will; only the caller's thread rings."""
    if bell.locked():
        bell.release()
