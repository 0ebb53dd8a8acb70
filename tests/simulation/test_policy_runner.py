"""A policy must fit the scenario."""

import pytest

from pull_env import Policy, Send, simulate


def test_a_step_for_a_pool_that_is_not_there():
    with pytest.raises(ValueError, match=r"steps\[0\].pool is 5: small-mixed has pools 0 to 1"):
        simulate("small-mixed", Policy("p", (Send(pool=5),)))
