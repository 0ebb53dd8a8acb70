"""Threads that share the steps of a batch, without the interpreter's lock.

To wake a thread takes ten microseconds, as long as a hundred envs take to step. So a thread that has done its
part polls for the next order for a while before it sleeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pull_env.kernels.compiler.addresses import records
from pull_env.kernels.compiler.intrinsics import compare_exchange, exchange, load_atomic
from pull_env.kernels.compiler.jit import entry
from pull_env.kernels.envs.batch import first_invalid, step_some

IDLE, SUBMITTED, SLEEPING = range(3)

TASK = np.dtype(  # one thread's part of a batch
    [
        ("state", np.int64),  # IDLE: the worker polls for a task
        ("batch", np.int64),  # address of the BATCH
        ("first", np.int64),  # its envs are first, ..., last - 1
        ("last", np.int64),
        ("outputs", np.int64),  # address of the arrays that they write to
        ("stopped", np.int64),  # how many of them ended or were not stepped
        ("wake", np.int64),  # 1: the worker must be woken for this task
        ("padding", np.int64, 9),  # up to 128 bytes: a line, and the one fetched along with it
    ]
)
task_at = records(TASK)
TASK_BYTES = TASK.itemsize


@entry
def submit(tasks: int, count: int, outputs: Any) -> int:
    """Submit a step of the batch to the threads of `count` tasks, if all envs can.

    Returns:
        The first env that cannot step; else the number of envs, plus 1 for each worker to be woken: the
        caller's thread, which has the first task, never sleeps.
    """
    refused, sleepers = first_invalid(task_at(tasks, 0).batch), 0
    if refused == task_at(tasks, count - 1).last:
        for k in range(count):
            task = task_at(tasks, k)
            task.outputs = outputs.ctypes.data
            task.wake = exchange(tasks + k * TASK_BYTES, SUBMITTED) == SLEEPING
            sleepers += task.wake if k > 0 else 0
    return refused + sleepers


@entry
def run_tasks(address: int, spin_limit: int) -> int:
    """Run the task submitted at `address`; sleep after `spin_limit` idle polls.

    Returns:
        How many envs ended or were not stepped in the last step.
    """
    task, polls = task_at(address, 0), 0
    while True:
        if load_atomic(address) == SUBMITTED:
            task.stopped = step_some(task.batch, task.first, task.last, task.outputs)
            exchange(address, IDLE)
            polls = 0
        elif polls < spin_limit:
            polls += 1
        elif compare_exchange(address, IDLE, SLEEPING) != SUBMITTED:
            return task.stopped


@entry
def poll_results(tasks: int, count: int, spin_limit: int) -> int:
    """Return how many envs ended or were not stepped; -1: not done in time."""
    stopped = 0
    for k in range(count):
        while load_atomic(tasks + k * TASK_BYTES) == SUBMITTED:
            spin_limit -= 1
            if spin_limit < 0:
                return -1
        stopped += task_at(tasks, k).stopped
    return stopped
