"""Trained routers: kept in `trained`, and trained again."""
