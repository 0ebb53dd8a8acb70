"""Routers for large server systems, learned and classical: simulated exactly, scored on waiting and messages.

See `simulate` for the simulator, `gymnasium.make("pull_env/Router-v0")` for the environment, `baselines.make`
for policies.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pull_env.envs.registration  # noqa: F401  makes the environments known to Gymnasium
from pull_env.policy.policy import (
    Announce,
    Cycle,
    Inspect,
    Network,
    Policy,
    Probe,
    Recall,
    Search,
    Send,
    Take,
    load_policy,
    save_policy,
)
from pull_env.scenario.arrivals import Batches, Bursts, Day, HotRouter, Modulated, Renewal
from pull_env.scenario.faults import Drain, Faults, News
from pull_env.scenario.laws import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Pareto,
    Weibull,
)
from pull_env.scenario.scenario import (
    Pool,
    Prices,
    Scenario,
    Trace,
    as_scenario,
    load_scenario,
    scenario_names,
)
from pull_env.simulation.seeds import spawn_seeds

if TYPE_CHECKING:
    from pull_env import theory
    from pull_env.envs.adapters.pettingzoo import aec_env, parallel_env
    from pull_env.envs.evaluate import evaluate
    from pull_env.envs.policy_driver import Driver, play
    from pull_env.simulation.results import Result
    from pull_env.simulation.simulate import simulate

__version__ = "0.1.0"

__all__ = [
    "Announce",
    "Batches",
    "Bursts",
    "Cycle",
    "Day",
    "Deterministic",
    "Drain",
    "Driver",
    "Empirical",
    "Erlang",
    "Exponential",
    "Faults",
    "HotRouter",
    "Hyperexponential",
    "Inspect",
    "Lognormal",
    "Modulated",
    "Network",
    "News",
    "Pareto",
    "Policy",
    "Pool",
    "Prices",
    "Probe",
    "Recall",
    "Renewal",
    "Result",
    "Scenario",
    "Search",
    "Send",
    "Take",
    "Trace",
    "Weibull",
    "aec_env",
    "as_scenario",
    "evaluate",
    "load_policy",
    "load_scenario",
    "parallel_env",
    "play",
    "save_policy",
    "scenario_names",
    "simulate",
    "spawn_seeds",
    "theory",
]

_LAZY = {  # they import the compiler: 0.3 s
    "Driver": "pull_env.envs.policy_driver",
    "Result": "pull_env.simulation.results",
    "aec_env": "pull_env.envs.adapters.pettingzoo",
    "evaluate": "pull_env.envs.evaluate",
    "parallel_env": "pull_env.envs.adapters.pettingzoo",
    "play": "pull_env.envs.policy_driver",
    "simulate": "pull_env.simulation.simulate",
}


def __getattr__(name: str) -> Any:
    """Import what needs the compiler, and `theory`, when it is asked for."""
    if name == "theory":
        return import_module("pull_env.theory")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pull_env' has no attribute {name!r}")
