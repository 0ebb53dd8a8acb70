"""The named policies, the leaderboard that compares them, and their tuner.

A new policy is a function of a few lines that returns a `pull_env.Policy`, registered by `@policy`; `tuned`
returns the policy tuned for a preset.
"""

from __future__ import annotations

from importlib import import_module

from baselines.policies.registry import POLICIES, Entry, make, policy
from baselines.policies.tuned import tuned

__all__ = ["POLICIES", "Entry", "make", "policy", "tuned"]

for family in ("oblivious", "full_information", "pull", "sampling"):  # the order of the table
    import_module(f"baselines.policies.{family}")
