"""Learned routers: `python -m agents.train`, `python -m agents.score`. Run from a checkout."""
