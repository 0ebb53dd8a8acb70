"""Differences in the section on the general router."""

from __future__ import annotations

import numpy as np
import pytest

from agents.report.general_page import difference_of_means, general_section, mean_difference


def test_differences_are_those_of_the_costs():
    """Two systems, twice and half as costly as the rival: +25 % on average, and +10 % in all."""

    def row(role, costs):
        return {"role": role, "samples": {"cost": costs}, "stable": True}

    systems_rows = [
        {"general": row("general", [2.0, 2.0]), "tuned": row("tuned", [1.0, 1.0])},
        {"general": row("general", [0.5, 0.5]), "tuned": row("tuned", [1.0, 1.0])},
    ]
    assert mean_difference(systems_rows, "tuned").mean == pytest.approx(25.0)
    assert difference_of_means(systems_rows, "tuned").mean == pytest.approx(25.0)
    systems_rows[0]["general"]["samples"]["cost"] = [1.6, 1.8]
    total = difference_of_means(systems_rows, "tuned")
    assert total.mean == pytest.approx(10.0)
    assert np.allclose(total.samples, [5.0, 15.0])
    systems_rows[1]["tuned"]["stable"] = False
    assert mean_difference(systems_rows, "tuned").mean == pytest.approx(70.0)


def test_without_rows_there_is_no_section():
    assert general_section(()) == ""
