"""Searching networks by CMA-ES."""
