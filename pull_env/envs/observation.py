"""The spaces of observations."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.view import observation_size


def observation_box(scenario: Scenario, with_state: bool = False) -> spaces.Box[np.float32]:
    """Return the space of observations, [0, 1]^L in float32."""
    return spaces.Box(0.0, 1.0, (observation_size(scenario, with_state),), np.float32)
