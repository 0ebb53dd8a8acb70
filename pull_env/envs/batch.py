"""The arrays that the envs of a vector share, row by row, and the threads that move them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.arrays import LINE, lines
from pull_env.envs.observation import View
from pull_env.envs.router import RouterEnv
from pull_env.kernels.batch import BATCH, act_all, first_refused, pack
from pull_env.kernels.observe import OUTCOME, VIEW

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

NAMES = ("cost", "wait", "blocked", "messages", "router", "time", "action_mask")  # of an info
ENVS_A_THREAD = 512  # waking a thread costs as much as this many steps


class Batch:
    """N envs whose views are rows of arrays, so that one call of the kernels moves all of them.

    Attributes:
        envs: The N envs.
        actions: (N,) int64, what `act` lets them do.
        left: (N,) int64, customers until the end of each episode; negative where an env did not move.
        observations: (N, L) float32, overwritten at every step.
        masks: (N, A) int8, overwritten at every step.
    """

    def __init__(self, envs: list[RouterEnv], workers: int | None) -> None:
        """Let the envs write to common arrays.

        Args:
            envs: Equal ones.
            workers: Threads; None: as many as pay.
        """
        size = len(envs)
        self.envs = envs
        bounds = np.linspace(0, size, min(workers or threads(size), size) + 1).astype(int).tolist()
        self.chunks = list(pairwise(bounds))  # of envs, one for each thread
        self._pool: ThreadPoolExecutor | None = None
        self.actions, self.left = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.observations = np.zeros((size, envs[0]._view.observation.size), np.float32)
        self.masks = np.zeros((size, envs[0]._view.mask.size), np.int8)
        self._outcomes: Array = np.zeros(size, OUTCOME)
        self._views: Array = np.zeros(size, VIEW)
        self._numbers, self._flags = np.zeros((6, size)), np.zeros((2, size), np.bool_)
        self._link()

    def act(self) -> int:
        """Move all envs, and return how many ended, or did not move."""
        if len(self.chunks) == 1:
            return int(act_all(self._address, 0, len(self.envs)))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self.chunks) - 1, "pull_env")
        others = [self._pool.submit(act_all, self._address, *chunk) for chunk in self.chunks[1:]]
        own = act_all(self._address, *self.chunks[0])
        return int(own + sum(other.result() for other in others))

    def feed(self, k: int) -> None:
        """Move env `k`, whose calendar clock had no customers left."""
        self.envs[k].simulator.supply()
        act_all(self._address, k, k + 1)

    def restart(self, k: int, **arguments: Any) -> None:
        """Reset env `k`."""
        self.envs[k].reset(**arguments)
        self.adopt(k)
        pack(self._address, k)

    def adopt(self, k: int) -> None:
        """Let env `k` write to its rows, if it does not: it makes itself a new view for a policy."""
        env = self.envs[k]
        if env._view is not self._known[k]:
            env.lie_in(
                self._systems[k],
                self.observations[k],
                self.masks[k],
                self._outcomes[k, ...],
                self._views[k : k + 1],
            )
            self._known[k] = env._view

    def refused(self, restarts: bool) -> int:
        """Return the first env that cannot act, N if all can; `restarts`: one may whose episode has ended."""
        return int(first_refused(self._address, self.masks.shape[1], restarts))

    def answer(self) -> tuple[npt.NDArray[np.float64], Flags, dict[str, Any]]:
        """Return fresh arrays: the rewards, who ended in this step, and the info of all."""
        numbers = self._numbers.copy()
        rewards, cost, wait, time = numbers[:4]
        messages, router = numbers[4:].view(np.int64)
        blocked, ended = self._flags.copy()
        columns = (cost, wait, blocked, messages, router, time, self.masks.copy())
        return rewards, ended, dict(zip(NAMES, columns, strict=True))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the threads out of copies, which start their own, and the systems, copied with the envs."""
        return {**self.__dict__, "_pool": None, "_systems": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    def _link(self) -> None:
        """Write the addresses of all arrays where the kernels read them, and adopt the envs."""
        self._record: Array = np.zeros(1, BATCH)
        self._record["envs"] = len(self.envs)
        parts = {"views": self._views, "actions": self.actions, "left": self.left}
        for name, part in {**parts, "numbers": self._numbers, "flags": self._flags}.items():
            self._record[name] = part.ctypes.data
        self._address = int(self._record.ctypes.data)
        width = (
            self.envs[0].simulator.arrays.extent() | LINE
        )  # odd in lines, for the cache to hold many heads
        self._systems = lines(len(self.envs) * width).reshape(len(self.envs), width)
        self._known: list[View | None] = [None for _ in self.envs]  # the views that lie in the rows
        for k in range(len(self.envs)):
            self.adopt(k)


def threads(size: int) -> int:
    """Return how many threads pay for a batch of `size` envs."""
    return max(1, min(os.cpu_count() or 1, size // ENVS_A_THREAD))
