"""`RouterVectorEnv`: many `RouterEnv`, stepped together by one kernel call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pull_env.envs.batch import INFO_NAMES, Array, Batch, Flags
from pull_env.envs.router import RouterEnv
from pull_env.kernels.envs.batch import NEEDS_FEED
from pull_env.scenario.validation import check_argument

Stepped = tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]


class RouterVectorEnv(VectorEnv[npt.NDArray[np.float32], npt.NDArray[np.int64], Array]):
    """`num_envs` independent `RouterEnv`, stepped together by one kernel call.

    Env i with seed s gives exactly what a `RouterEnv` with seed s gives, with any number of threads; an int
    as seed gives env i the seed + i. Spaces, rewards and infos are those of `gymnasium.vector.SyncVectorEnv`
    over `RouterEnv`: infos have an array for every key, and under `_key` flags of the envs that gave it. All
    arrays are new at every step, except these flags if all envs gave a key: then they are read-only.

    ## Start and end

    Episodes are truncated after `customers` customers. Then, depending on `autoreset_mode`:

    * `SameStep`: the env starts its next episode in the same step. The observation and the info are those of
      the start; `final_obs` and `final_info` hold those of the end.
    * `NextStep`: it starts it in the next step, whatever the action, with a reward of 0.
    * `Disabled`: `reset(options={"reset_mask": flags})` must start the next episodes of the flagged envs
      before the next step. The mask works in the other modes too.

    ## Arguments

    * `num_envs`: how many, from 1.
    * `autoreset_mode`: an `AutoresetMode`, or its value.
    * `workers`: threads; None: one per core, but at most one per 512 envs.
    * all those of `RouterEnv`.

    Example:
        >>> import gymnasium
        >>> import pull_env.envs.registration
        >>> envs = gymnasium.make_vec("pull_env/Router-v0", num_envs=3, scenario="two-speeds")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.shape, infos["action_mask"].shape
        ((3, 22), (3, 18))
        >>> observations, rewards, terminations, truncations, infos = envs.step([0, 1, 17])
        >>> rewards.shape, bool(truncations.any())
        ((3,), False)
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
        """Check the arguments and build the envs; see the class."""
        self.num_envs = check_argument.whole("num_envs", num_envs, 1)
        self._mode = _mode(autoreset_mode)
        if workers is not None:
            check_argument.whole("workers", workers, 1)
        first = RouterEnv(**arguments)
        self.metadata = {**RouterEnv.metadata, "autoreset_mode": self._mode}
        self.render_mode = first.render_mode
        self.local_size = first.local_size
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._begun = False
        self._batch = Batch(first, num_envs, workers, restarts=self._mode == AutoresetMode.NEXT_STEP)
        self.envs = self._batch.envs
        self._all_envs = np.ones(num_envs, np.bool_)
        self._all_given = {f"_{name}": self._all_envs for name in INFO_NAMES}
        self._all_envs.flags.writeable = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start the next episode of every env, or of those in `options["reset_mask"]`.

        Args:
            seed: An int gives env i the seed + i; a list gives each its own, None for its current one.
            options: `reset_mask`, (num_envs,) flags; the others go to `RouterEnv.reset`.

        Raises:
            ValueError: The number of seeds or flags is not that of envs, no flag is set, or an option is
                unknown.
            TypeError: `reset_mask` is not an array of flags.
            ResetNeeded: An env that is not flagged has not begun.
        """
        seeds = _seeds(seed, self.num_envs)
        rest = dict(options or {})
        chosen = self._envs_to_reset(rest.pop("reset_mask", None))
        for k in np.flatnonzero(chosen).tolist():
            self._batch.reset_one(k, seed=seeds[k], options=rest)
        outputs = self._batch.current_outputs()
        info = _info(outputs)
        info = info | self._all_given if chosen is self._all_envs else _partial(info, chosen)
        return outputs["observation"], info

    def step(self, actions: npt.ArrayLike) -> Stepped:
        """Let every env assign its customer by its action, and run to the next one.

        Args:
            actions: (num_envs,) whole numbers.

        Raises:
            ResetNeeded: No episode has begun; or, if `autoreset_mode` is `Disabled`, an env's has ended.
            ValueError: The number of actions is not that of envs, or one is not in the catalog.
        """
        given = self._read(actions)
        buffer = self._batch.new_outputs()
        able, stopped = self._batch.step(buffer)
        if able < self.num_envs:
            self._refuse(able, given)
        if stopped:
            self._resume(buffer)
        outputs = self._batch.as_record(buffer)
        truncated = outputs["truncated"]
        if stopped and self._mode == AutoresetMode.SAME_STEP and truncated.any():
            final = self._finish(outputs, truncated)
            started = self._batch.current_outputs()
            observations, infos = started["observation"], _info(started, self._all_given | final)
        else:
            observations, infos = outputs["observation"], _info(outputs, self._all_given)
        return observations, outputs["reward"], outputs["terminated"], truncated, infos

    def observations(self) -> npt.NDArray[np.float32]:
        """Return the current observations, as `reset` and `step` did."""
        return self._batch.observations.copy()

    def action_masks(self) -> Flags:
        """Return which actions can act now, (num_envs, actions) flags; see `RouterEnv`.

        Raises:
            ResetNeeded: No episode has begun.
        """
        self._require_begun("action_masks")
        return self._batch.masks.astype(np.bool_)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call the method `name` of every env, or return the attribute `name`."""
        return tuple(self.call_one(k, name, *args, **kwargs) for k in range(self.num_envs))

    def call_one(self, k: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call the method `name` of env `k`, or return the attribute `name`."""
        attribute = self.envs[k].get_wrapper_attr(name)
        if not callable(attribute):
            return attribute
        returned = attribute(*args, **kwargs)
        self._batch.read_left(k)
        return returned

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every env, by a list or tuple to its own value each.

        Raises:
            ValueError: The number of values is not that of envs.
        """
        each = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ValueError(f"values has {len(each)} entries: it must have {self.num_envs}, one an env")
        for env, value in zip(self.envs, each, strict=True):
            env.set_wrapper_attr(name, value)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generator of every env, which draws the seed if `reset` gets none."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of every env's generator."""
        return self.get_attr("np_random_seed")

    def render(self) -> tuple[Any, ...]:
        """Return a picture of every env; see `RouterEnv`."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self._batch.close()

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Restore a copied or unpickled env: copies of read-only arrays are not."""
        self.__dict__.update(attributes)
        self._all_envs.flags.writeable = False

    def _require_begun(self, caller: str) -> None:
        self._begun = self._begun or all(env.begun for env in self.envs)
        if not self._begun:
            raise ResetNeeded(f"{caller} needs reset of all envs before it")

    def _envs_to_reset(self, mask: Any) -> Flags:
        """Return the flags of the envs to reset."""
        if mask is None:
            return self._all_envs
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] is {mask!r}: it must be an array of flags, of dtype bool")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask'] has shape {mask.shape}: it must be ({self.num_envs},)")
        if not mask.any():
            raise ValueError("options['reset_mask'] is False for all envs: it must be True for one at least")
        if not mask.all():
            self._require_begun("a reset_mask for some")
        return mask

    def _read(self, actions: npt.ArrayLike) -> npt.NDArray[Any]:
        """Copy the actions to the batch; return them as an array of the given dtype."""
        given, batch = np.asarray(actions), self._batch
        if given.shape != batch.actions.shape:
            raise ValueError(f"actions has shape {given.shape}: it must be {batch.actions.shape}, one an env")
        if given.dtype.kind not in "iu":
            raise ValueError(f"actions has dtype {given.dtype}: it must hold whole numbers")
        self._require_begun("step")
        batch.actions[...] = given
        return given

    def _refuse(self, k: int, given: npt.NDArray[Any]) -> NoReturn:
        """Raise the reason why env `k` cannot step."""
        last = self._batch.masks.shape[1] - 1
        if not 0 <= self._batch.actions[k] <= last:
            raise check_argument.refusal(f"actions[{k}]", int(given[k]), f"a whole number from 0 to {last}")
        raise ResetNeeded(f"step needs reset before it: the episode of env {k} has ended")

    def _resume(self, outputs: Array) -> None:
        """Feed and step the envs whose feed was empty; reset those that had ended before."""
        for k in np.flatnonzero(self._batch.left < 0).tolist():
            if self._batch.left[k] == NEEDS_FEED:
                self._batch.feed_and_step(k, outputs)
            else:
                self._batch.reset_one(k)
                self._batch.write_outputs(k, outputs)

    def _finish(self, outputs: Array, ended: Flags) -> dict[str, Any]:
        """Reset the envs that ended in this step; return how they ended."""
        final_obs, observations = np.full(self.num_envs, None, object), outputs["observation"]
        for k in np.flatnonzero(ended).tolist():
            final_obs[k] = observations[k].copy()
            self._batch.reset_one(k)
        flags = {"_final_obs": ended.copy(), "_final_info": ended.copy()}
        return {"final_obs": final_obs, "final_info": _partial(_info(outputs), ended), **flags}


def _info(outputs: Array, further: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the info of all envs, with `further`; entry by entry, for speed."""
    return {
        "cost": outputs["cost"],
        "wait": outputs["wait"],
        "blocked": outputs["blocked"],
        "messages": outputs["messages"],
        "router": outputs["router"],
        "time": outputs["time"],
        "action_mask": outputs["action_mask"],
        **further,
    }


def _partial(info: dict[str, Any], given: Flags) -> dict[str, Any]:
    """Return the info of the envs in `given`, with 0 for the others, and the flags."""
    for column in info.values():
        column[~given] = 0
    return info | {f"_{name}": given.copy() for name in info}


def _mode(value: AutoresetMode | str) -> AutoresetMode:
    for mode in AutoresetMode:
        if value in (mode, mode.value, mode.name):
            return mode
    allowed = " or ".join(repr(mode.value) for mode in AutoresetMode)
    raise check_argument.refusal("autoreset_mode", value, allowed)


def _seeds(seed: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    """Return a seed for each of `count` envs."""
    if seed is None:
        return [None] * count
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + k for k in range(count)]
    if len(seed) != count:
        raise ValueError(f"seed has {len(seed)} entries: it must have {count}, one for each env")
    return list(seed)
