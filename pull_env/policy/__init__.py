"""Policies as data: steps, pull protocols, networks, and catalogs of actions."""
