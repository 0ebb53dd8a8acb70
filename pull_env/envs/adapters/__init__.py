"""The envs for other libraries: Stable-Baselines3, PettingZoo, MO-Gymnasium."""
