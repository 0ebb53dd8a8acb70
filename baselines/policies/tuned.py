"""The policies that `baselines.tune` found for the presets."""

from __future__ import annotations

from pathlib import Path

from pull_env.policy.policy import Policy, load_policy
from pull_env.scenario.files import read_toml
from pull_env.scenario.scenario import Scenario

TUNED = Path(__file__).with_name("tuned_presets")


def tuned_names() -> tuple[str, ...]:
    """Return the presets that have a tuned policy, in alphabetical order."""
    return tuple(sorted(path.stem for path in TUNED.glob("*.toml")))


def tuned(scenario: Scenario) -> Policy | None:
    """Return the policy tuned for exactly `scenario`; None if there is none.

    >>> from pull_env import load_scenario
    >>> tuned(load_scenario("two-speeds")).name
    'tuned'
    """
    if scenario.name not in tuned_names():
        return None
    path = TUNED / f"{scenario.name}.toml"
    about = read_toml(path, ValueError)["about"]
    return load_policy(path) if about["scenario"]["sha256"] == scenario.digest else None


def require_tuned(scenario: Scenario) -> Policy:
    """Return the policy tuned for `scenario`.

    Raises:
        ValueError: There is none; the message tells how to make one.
    """
    policy = tuned(scenario)
    if policy is None:
        known = ", ".join(tuned_names())
        raise ValueError(
            f"policy is 'tuned': none was tuned for this {scenario.name}, only for the presets {known}; "
            "python -m baselines.tune makes one, whose file is a policy"
        )
    return policy
