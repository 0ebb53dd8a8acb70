"""Fetching memory ahead of its use, in large systems and in batches of envs."""
