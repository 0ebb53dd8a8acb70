"""Cloning: teach an actor the choices of a policy, and its critic what they lead to, before it learns itself.

Learning then begins where a person would stop (Pomerleau, Neural Computation 3 (1991), 88-97).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agents.training.action_set import Offer
from pull_env.envs.policy_driver import Driver
from pull_env.envs.router import RouterEnv
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

UPDATES, BATCH, RATE = 2000, 512, 1e-3  # gradient steps, examples of each, step of Adam


@dataclass(frozen=True)
class Examples:
    """What a policy saw and did; E examples in the order of time, those of all envs side by side."""

    observations: torch.Tensor  # (E, L) float32
    actions: torch.Tensor  # (E,) int64
    masks: npt.NDArray[np.bool_]  # (E, A)  which actions were real
    returns: torch.Tensor  # (E,) float32  discounted rewards from here on, as the learner scales them


def check_start(policy: Policy, scenario: Scenario, offer: Offer) -> None:
    """Refuse a policy whose choices are not in the catalog, or whose servers announce themselves otherwise.

    Raises:
        ValueError: It is one.
    """
    try:
        Driver(policy, RouterEnv(scenario, **offer.arguments()))
    except ValueError as error:
        raise ValueError(f"start is {policy.name}, which cannot be taught: {error}") from None


def clone(model: Any, policy: Policy, customers: int, noise: float, seed: int) -> float:
    """Teach `model` the choices of `policy` in the model's own environments.

    Args:
        model: A `PPO` or `MaskablePPO` whose env is a `VecNormalize` of a `VecRouter`.
        policy: Each step of it stands in the catalog.
        customers: How many to watch, a tenth of them to test with.
        noise: Share of the choices taught as random ones among the real.
        seed: Of the policy's and the teacher's own choices.

    Returns:
        The share of choices that the model's best action then agrees with, of examples it was not taught.
    """
    rng = np.random.default_rng(seed)
    examples = watch(model, policy, customers, seed)
    count = len(examples.actions)
    taught = count - count // 10  # the last to come are not taught
    labels = _with_noise(examples, noise, rng)
    optimizer = torch.optim.Adam(model.policy.parameters(), RATE)
    for _ in range(UPDATES):
        chosen = rng.integers(taught, size=BATCH)
        values, likelihood, _ = _evaluate(model, examples, chosen, labels[chosen])
        loss = -likelihood.mean() + 0.5 * (values.flatten() - examples.returns[chosen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
        optimizer.step()
    return _agreement(model, examples, np.arange(taught, count))


def watch(model: Any, policy: Policy, customers: int, seed: int) -> Examples:
    """Let `policy` play in the model's environments, and return what it saw and did, and what came of it."""
    env, masked = model.env, hasattr(model.policy.action_dist, "apply_masking")
    driver = Driver(policy, env.get_attr("unwrapped", 0)[0], seed)
    seen, observations, actions, rewards, ends, masks = env.reset(), [], [], [], [], []
    for _ in range(max(2, customers // env.num_envs)):
        masks.append(np.stack(env.env_method("action_masks")) if masked else _all_real(env))
        chosen, _ = driver.predict(seen)
        observations.append(seen)
        actions.append(chosen)
        seen, _, done, _ = env.step(chosen)  # scales of rewards are learned on the way
        rewards.append(env.get_original_reward())
        ends.append(done)
    scaled = np.stack(rewards) / np.sqrt(env.ret_rms.var + env.epsilon)
    return Examples(
        torch.as_tensor(np.concatenate(observations)),
        torch.as_tensor(np.concatenate(actions)),
        np.concatenate(masks),
        torch.as_tensor(discounted(scaled, np.stack(ends), model.gamma).ravel(), dtype=torch.float32),
    )


def discounted(
    rewards: npt.NDArray[np.floating[Any]], ends: npt.NDArray[np.bool_], gamma: float
) -> npt.NDArray[np.float64]:
    """Return the discounted sum of rewards from each step on, (steps, envs); the task goes on without end.

    What comes after an episode, or after the last step, is taken to be as good as the mean.
    """
    beyond = rewards.mean() / max(1.0 - gamma, 1e-6)
    returns, following = np.empty(rewards.shape), np.full(rewards.shape[1], beyond)
    for k in reversed(range(len(rewards))):
        following = rewards[k] + gamma * np.where(ends[k], beyond, following)
        returns[k] = following
    return returns


def _all_real(env: Any) -> npt.NDArray[np.bool_]:
    return np.ones((env.num_envs, env.action_space.n), np.bool_)


def _with_noise(examples: Examples, noise: float, rng: np.random.Generator) -> torch.Tensor:
    """Return the actions with a share of them replaced by random real ones."""
    drawn = np.where(examples.masks, rng.random(examples.masks.shape), -1.0).argmax(axis=1)
    replaced = rng.random(len(drawn)) < noise
    return torch.as_tensor(np.where(replaced, drawn, examples.actions.numpy()))


def _evaluate(model: Any, examples: Examples, chosen: Any, actions: torch.Tensor) -> Any:
    masked = hasattr(model.policy.action_dist, "apply_masking")
    extra = {"action_masks": examples.masks[chosen]} if masked else {}
    return model.policy.evaluate_actions(examples.observations[chosen], actions, **extra)


def _agreement(model: Any, examples: Examples, chosen: npt.NDArray[np.int64]) -> float:
    masked = hasattr(model.policy.action_dist, "apply_masking")
    extra = {"action_masks": examples.masks[chosen]} if masked else {}
    best, _ = model.predict(examples.observations[chosen].numpy(), deterministic=True, **extra)
    return float((best == examples.actions[chosen].numpy()).mean())
