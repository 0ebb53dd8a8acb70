"""Imitation: train actor and critic on the choices and returns of a policy.

Learning by reinforcement then starts from a hand-made or tuned policy (Pomerleau, Neural Computation 3
(1991), 88-97).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agents.training.action_set import ActionSet
from pull_env.envs.policy_driver import Driver
from pull_env.envs.router import RouterEnv
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

UPDATES, BATCH, RATE = 2000, 512, 1e-3  # gradient steps, examples of each, learning rate of Adam


@dataclass(frozen=True)
class Examples:
    """What a policy saw and did: E examples in order of time, all envs together."""

    observations: torch.Tensor  # (E, L) float32
    actions: torch.Tensor  # (E,) int64
    masks: npt.NDArray[np.bool_]  # (E, A)  which actions were real
    returns: torch.Tensor  # (E,) float32  discounted rewards from here on, as the learner scales them


def check_imitable(policy: Policy, scenario: Scenario, action_set: ActionSet) -> None:
    """Refuse a policy whose choices or pull protocol an action set does not have.

    Raises:
        ValueError: The policy is refused.
    """
    try:
        Driver(policy, RouterEnv(scenario, **action_set.env_arguments()))
    except ValueError as error:
        raise ValueError(f"start is {policy.name}, which cannot be taught: {error}") from None


def imitate(
    model: Any, policy: Policy, customers: int, noise: float, seed: int, updates: int = UPDATES
) -> float:
    """Train `model` on the choices of `policy` in the model's own environments.

    Args:
        model: A `PPO` or `MaskablePPO` whose env is a `VecNormalize` of a `VecRouter`.
        policy: Each of its steps is in the catalog.
        customers: How many to watch, a tenth of them for testing.
        noise: Share of the choices that are replaced by random real ones.
        seed: Seeds the policy's own choices and the training.
        updates: Gradient steps.

    Returns:
        The share of test choices with which the model's best action agrees.
    """
    rng = np.random.default_rng(seed)
    examples = watch(model, policy, customers, seed)
    count = len(examples.actions)
    trained_on = count - count // 10  # the last are for testing
    labels = _with_noise(examples, noise, rng)
    optimizer = torch.optim.Adam(model.policy.parameters(), RATE)
    for _ in range(updates):
        batch = rng.integers(trained_on, size=BATCH)
        masks = _masks(model, examples, batch)
        values, likelihood, _ = model.policy.evaluate_actions(
            examples.observations[batch], labels[batch], **masks
        )
        loss = -likelihood.mean() + 0.5 * (values.flatten() - examples.returns[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
        optimizer.step()
    test = np.arange(trained_on, count)
    masks = _masks(model, examples, test)
    best, _ = model.predict(examples.observations[test].numpy(), deterministic=True, **masks)
    return float((best == examples.actions[test].numpy()).mean())


def watch(model: Any, policy: Policy, customers: int, seed: int) -> Examples:
    """Let `policy` act in the model's environments; return what it saw and did."""
    env, masked = model.env, _is_masked(model)
    driver = Driver(policy, env.get_attr("unwrapped", 0)[0], seed)
    observation, observations, actions, rewards, ends, masks = env.reset(), [], [], [], [], []
    all_real = np.ones((env.num_envs, env.action_space.n), np.bool_)
    for _ in range(max(2, customers // env.num_envs)):
        masks.append(np.stack(env.env_method("action_masks")) if masked else all_real)
        action, _ = driver.predict(observation)
        observations.append(observation)
        actions.append(action)
        observation, _, done, _ = env.step(action)  # which also learns the scale of rewards
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
    """Return discounted sums of rewards from each step on, (steps, envs).

    Rewards after the end of an episode, or of the steps, are taken to be the mean reward.
    """
    beyond = rewards.mean() / max(1.0 - gamma, 1e-6)
    returns, following = np.empty(rewards.shape), np.full(rewards.shape[1], beyond)
    for k in reversed(range(len(rewards))):
        following = rewards[k] + gamma * np.where(ends[k], beyond, following)
        returns[k] = following
    return returns


def _with_noise(examples: Examples, noise: float, rng: np.random.Generator) -> torch.Tensor:
    """Return the actions with a share of them replaced by random real ones."""
    drawn = np.where(examples.masks, rng.random(examples.masks.shape), -1.0).argmax(axis=1)
    replaced = rng.random(len(drawn)) < noise
    return torch.as_tensor(np.where(replaced, drawn, examples.actions.numpy()))


def _is_masked(model: Any) -> bool:
    return hasattr(model.policy.action_dist, "apply_masking")


def _masks(model: Any, examples: Examples, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    return {"action_masks": examples.masks[rows]} if _is_masked(model) else {}
