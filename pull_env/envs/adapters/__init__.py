"""The envs as other libraries want them: Stable-Baselines3, PettingZoo, MO-Gymnasium."""
