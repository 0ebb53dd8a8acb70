"""A step that only its own policies use, against the naive twin: the table."""

import numpy as np
import pytest

from pull_env.policy.policy import Lookup, Policy
from tests.oracles.cases import SCENARIOS
from tests.oracles.twins import pair, run_both


@pytest.mark.parametrize("free", [True, False])
def test_lookup(free):
    scenario, limits = SCENARIOS["infinite buffers"], (1, 3, 0, 2, 4, 1, 1)
    entries = int(np.prod(np.array(limits) + 1))
    table = tuple(np.random.default_rng(5).integers(7, size=entries).tolist())
    policy = Policy("table", (Lookup(limits, table, free),))
    run_both(*pair(scenario, policy, 3), stops=(1, 40, 300))
