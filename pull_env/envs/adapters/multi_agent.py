"""`aec_env` and `parallel_env`, which import PettingZoo when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pull_env.scenario.scenario import ScenarioLike

if TYPE_CHECKING:
    from pull_env.envs.adapters.pettingzoo import AECRouters, ParallelRouters


def aec_env(scenario: ScenarioLike = "two-speeds", *, reward: str = "shared", **env: Any) -> AECRouters:
    """Return a PettingZoo env in which each router acts for its customers.

    The agents, `router_0` and so on, act in the order of the customers, so one may act twice in a row, and
    another not for long. The rewards of all steps since an agent's last action add up for its next `last()`;
    at the end every agent has a dead step with the rest. An agent's info holds the cost of its last customer,
    and the mask at the arrival of its current one.

    Args:
        scenario: A preset's name, the path of a TOML file, a mapping, or a `Scenario`.
        reward: `shared`: each agent gets minus the cost of every customer, so that its rewards sum to -N x
            cost of the run; `own`: of its own customers only, so that the rewards of all agents do.
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
    """Return a PettingZoo env in which routers set their mixtures once per period.

    Actions and observations are those of `pull_env/Control-v0`, the latter over the agent's own customers; an
    agent without customers in the period observes what its router knows at the end of it.

    Args:
        scenario: A preset's name, the path of a TOML file, a mapping, or a `Scenario`.
        reward: `shared`: each agent gets minus the mean cost of the period's customers; `own`: its own
            customers' part of that, so that the rewards of all agents sum to the shared one.
        **env: Further arguments of `pull_env/Control-v0`.

    Raises:
        ModuleNotFoundError: PettingZoo is not installed.
        ValueError: An argument is not allowed; the message names it, its value, and what is.
    """
    from pull_env.envs.adapters.pettingzoo import ParallelRouters
    from pull_env.envs.control import ControlEnv

    return ParallelRouters(ControlEnv(scenario, **env), reward)
