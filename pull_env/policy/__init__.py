"""Policies as data: chains of steps, pull protocols, networks, and the catalog of actions."""
