"""The arrays and records that the kernels read and write."""
