"""Stolyar 2017: waiting vanishes under PULL."""
