"""Trained routers: kept, exported, scored, trained again."""
