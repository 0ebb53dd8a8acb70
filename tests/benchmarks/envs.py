"""Print steps a second of the envs: one, many, on one thread and on two; and what share of PPO's time they take.

    python tests/benchmarks/envs.py [--seconds S]

Actions are drawn at random from the catalog. Each number is the middle of five timings, with their spread:
these are times of this machine at this moment, and comparisons hold within one run only. `no-op` is an env
that returns a constant: what Gymnasium itself allows.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable

import gymnasium
import numpy as np

import pull_env
from pull_env import Scenario
from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv

ID = "pull_env/Router-v0"
BLOCK = 64  # steps, or actions of a batch, drawn beforehand


class NoOp(gymnasium.Env):
    """An env that does nothing: its step costs what copying the answer costs."""

    def __init__(self) -> None:
        """Take over the spaces of `RouterEnv`."""
        env = RouterEnv()
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._seen = np.zeros(env.observation_space.shape, np.float32)

    def reset(self, *, seed=None, options=None):
        """Return a constant."""
        super().reset(seed=seed)
        return self._seen.copy(), {}

    def step(self, action):
        """Return a constant."""
        return self._seen.copy(), 0.0, False, False, {}


def system(n: int) -> Scenario:
    """Return `two-speeds` with n servers."""
    scenario = pull_env.load_scenario("two-speeds")
    pools = tuple(dataclasses.replace(pool, size=n // 2) for pool in scenario.pools)
    return dataclasses.replace(scenario, pools=pools)


def rates(block: Callable[[], None], steps: int, seconds: float) -> str:
    """Return how many steps a second `block` makes, which takes `steps` steps."""
    block()
    measured = []
    for _ in range(5):
        blocks, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            block()
            blocks += 1
        measured.append(blocks * steps / (time.perf_counter() - start))
    return f"{statistics.median(measured):12,.0f} ({min(measured):,.0f} to {max(measured):,.0f})"


def time_one(env: gymnasium.Env, seconds: float) -> str:
    """Time a single env; it restarts where an episode ends, as whoever uses it does."""
    actions = np.random.default_rng(0).integers(env.action_space.n, size=10 * BLOCK).tolist()

    def block() -> None:
        step = env.step
        for action in actions:
            if step(action)[3]:
                env.reset()

    env.reset(seed=0)
    return rates(block, len(actions), seconds)


def time_many(envs: gymnasium.vector.VectorEnv, seconds: float) -> str:
    """Time a batch of envs, restarts included."""
    generator = np.random.default_rng(0)
    actions = [
        generator.integers(envs.single_action_space.n, size=envs.num_envs)
        for _ in range(max(1, BLOCK * 256 // envs.num_envs))
    ]

    def block() -> None:
        for each in actions:
            envs.step(each)

    envs.reset(seed=0)
    shown = rates(block, len(actions) * envs.num_envs, seconds)
    envs.close()
    return shown


def share_of_ppo(n_envs: int = 256, updates: int = 4) -> str:
    """Return the share of PPO's time that the envs take, one thread, two layers of 64."""
    import torch
    from stable_baselines3 import PPO

    from pull_env.sb3 import VecRouter

    class Timed(VecRouter):
        """Adds up the time in `step_wait`."""

        spent = 0.0

        def step_wait(self):
            """Step, and look at the clock."""
            start = time.perf_counter()
            answer = super().step_wait()
            self.spent += time.perf_counter() - start
            return answer

    torch.set_num_threads(1)
    envs = Timed("two-speeds", n_envs=n_envs, seed=0, workers=1)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=2048, seed=0, device="cpu")
    model.learn(64 * n_envs)
    envs.spent, start, steps = 0.0, time.perf_counter(), updates * 64 * n_envs
    model.learn(steps, reset_num_timesteps=False)
    total = time.perf_counter() - start
    return f"{envs.spent / total:.1%} of {total:.1f} s ({steps / total:,.0f} steps a second)"


def main() -> None:
    """Time everything, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds a timing (default: 1)")
    seconds = parser.parse_args().seconds
    print(f"{'no-op':44}{time_one(NoOp(), seconds)}", flush=True)
    for n in (100, 10_000):
        scenario = system(n)
        ones = {
            "one, unwrapped": RouterEnv(scenario),
            "one, gymnasium.make": gymnasium.make(ID, scenario=scenario),
        }
        for name, env in ones.items():
            print(f"{f'n = {n:,}: {name}':44}{time_one(env, seconds)}", flush=True)
        sync = gymnasium.make_vec(ID, num_envs=256, vectorization_mode="sync", scenario=scenario)
        print(f"{f'n = {n:,}: 256, SyncVectorEnv':44}{time_many(sync, seconds)}", flush=True)
        for num_envs in (256, 4096):
            for workers in (1, 2):
                envs = RouterVectorEnv(num_envs, scenario=scenario, workers=workers)
                name = f"n = {n:,}: {num_envs}, threads: {workers}"
                print(f"{name:44}{time_many(envs, seconds)}", flush=True)
    print(f"{'time of PPO in 256 envs, n = 100':44}{share_of_ppo()}")


if __name__ == "__main__":
    main()
