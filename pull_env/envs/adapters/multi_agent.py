"""`aec_env` and `parallel_env`: each router an agent. PettingZoo is imported when one is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pull_env.scenario.scenario import ScenarioLike

if TYPE_CHECKING:
    from pull_env.envs.adapters.pettingzoo import AECRouters, ParallelRouters


def aec_env(scenario: ScenarioLike = "two-speeds", *, reward: str = "shared", **env: Any) -> AECRouters:
    """Return a PettingZoo env in which each router is an agent, `router_0` and so on, and acts when asked.

    The agents act in the order of the customers, so one may act twice in a row, and another not for long. The
    rewards of all steps since an agent's last action add up for its next `last()`; at the end every agent has
    a dead step, which brings the rest. An agent's info tells what its last customer has cost, and the mask as
    it was when the agent was last asked.

    Args:
        scenario: A preset's name, the path of a TOML file, a mapping, or a `Scenario`.
        reward: `shared`: each agent gets minus the cost of every customer, so that each one's rewards sum to
            -N x cost of the run; `own`: of its own customers only, so that all agents' rewards together do.
        **env: Further arguments of `pull_env/Router-v0`.

    Raises:
        ModuleNotFoundError: PettingZoo is not installed.
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """
    from pull_env.envs.adapters.pettingzoo import AECRouters
    from pull_env.envs.router import RouterEnv

    return AECRouters(RouterEnv(scenario, **env), reward)


def parallel_env(
    scenario: ScenarioLike = "two-speeds", *, reward: str = "shared", **env: Any
) -> ParallelRouters:
    """Return a PettingZoo env in which all routers set a mixture of steps, each its own, once a period.

    Actions and observations are those of `pull_env/Control-v0`, the latter over the agent's own customers; an
    agent that had none in the period sees what its router knows at the end of it.

    Args:
        scenario: A preset's name, the path of a TOML file, a mapping, or a `Scenario`.
        reward: `shared`: each agent gets minus the mean cost of the period's customers; `own`: its own
            customers' part of that, so that the rewards of all agents together are the shared one.
        **env: Further arguments of `pull_env/Control-v0`.

    Raises:
        ModuleNotFoundError: PettingZoo is not installed.
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """
    from pull_env.envs.adapters.pettingzoo import ParallelRouters
    from pull_env.envs.control import ControlEnv

    return ParallelRouters(ControlEnv(scenario, **env), reward)
