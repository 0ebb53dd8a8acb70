"""Brightwell, Luczak 2012: the supermarket model up to load one."""
