"""The ids by which Gymnasium finds the envs; `import pull_env` runs this, so the compiler must not load."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

ENTRY_POINTS = {
    "pull_env/Router-v0": "pull_env.envs.router:RouterEnv",
    "pull_env/Dispatch-v0": "pull_env.envs.dispatch:DispatchEnv",
    "pull_env/Control-v0": "pull_env.envs.control:ControlEnv",
}


def register_envs() -> None:
    """Register what is not registered yet: a second import must neither warn nor replace what a user set."""
    for name, entry_point in ENTRY_POINTS.items():
        if name not in registry:
            register(name, entry_point=entry_point)


register_envs()
