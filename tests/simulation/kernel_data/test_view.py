"""The constants of an observation."""

import pytest

from pull_env import Prices
from pull_env.simulation.kernel_data.view import observed_price


def test_the_price_is_one_where_waiting_is_free():
    assert observed_price(Prices(wait=0.0, message=0.0), service=1.0) == 1.0
    assert observed_price(Prices(wait=1.0, message=0.0), service=1.0) == 0.0
    assert observed_price(Prices(wait=2.0, message=0.2), service=2.0) == pytest.approx(0.5)
    assert observed_price(Prices(wait=1e-308, message=1.0), service=1.0) == 1.0
