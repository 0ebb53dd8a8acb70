"""Steps and observations of envs, and of batches of envs."""
