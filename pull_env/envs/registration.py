"""The ids by which Gymnasium finds the envs; `import pull_env` runs this, so the compiler must not load."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

ENTRY_POINTS = {"pull_env/Router-v0": "pull_env.envs.router:RouterEnv"}
VECTOR_ENTRY_POINTS = {"pull_env/Router-v0": "pull_env.envs.vector:RouterVectorEnv"}


def register_envs() -> None:
    """Register what is not registered yet: a second import must neither warn nor replace what a user set."""
    for name, entry_point in ENTRY_POINTS.items():
        if name not in registry:
            register(name, entry_point=entry_point, vector_entry_point=VECTOR_ENTRY_POINTS.get(name))


register_envs()
