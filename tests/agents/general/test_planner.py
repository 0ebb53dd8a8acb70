"""The planner learns which plan is best."""

from __future__ import annotations

import numpy as np

from agents.general.planner import train
from agents.general.plans import PLANS
from agents.general.random_systems import draw_system


def test_a_planner_learns_what_depends_on_the_price() -> None:
    """Where messages cost much one plan is best, elsewhere another: both are found on systems not seen."""
    systems = [draw_system(k) for k in range(300)]
    costs = np.ones((len(systems), len(PLANS))) * 2.0
    for k, scenario in enumerate(systems):
        costs[k, 3 if scenario.prices.message > 0.05 else 17] = 1.0
    fit = train(systems, costs, seed=0, held_out=60, steps=400)
    assert fit.regret < 0.05 * np.log(2)
    assert fit.held_out < 0.2 * np.log(2)
