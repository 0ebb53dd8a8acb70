"""Routers for large server systems, scored on waiting and message cost.

    import gymnasium, pull_env
    result = pull_env.simulate("two-speeds", "balanced(2)")    # result.cost.mean, .wait.low, .messages ...
    env = gymnasium.make("pull_env/Router-v0", scenario="two-speeds")

Run           simulate(scenario, policy), evaluate(agent, scenario), play(policy, env), Driver -> Result
Theory        theory.predict(scenario, policy), theory.exact, theory.bounds, theory.optimum
Envs          gymnasium.make("pull_env/Router-v0"), also Dispatch-v0, Control-v0, MORouter-v0; aec_env,
              parallel_env (PettingZoo); pull_env.sb3.VecRouter (Stable-Baselines3)
Scenarios     load_scenario, as_scenario, scenario_names, Scenario, Pool, Prices
  arrivals    Batches, Bursts, Day, HotRouter, Modulated, Renewal, Trace
  service     Deterministic, Empirical, Erlang, Exponential, Hyperexponential, Lognormal, Pareto, Weibull
  faults      Drain, Faults, News
Policies      as_policy, load_policy, save_policy, Policy, Announce, Network
  steps       Cycle, Inspect, Probe, Recall, Search, Send, Take
Seeds         spawn_seeds

A scenario is a `Scenario`, the name of a preset, a path to a TOML file or a mapping; a policy is a `Policy`,
a name such as "balanced(2)" or "tuned", a path or a mapping. `python -m pull_env` lists scenarios and
policies; the named policies are in the package `baselines`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pull_env.envs.registration  # noqa: F401  makes the environments known to Gymnasium
from pull_env.policy.lookup import as_policy
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
    from pull_env.envs.adapters.multi_agent import aec_env, parallel_env
    from pull_env.envs.evaluate import evaluate
    from pull_env.envs.policy_driver import Driver, play
    from pull_env.simulation.results import Result
    from pull_env.simulation.simulate import simulate

__version__ = "0.1.0"

# fmt: off
__all__ = [
    "Announce", "Batches", "Bursts", "Cycle", "Day", "Deterministic", "Drain", "Driver", "Empirical",
    "Erlang", "Exponential", "Faults", "HotRouter", "Hyperexponential", "Inspect", "Lognormal",
    "Modulated", "Network", "News", "Pareto", "Policy", "Pool", "Prices", "Probe", "Recall", "Renewal",
    "Result", "Scenario", "Search", "Send", "Take", "Trace", "Weibull", "aec_env", "as_policy",
    "as_scenario", "evaluate", "load_policy", "load_scenario", "parallel_env", "play", "save_policy",
    "scenario_names", "simulate", "spawn_seeds", "theory",
]
# fmt: on

_LAZY = {  # these import the compiler: 0.3 s
    "Driver": "pull_env.envs.policy_driver",
    "Result": "pull_env.simulation.results",
    "aec_env": "pull_env.envs.adapters.multi_agent",
    "evaluate": "pull_env.envs.evaluate",
    "parallel_env": "pull_env.envs.adapters.multi_agent",
    "play": "pull_env.envs.policy_driver",
    "simulate": "pull_env.simulation.simulate",
}


def __getattr__(name: str) -> Any:
    """Import a public name that needs the compiler, or `theory`, on first use."""
    if name == "theory":
        return import_module("pull_env.theory")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    from pull_env.scenario.validation import nearest

    near = nearest(name, __all__)
    hint = f": did you mean {near!r}?" if near else ""
    raise AttributeError(f"module 'pull_env' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """List the public names, those that are imported on first use included."""
    return [*__all__, "__version__"]
