"""The catalog: the steps a learned router chooses from, indexed by actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pull_env.policy.policy import (
    Last,
    PolicyError,
    Probe,
    Recall,
    Send,
    Step,
    Take,
    check_steps,
    step_from_dict,
)
from pull_env.policy.steps import check_policy
from pull_env.scenario.scenario import Scenario

MOST_PROBED = 8
RESERVATION_WAITS = (0.0, 0.5, 1.0, 2.0)  # in mean service times


def mean_service_time(scenario: Scenario) -> float:
    """Return n / capacity, the mean service time weighted by rate."""
    return scenario.servers / scenario.capacity


def default_catalog(
    scenario: Scenario, reservation_waits: Sequence[float] = RESERVATION_WAITS
) -> tuple[Step, ...]:
    """Return the 3J + w (J + 1) steps for J pools and w reservation waits.

    Take, recall and send in every pool; then probe in every pool, and over all servers in proportion to their
    rates, at every reservation wait.

    Args:
        scenario: The system.
        reservation_waits: In mean service times.
    """
    pools = range(len(scenario.pools))
    ranges = [*({"pool": pool} for pool in pools), {"weights": "rate"}]
    waits = [wait * mean_service_time(scenario) for wait in reservation_waits]
    return (
        *(Take(pool) for pool in pools),
        *(Recall(pool) for pool in pools),
        *(Send(pool) for pool in pools),
        *(
            Probe(**servers, at_most=MOST_PROBED, stop_at=wait, rank="delay")  # type: ignore[arg-type]
            for servers in ranges
            for wait in waits
        ),
    )


def as_catalog(catalog: Sequence[Step | Mapping[str, Any]] | None, scenario: Scenario) -> tuple[Step, ...]:
    """Return the steps that `catalog` holds or describes; None gives the default.

    Raises:
        PolicyError: It holds no step, or one that is not valid or names a pool that the scenario does not
            have.
    """
    if catalog is None:
        return default_catalog(scenario)
    steps = check_policy.items("catalog", catalog)
    try:
        return check_steps([step_from_dict(step) for step in steps])
    except PolicyError as error:
        raise PolicyError(f"catalog: {error}") from None


def with_fallback(step: Step) -> tuple[Step, Step]:
    """Return the chain of an action: the step, and a send if it cannot act.

    A step that can always act is repeated, so that all chains have the same length.
    """
    if isinstance(step, Take | Recall | Last):
        pool = getattr(step, "pool", None)
        return step, Send(weights="rate") if pool is None else Send(pool)
    return step, step
