"""Search for small networks by CMA-ES."""
