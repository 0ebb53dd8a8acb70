"""A step of an env, and of a batch of envs."""
