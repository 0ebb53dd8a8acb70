"""Learned routers: `python -m agents --help`. Run from a checkout.

Folders import in one direction: training <- search <- general <- zoo <- report.
"""
