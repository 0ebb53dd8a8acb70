"""The ids of the envs in Gymnasium.

`import pull_env` runs this, so it must not import numba.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

from pull_env.scenario.scenario import scenario_names

ROUTER: dict[str, Any] = {
    "entry_point": "pull_env.envs.router:RouterEnv",
    "vector_entry_point": "pull_env.envs.vector:RouterVectorEnv",
}


def preset_id(name: str) -> str:
    """Return the id of the env of a preset: `pull_env/TwoSpeeds-v0` for `two-speeds`."""
    return f"pull_env/{''.join(word.capitalize() for word in name.split('-'))}-v0"


ENVS: dict[str, dict[str, Any]] = {  # arguments of `register`, by id
    "pull_env/Router-v0": ROUTER,
    "pull_env/MORouter-v0": {
        "entry_point": "pull_env.envs.adapters.multi_objective:MORouterEnv",
        "disable_env_checker": True,  # it refuses a vector as reward
    },
    "pull_env/Dispatch-v0": {"entry_point": "pull_env.envs.dispatch:DispatchEnv"},
    "pull_env/Control-v0": {"entry_point": "pull_env.envs.control:ControlEnv"},
    **{preset_id(name): {**ROUTER, "kwargs": {"scenario": name}} for name in scenario_names()},
}


def register_envs() -> None:
    """Register new ids only: a second import must not warn or replace any."""
    for name, arguments in ENVS.items():
        if name not in registry:
            register(name, **arguments)


register_envs()
