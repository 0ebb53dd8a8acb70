"""Slow twins and exact values that the simulator is checked against."""
