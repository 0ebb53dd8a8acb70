"""The common arrays of the envs of a vector, one row per env."""

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
from pull_env.simulation.kernel_data.linked_record import LinkedRecord
from pull_env.simulation.kernel_data.state_arrays import LINE, lines

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

INFO_NAMES = ("cost", "wait", "blocked", "messages", "router", "time", "action_mask")
ENVS_PER_THREAD = 512  # waking a thread costs as much as some hundred steps


class Batch(LinkedRecord):
    """N envs with common arrays, so that one kernel call steps them all.

    Attributes:
        envs: The N envs.
        actions: (N,) int64, the actions of the next step.
        left: (N,) int64, customers left in each episode; negative where an env was not stepped.
        observations: (N, L) float32, overwritten at every step.
        masks: (N, A) int8, likewise.
    """

    linked = ("actions", "left", "observations", "masks", "views")

    def __init__(self, first: RouterEnv, size: int, workers: int | None, restarts: bool) -> None:
        """Build the envs.

        Args:
            first: One of them, which has not begun; the others are built like it.
            size: How many envs, N.
            workers: Threads; None: as many as are worth it.
            restarts: Whether an env may be stepped after its episode has ended.
        """
        bounds = np.linspace(0, size, min(workers or threads(size), size) + 1).astype(int).tolist()
        self.chunks = list(pairwise(bounds))  # of envs, one for each thread
        self._threads: BatchThreads | None = None
        self.actions, self.left = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.observations = np.zeros((size, first._observed.observation.size), np.float32)
        self.masks = np.zeros((size, first._observed.mask.size), np.int8)
        self._outcomes: Array = np.zeros(size, OUTCOME)
        self.views: Array = np.zeros(size, VIEW)
        self.record: Array = np.zeros(1, BATCH)
        self.record["envs"], self.record["restarts"] = size, restarts
        self.record["entries"], self.record["size"] = self.observations.shape[1], self.masks.shape[1]
        self._layout = layout(size, self.observations.shape[1], self.masks.shape[1])
        self.envs = [first]
        self.link()
        self._place_envs()
        self.envs += [first.clone_into(*self._rows(k)) for k in range(1, size)]

    def new_outputs(self) -> Array:
        """Return an uninitialised buffer for the outputs of a step, (bytes,) uint8."""
        return np.empty(self._layout.itemsize, np.uint8)

    def current_outputs(self) -> Array:
        """Return the current outputs of all envs, () `layout`."""
        outputs = self.new_outputs()
        write_all(self.address, 0, len(self.envs), outputs)
        return self.as_record(outputs)

    def as_record(self, outputs: Array) -> Array:
        """Return a buffer of outputs as a record, () `layout`."""
        return np.ndarray((), self._layout, outputs)

    def step(self, outputs: Array) -> tuple[int, int]:
        """Step all envs, and write their outputs to `outputs`; see `BatchThreads.step`."""
        if self._threads is None:
            self._threads = BatchThreads(self.address, self.chunks)
        return self._threads.step(outputs)

    def feed_and_step(self, k: int, outputs: Array) -> None:
        """Step env `k`, whose calendar clock had no customers left."""
        assert self._threads is not None
        self.envs[k].simulator.supply()
        self._threads.step_one(k, outputs)

    def reset_one(self, k: int, **arguments: Any) -> None:
        """Reset env `k`."""
        self.envs[k].reset(**arguments)
        self.read_left(k)

    def write_outputs(self, k: int, outputs: Array) -> None:
        """Write the outputs of env `k` to `outputs`."""
        write_all(self.address, k, k + 1, outputs)

    def read_left(self, k: int) -> None:
        """Update `left` of env `k`, after it was reset or stepped on its own."""
        self.left[k] = self.envs[k]._observed.record["left"][0]

    def close(self) -> None:
        """Stop the threads."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the threads, which copies restart, and the envs' own arrays."""
        return {**self.__dict__, "_threads": None, "_systems": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Restore a copied or unpickled batch, whose arrays have new addresses."""
        super().__setstate__(attributes)
        self._place_envs()

    def _rows(self, k: int) -> tuple[Array, ...]:
        """Return the rows of env `k`: system, observation, mask, outcome, VIEW."""
        observed = self.observations[k], self.masks[k], self._outcomes[k, ...], self.views[k : k + 1]
        return self._systems[k], *observed

    def _place_envs(self) -> None:
        """Allocate the rows of the systems, and move the envs into their rows."""
        size = len(self.actions)
        # an odd number of cache lines per system, so that the cache can hold many heads
        width = self.envs[0].simulator.arrays.extent() | LINE
        self._systems = lines(size * width).reshape(size, width)
        for k, env in enumerate(self.envs):
            env.move_into(*self._rows(k))


def layout(envs: int, entries: int, actions: int) -> np.dtype[Any]:
    """Return the layout of the outputs, which `write_outputs` of the kernels fills."""
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
    """Return how many threads are worth it for `size` envs."""
    return max(1, min(os.cpu_count() or 1, size // ENVS_PER_THREAD))
