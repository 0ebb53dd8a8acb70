"""Exact measures of small systems: states, events, stationary distribution."""

from pull_env.theory.exact.solver import Exact, solve

__all__ = ["Exact", "solve"]
