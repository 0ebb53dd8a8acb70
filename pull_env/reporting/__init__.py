"""Rows, descriptions and tables of what was measured."""
