"""The named policies, and the leaderboard that compares them.

A new policy is a function of a few lines that returns a `pull_env.Policy`, entered into the table by
`@policy`. `tuned` gives the policy that was tuned for a preset.
"""

from __future__ import annotations

from baselines import blind, full, pull, sampling
from baselines.registry import POLICIES, Entry, make, policy
from baselines.rivals import tuned

__all__ = ["POLICIES", "Entry", "blind", "full", "make", "policy", "pull", "sampling", "tuned"]
