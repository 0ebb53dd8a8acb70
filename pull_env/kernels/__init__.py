"""The simulator: numpy arrays in, numpy arrays out, compiled by numba; it neither checks nor allocates.

Python (`pull_env.simulation.simulator`) validates, allocates and seeds; the kernels only advance a system in
place.
Nothing in this folder imports anything but numpy, numba and the standard library, and a test guards that.
"""
