"""Gymnasium envs around the kernels, by the ids in `registration`.

Nothing is imported here: registering the ids must not load the compiler.
"""
