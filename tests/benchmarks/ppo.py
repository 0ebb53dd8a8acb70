"""Print what share of PPO's time the envs take: 256 of them, n = 100, one thread, two layers of 64.

    python tests/benchmarks/ppo.py

`python -m pull_env bench` measures the envs by themselves.
"""

from __future__ import annotations

import time

import torch
from stable_baselines3 import PPO

from pull_env.envs.adapters.stable_baselines3 import VecRouter

ENVS, STEPS, UPDATES = 256, 64, 4


class Timed(VecRouter):
    """Adds up the time in `step_wait`."""

    spent = 0.0

    def step_wait(self):
        """Step, and add the time."""
        start = time.perf_counter()
        answer = super().step_wait()
        self.spent += time.perf_counter() - start
        return answer


def main() -> None:
    """Train, and print the share."""
    torch.set_num_threads(1)
    envs = Timed("two-speeds", n_envs=ENVS, seed=0, workers=1)
    model = PPO("MlpPolicy", envs, n_steps=STEPS, batch_size=2048, seed=0, device="cpu")
    model.learn(STEPS * ENVS)
    envs.spent, start, steps = 0.0, time.perf_counter(), UPDATES * STEPS * ENVS
    model.learn(steps, reset_num_timesteps=False)
    total = time.perf_counter() - start
    print(f"{envs.spent / total:.1%} of {total:.1f} s ({steps / total:,.0f} steps a second)")


if __name__ == "__main__":
    main()
