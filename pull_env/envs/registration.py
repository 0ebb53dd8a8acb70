"""The ids by which Gymnasium finds the envs; `import pull_env` runs this, so the compiler must not load."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

ENVS: dict[str, dict[str, Any]] = {  # arguments of `register` by id
    "pull_env/Router-v0": {"entry_point": "pull_env.envs.router:RouterEnv"},
    "pull_env/Dispatch-v0": {"entry_point": "pull_env.envs.dispatch:DispatchEnv"},
    "pull_env/Control-v0": {"entry_point": "pull_env.envs.control:ControlEnv"},
}


def register_envs() -> None:
    """Register what is not registered yet: a second import must neither warn nor replace what a user set."""
    for name, arguments in ENVS.items():
        if name not in registry:
            register(name, **arguments)


register_envs()
