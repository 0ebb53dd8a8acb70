"""Learned routers: `python -m agents.training.train`, `python -m agents.zoo.score`. Run from a checkout."""
