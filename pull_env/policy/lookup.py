"""`as_policy`: a policy from whatever names it, wherever a policy is accepted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pull_env.policy.policy import Policy, PolicyError, load_policy
from pull_env.policy.steps import check_policy
from pull_env.scenario.scenario import Scenario

PolicyLike = Policy | str | os.PathLike[str] | Mapping[str, Any]


def as_policy(source: PolicyLike, scenario: Scenario | None = None) -> Policy:
    """Return the policy that `source` is, names, points to, or describes.

    Args:
        source: A `Policy`; a name such as `balanced(2)`; `tuned`, the policy tuned for `scenario`; the path
            of a TOML file; or what `Policy.to_dict` returns.
        scenario: The system that `tuned` is for.

    Raises:
        ValueError: `source` is none of these, or not valid.

    >>> as_policy("jbt(3)").announce.threshold
    3
    """
    if isinstance(source, Policy):
        return source
    if isinstance(source, Mapping):
        return Policy.from_dict(source)
    if not isinstance(source, str | os.PathLike):
        allowed = "a Policy, a name such as 'balanced(2)', 'tuned', a path to a TOML file, or a mapping"
        raise check_policy.refusal("policy", source, allowed)
    path = Path(source)
    if path.suffix == ".toml" or len(path.parts) > 1 or path.is_file():
        return load_policy(path)
    baselines = named_policies()
    if source == "tuned":
        if scenario is None:
            raise PolicyError("policy is 'tuned': each preset has its own, so it needs the scenario")
        policy: Policy = baselines.policies.tuned.require_tuned(scenario)
        return policy
    policy = baselines.make(os.fspath(source))
    return policy


def named_policies() -> Any:
    """Import `baselines`, the only import against the direction of the folders."""
    return import_module("baselines")
