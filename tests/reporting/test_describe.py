"""Estimates to the digits that they are worth, and pools that grow, in one line."""

from __future__ import annotations

import pytest

from pull_env import Pool, Scenario
from pull_env.reporting import describe
from pull_env.simulation.statistics import estimate, nan_estimate


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([1.0, 1.2, 1.1], "1.10 ± 0.25"),
        ([1000.0, 1200.0], "1100 ± 1271"),
        ([4.0, 4.0], "4"),
        ([0.0, 0.0], "0"),
        ([3.0], "3.0000 ± inf"),
    ],
)
def test_estimates_are_shown_to_the_digits_they_are_worth(samples: list[float], text: str) -> None:
    assert describe.plus_minus(estimate(samples)) == text


def test_nothing_is_shown_of_what_is_not_claimed() -> None:
    assert describe.plus_minus(nan_estimate(8)) == "-"


def test_growth_is_given_for_pools_that_grow() -> None:
    scenario = Scenario((Pool(2, 1.0), Pool(2, 1.0), Pool(2, 1.0, buffer=5)), load=1.2)
    assert (
        describe.growth_line(scenario, (0.01, 2.0, 9.0))
        == "pool 1 (2 servers at rate 1) grows by 2 customers per time unit"
    )
    assert describe.growth_line(scenario, (1.0, 2.0, 0.0)).count("grows by") == 2
    assert describe.growth_line(scenario, (0.0, -1.0, 0.0)) == "the load is 1.2, not below 1"
