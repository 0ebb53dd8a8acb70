"""The arrays that the envs of a vector share, row by row, and the threads that move them."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pull_env.envs.batch_threads import BatchThreads
from pull_env.envs.router import RouterEnv
from pull_env.kernels.envs.batch import BATCH, write_all
from pull_env.kernels.envs.observe import OUTCOME, VIEW
from pull_env.simulation.kernel_data.state_arrays import LINE, lines
from pull_env.simulation.kernel_data.view import RouterObservation

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

NAMES = ("cost", "wait", "blocked", "messages", "router", "time", "action_mask")  # of an info, in order
ENVS_A_THREAD = 512  # waking a thread costs as much as this many steps


class Batch:
    """N envs whose views are rows of arrays, so that one call of the kernels moves all of them.

    Attributes:
        envs: The N envs.
        actions: (N,) int64, what `act` lets them do.
        left: (N,) int64, customers until the end of each episode; negative where an env did not move.
        observations: (N, L) float32, those of the views, overwritten at every step.
        masks: (N, A) int8, likewise.
    """

    def __init__(self, first: RouterEnv, size: int, workers: int | None, restarts: bool) -> None:
        """Build the envs.

        Args:
            first: One of them, which has not begun; the others are built like it.
            size: How many there are, N.
            workers: Threads; None: as many as pay.
            restarts: Whether an env may act whose episode has ended.
        """
        bounds = np.linspace(0, size, min(workers or threads(size), size) + 1).astype(int).tolist()
        self.chunks = list(pairwise(bounds))  # of envs, one for each thread
        self._threads: BatchThreads | None = None
        self.actions, self.left = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.observations = np.zeros((size, first._observed.observation.size), np.float32)
        self.masks = np.zeros((size, first._observed.mask.size), np.int8)
        self._outcomes: Array = np.zeros(size, OUTCOME)
        self._views: Array = np.zeros(size, VIEW)
        self._restarts = restarts
        self._layout = layout(size, self.observations.shape[1], self.masks.shape[1])
        self.envs = [first]
        self._link()
        self.envs += [first.clone_into(*self._rows(k)) for k in range(1, size)]
        self._known += [env._observed for env in self.envs[1:]]

    def room(self) -> Array:
        """Return a fresh place for an answer, (bytes,) uint8."""
        return np.empty(self._layout.itemsize, np.uint8)

    def look(self) -> Array:
        """Return what all envs show, () `layout`."""
        answer = self.room()
        write_all(self._address, 0, len(self.envs), answer)
        return self.read(answer)

    def read(self, answer: Array) -> Array:
        """Return the bytes of an answer as what they are, () `layout`."""
        return np.ndarray((), self._layout, answer)

    def act(self, answer: Array) -> tuple[int, int]:
        """Move all envs, and write what they show to `answer`; see `BatchThreads.step`."""
        if self._threads is None:
            self._threads = BatchThreads(self._address, self.chunks)
        return self._threads.step(answer)

    def feed(self, k: int, answer: Array) -> None:
        """Move env `k`, whose calendar clock had no customers left."""
        assert self._threads is not None
        self.envs[k].simulator.supply()
        self._threads.step_one(k, answer)

    def restart(self, k: int, **arguments: Any) -> None:
        """Reset env `k`."""
        self.envs[k].reset(**arguments)
        self.adopt(k)

    def tell(self, k: int, answer: Array) -> None:
        """Write to `answer` what env `k` shows."""
        write_all(self._address, k, k + 1, answer)

    def adopt(self, k: int) -> None:
        """Let env `k` write to its rows, if it does not: it makes itself a new view for a policy.

        Its episode, too, may be another.
        """
        env = self.envs[k]
        if env._observed is not self._known[k]:
            env.lie_in(*self._rows(k))
            self._known[k] = env._observed
        self.left[k] = env._observed.record["left"][0]

    def _rows(self, k: int) -> tuple[Array, ...]:
        """Return where env `k` lies: its system, and the parts of its view."""
        views = self.observations[k], self.masks[k], self._outcomes[k, ...], self._views[k : k + 1]
        return self._systems[k], *views

    def close(self) -> None:
        """Let the threads go."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the threads out of copies, which start their own, and the systems, copied with the envs."""
        return {**self.__dict__, "_threads": None, "_systems": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    def _link(self) -> None:
        """Write the addresses of all arrays where the kernels read them, and adopt the envs."""
        self._record: Array = np.zeros(1, BATCH)
        size = len(self.actions)
        self._record["envs"], self._record["restarts"] = size, self._restarts
        self._record["entries"], self._record["size"] = self.observations.shape[1], self.masks.shape[1]
        for name in ("actions", "left", "observations", "masks"):
            self._record[name] = getattr(self, name).ctypes.data
        self._record["views"] = self._views.ctypes.data
        self._address = int(self._record.ctypes.data)
        width = (
            self.envs[0].simulator.arrays.extent() | LINE
        )  # odd in lines, for the cache to hold many heads
        self._systems = lines(size * width).reshape(size, width)
        self._known: list[RouterObservation | None] = [None for _ in self.envs]  # those in the rows
        for k in range(len(self.envs)):
            self.adopt(k)


def layout(envs: int, entries: int, actions: int) -> np.dtype[Any]:
    """Return how an answer lies in memory, as `kernels.batch.write_answers` writes it."""
    reals, counts, flags = (np.dtype((kind, (envs,))) for kind in (np.float64, np.int64, np.bool_))
    return np.dtype(
        [
            *((name, reals) for name in ("reward", "cost", "wait", "time")),
            *((name, counts) for name in ("messages", "router")),
            ("observation", np.float32, (envs, entries)),
            ("action_mask", np.int8, (envs, actions)),
            *((name, flags) for name in ("blocked", "truncated", "terminated")),
        ]
    )


def threads(size: int) -> int:
    """Return how many threads pay for a batch of `size` envs."""
    return max(1, min(os.cpu_count() or 1, size // ENVS_A_THREAD))
