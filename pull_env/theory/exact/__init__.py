"""Exact measures of small systems under any policy: states, events, and the stationary distribution."""

from pull_env.theory.exact.solver import Exact, solve

__all__ = ["Exact", "solve"]
