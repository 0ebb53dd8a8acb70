"""The adapter for Stable-Baselines3 under its short name, `pull_env.sb3`."""

from pull_env.envs.adapters.stable_baselines3 import VecRouter

__all__ = ["VecRouter"]
