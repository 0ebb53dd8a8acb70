"""Threads that share the steps of a batch: each waits in a kernel, without the interpreter's lock.

To wake a thread takes ten microseconds, as long as it takes to move a hundred envs. So a thread that has done
its part looks for the next order for a while before it sleeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.compiler.intrinsics import exchange, exchange_if, look
from pull_env.kernels.compiler.jit import entry, records
from pull_env.kernels.envs.batch import first_refused, step_some

IDLE, ORDERED, ASLEEP = range(3)

TASK = np.dtype(  # one thread's part of a batch
    [
        ("state", np.int64),  # IDLE: the thread looks for an order
        ("batch", np.int64),  # address of the BATCH
        ("first", np.int64),  # its envs are first, ..., last - 1
        ("last", np.int64),
        ("answer", np.int64),  # address of the answer in which they write what they show
        ("stopped", np.int64),  # how many of them ended, or did not move
        ("asleep", np.int64),  # 1: the thread must be woken for this order
        ("alone", np.int64, 9),  # up to 128 bytes: a line, and the one fetched along with it
    ]
)
task_at = records(TASK)
TASK_BYTES = TASK.itemsize


@entry
def order(tasks: int, count: int, answer: Any) -> int:
    """Order a step of the batch from the `count` threads of `tasks`, if all envs can act.

    Returns:
        The first env that cannot act; else the envs of the batch, and 1 for each thread to be woken: that of
        the caller, which has the first task, never sleeps.
    """
    refused, sleepers = first_refused(task_at(tasks, 0).batch), 0
    if refused == task_at(tasks, count - 1).last:
        for k in range(count):
            it = task_at(tasks, k)
            it.answer = answer.ctypes.data
            it.asleep = exchange(tasks + k * TASK_BYTES, ORDERED) == ASLEEP
            sleepers += it.asleep if k > 0 else 0
    return refused + sleepers


@entry
def carry_out(task: int, patience: int) -> int:
    """Carry out what is ordered from `task`; end, asleep, after `patience` looks without an order.

    Returns:
        How many envs ended, or did not move, in the last step.
    """
    it, looks = task_at(task, 0), 0
    while True:
        if look(task) == ORDERED:
            it.stopped = step_some(it.batch, it.first, it.last, it.answer)
            exchange(task, IDLE)
            looks = 0
        elif looks < patience:
            looks += 1
        elif exchange_if(task, IDLE, ASLEEP) != ORDERED:
            return it.stopped


@entry
def gather(tasks: int, count: int, patience: int) -> int:
    """Return how many envs of `count` tasks ended, or did not move; -1 if not all are done in time."""
    stopped = 0
    for k in range(count):
        while look(tasks + k * TASK_BYTES) == ORDERED:
            patience -= 1
            if patience < 0:
                return -1
        stopped += task_at(tasks, k).stopped
    return stopped
