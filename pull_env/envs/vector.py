"""`RouterVectorEnv`: many `RouterEnv` side by side, moved by one call of the kernels a step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pull_env.envs.observation import View
from pull_env.envs.router import RouterEnv, whole
from pull_env.kernels.batch import BATCH, HUNGRY, act_all, first_refused, pack
from pull_env.kernels.observe import OUTCOME, VIEW

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Stepped = tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]

NAMES = ("cost", "wait", "blocked", "messages", "router", "time", "action_mask")  # of an info
ENVS_A_THREAD = 512  # waking a thread costs as much as this many steps


class RouterVectorEnv(VectorEnv[npt.NDArray[np.float32], npt.NDArray[np.int64], Array]):
    """`num_envs` independent `RouterEnv`, which one compiled call a step moves.

    Env i seeded s gives what a `RouterEnv` seeded s gives, to the bit, whatever the number of threads; an int
    as seed gives env i the seed + i. Spaces, rewards and infos are those of `gymnasium.vector.SyncVectorEnv`
    over `RouterEnv`: infos hold an array for every key, and under `_key` which envs gave it. All arrays are
    fresh at every step, but for these flags where all envs gave a key: they are read-only.

    ## Start and end

    Episodes are truncated after `customers` customers. By `autoreset_mode`:

    * `SameStep`: an env that ended starts its next episode in the same step. The observation and the info are
      those of the start; `final_obs` and `final_info` hold those of the end.
    * `NextStep`: it does so in the next step, whatever its action, with a reward of 0.
    * `Disabled`: `reset(options={"reset_mask": flags})` starts the flagged envs' next episodes, which must
      come before the next step. The mask works in the other modes as well.

    ## Arguments

    * `num_envs`: how many, from 1.
    * `autoreset_mode`: an `AutoresetMode`, or its value.
    * `workers`: threads; None: as many as cores, but one for every 512 envs.
    * all those of `RouterEnv`.

    Example:
        >>> import gymnasium
        >>> import pull_env.envs.registration
        >>> envs = gymnasium.make_vec("pull_env/Router-v0", num_envs=3, scenario="two-speeds")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.shape, infos["action_mask"].shape
        ((3, 20), (3, 18))
        >>> observations, rewards, terminations, truncations, infos = envs.step([0, 1, 17])
        >>> rewards.shape, truncations.any()
        ((3,), np.False_)
        >>> envs.close()

    Raises:
        ValueError: An argument is not allowed; the message names it, its value, and what is.
        TypeError: An argument is unknown to `RouterEnv`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        workers: int | None = None,
        **arguments: Any,
    ) -> None:
        """Check the arguments, and build the envs; see the class."""
        self.num_envs = whole("num_envs", num_envs, least=1)
        self._mode = _mode(autoreset_mode)
        threads = whole("workers", _threads(num_envs) if workers is None else workers, least=1)
        first = RouterEnv(**arguments)
        checked = {**arguments, "scenario": first.scenario, "catalog": first.catalog}
        self.envs = [first, *(RouterEnv(**checked) for _ in range(1, num_envs))]
        self.metadata = {**RouterEnv.metadata, "autoreset_mode": self._mode}
        self.render_mode = first.render_mode
        self.local_size = first.local_size
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        bounds = np.linspace(0, num_envs, min(threads, num_envs) + 1).astype(int).tolist()
        self._chunks = list(pairwise(bounds))  # of envs, one for each thread
        self._pool: ThreadPoolExecutor | None = None
        self._begun = False
        self._actions, self._left = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self._observations = np.zeros((num_envs, first.view.observation.size), np.float32)
        self._masks = np.zeros((num_envs, len(first.catalog)), np.int8)
        self._outcomes: Array = np.zeros(num_envs, OUTCOME)
        self._records: Array = np.zeros(num_envs, VIEW)
        self._numbers, self._flags = np.zeros((6, num_envs)), np.zeros((2, num_envs), np.bool_)
        self._link()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start the next episode of every env, or of those in `options["reset_mask"]`.

        Args:
            seed: An int gives env i the seed + i; a list one to each, None to go on as it is.
            options: `reset_mask`, (num_envs,) flags; all else goes to `RouterEnv.reset`.

        Raises:
            ValueError: There are not as many seeds or flags as envs, no flag is set, or an option is unknown.
            TypeError: `reset_mask` is not an array of flags.
            ResetNeeded: An env that is not flagged has not begun.
        """
        seeds = _seeds(seed, self.num_envs)
        rest = dict(options or {})
        chosen = self._chosen(rest.pop("reset_mask", None))
        for k in np.flatnonzero(chosen).tolist():
            self._restart(k, seed=seeds[k], options=rest)
        info = self._answer()[2]
        return self.observations(), info | self._given if chosen is self._everyone else _partial(info, chosen)

    def step(self, actions: npt.ArrayLike) -> Stepped:
        """Let every env place its customer at hand by its entry of the catalog, and run on to the next.

        Args:
            actions: (num_envs,) whole numbers.

        Raises:
            ResetNeeded: No episode has begun; or, where `autoreset_mode` is `Disabled`, an env's has ended.
            ValueError: There are not as many actions as envs, or one is not in the catalog.
        """
        self._read(actions)
        stopped = self._act()
        if stopped:
            self._resume()
        rewards, truncated, info = self._answer()
        if stopped and self._mode == AutoresetMode.SAME_STEP and truncated.any():
            final = self._finish(truncated, info)
            info = self._answer()[2] | final
        infos = info | self._given
        return self.observations(), rewards, np.zeros(self.num_envs, np.bool_), truncated, infos

    def observations(self) -> npt.NDArray[np.float32]:
        """Return what all envs see now, as `reset` and `step` did."""
        return self._observations.copy()

    def action_masks(self) -> Flags:
        """Return which actions are real, (num_envs, actions) flags; see `RouterEnv`.

        Raises:
            ResetNeeded: No episode has begun.
        """
        self._require_begun("action_masks")
        return self._masks.astype(np.bool_)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return what the method `name` of every env returns, or the attribute of that name."""
        return tuple(self.call_one(k, name, *args, **kwargs) for k in range(self.num_envs))

    def call_one(self, k: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """Return what the method `name` of env `k` returns, or the attribute of that name."""
        found = self.envs[k].get_wrapper_attr(name)
        if not callable(found):
            return found
        returned = found(*args, **kwargs)
        self._adopt(k)
        return returned

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every env: to its own of a list or tuple of values, or to the same value.

        Raises:
            ValueError: There are not as many values as envs.
        """
        each = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ValueError(f"values has {len(each)} entries: it must have {self.num_envs}, one an env")
        for env, value in zip(self.envs, each, strict=True):
            env.set_wrapper_attr(name, value)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generator of every env, from which seeds are drawn that `reset` is not given."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of every env's generator."""
        return self.get_attr("np_random_seed")

    def close_extras(self, **kwargs: Any) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the threads out of copies, which start their own."""
        return {**self.__dict__, "_pool": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over copied or unpickled arrays, which lie elsewhere than the originals."""
        self.__dict__.update(attributes)
        self._link()

    def _link(self) -> None:
        """Let all envs write to the rows of the arrays of the batch."""
        self._batch: Array = np.zeros(1, BATCH)
        self._batch["envs"] = self.num_envs
        parts = {"views": "_records"} | {name: f"_{name}" for name in ("actions", "left", "numbers", "flags")}
        for field, name in parts.items():
            self._batch[field] = getattr(self, name).ctypes.data
        self._address = int(self._batch.ctypes.data)
        self._everyone = np.ones(self.num_envs, np.bool_)
        self._everyone.flags.writeable = False
        self._given = {f"_{name}": self._everyone for name in NAMES}
        self._views: list[View | None] = [None] * self.num_envs
        for k in range(self.num_envs):
            self._adopt(k)

    def _adopt(self, k: int) -> None:
        """Let env `k` write to its rows, if it does not: it makes itself a new view for a policy."""
        env = self.envs[k]
        if env.view is not self._views[k]:
            env.lie_in(
                self._observations[k], self._masks[k], self._outcomes[k, ...], self._records[k : k + 1]
            )
            self._views[k] = env.view

    def _require_begun(self, what: str) -> None:
        self._begun = self._begun or all(env.begun for env in self.envs)
        if not self._begun:
            raise ResetNeeded(f"{what} needs reset of all envs before it")

    def _restart(self, k: int, **arguments: Any) -> None:
        self.envs[k].reset(**arguments)
        self._adopt(k)
        pack(self._address, k)

    def _chosen(self, mask: Any) -> Flags:
        """Return which envs to reset."""
        if mask is None:
            return self._everyone
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] is {mask!r}: it must be an array of flags, of dtype bool")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask'] has shape {mask.shape}: it must be ({self.num_envs},)")
        if not mask.any():
            raise ValueError("options['reset_mask'] is False for all envs: it must be True for one at least")
        if not mask.all():
            self._require_begun("a reset_mask for some")
        return mask

    def _read(self, actions: npt.ArrayLike) -> None:
        """Take over the actions, if all envs can act."""
        given = np.asarray(actions)
        if given.shape != self._actions.shape:
            raise ValueError(f"actions has shape {given.shape}: it must be {self._actions.shape}, one an env")
        if given.dtype.kind not in "iu":
            raise ValueError(f"actions has dtype {given.dtype}: it must hold whole numbers")
        self._require_begun("step")
        self._actions[...] = given
        size, restarts = self._masks.shape[1], self._mode == AutoresetMode.NEXT_STEP
        k = first_refused(self._address, size, restarts)
        if k < self.num_envs:
            if not 0 <= self._actions[k] < size:
                raise ValueError(
                    f"actions[{k}] is {given[k]}: it must be a whole number from 0 to {size - 1}"
                )
            raise ResetNeeded(f"step needs reset before it: the episode of env {k} has ended")

    def _act(self) -> int:
        """Move all envs, and return how many ended, or did not move."""
        if len(self._chunks) == 1:
            return int(act_all(self._address, 0, self.num_envs))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._chunks) - 1, "pull_env")
        others = [self._pool.submit(act_all, self._address, *chunk) for chunk in self._chunks[1:]]
        own = act_all(self._address, *self._chunks[0])
        return int(own + sum(other.result() for other in others))

    def _resume(self) -> None:
        """Feed the envs that could not move, and move them; restart those that had ended before."""
        for k in np.flatnonzero(self._left < 0).tolist():
            if self._left[k] == HUNGRY:
                self.envs[k].simulator.supply()
                act_all(self._address, k, k + 1)
            else:
                self._restart(k)

    def _answer(self) -> tuple[npt.NDArray[np.float64], Flags, dict[str, Any]]:
        """Return fresh arrays: the rewards, who ended in this step, and the info of all."""
        numbers = self._numbers.copy()
        rewards, cost, wait, time = numbers[:4]
        messages, router = numbers[4:].view(np.int64)
        blocked, truncated = self._flags.copy()
        columns = (cost, wait, blocked, messages, router, time, self._masks.copy())
        return rewards, truncated, dict(zip(NAMES, columns, strict=True))

    def _finish(self, ended: Flags, info: dict[str, Any]) -> dict[str, Any]:
        """Restart the envs that ended in this step, and return how they ended."""
        final_obs = np.full(self.num_envs, None, object)
        for k in np.flatnonzero(ended).tolist():
            final_obs[k] = self._observations[k].copy()
            self._restart(k)
        flags = {"_final_obs": ended.copy(), "_final_info": ended.copy()}
        return {"final_obs": final_obs, "final_info": _partial(info, ended), **flags}


def _partial(info: dict[str, Any], given: Flags) -> dict[str, Any]:
    """Return the info of the envs flagged in `given`, 0 elsewhere, with the flags."""
    for column in info.values():
        column[~given] = 0
    return info | {f"_{name}": given.copy() for name in info}


def _mode(value: AutoresetMode | str) -> AutoresetMode:
    for mode in AutoresetMode:
        if value in (mode, mode.value, mode.name):
            return mode
    allowed = " or ".join(repr(mode.value) for mode in AutoresetMode)
    raise ValueError(f"autoreset_mode is {value!r}: it must be {allowed}")


def _threads(num_envs: int) -> int:
    """Return how many threads pay."""
    return max(1, min(os.cpu_count() or 1, num_envs // ENVS_A_THREAD))


def _seeds(seed: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    """Return a seed for each of `count` envs."""
    if seed is None:
        return [None] * count
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + k for k in range(count)]
    if len(seed) != count:
        raise ValueError(f"seed has {len(seed)} entries: it must have {count}, one for each env")
    return list(seed)
