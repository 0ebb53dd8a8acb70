"""What knows the compiler: decorators, instructions, records, internals of numba."""
