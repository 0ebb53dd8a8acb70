"""What knows the compiler: decorators, intrinsics, records at addresses."""
