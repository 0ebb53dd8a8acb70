"""Every service distribution has the mean, variance and tail that it declares."""

import numpy as np
import pytest

from pull_env.scenario.laws import (
    Empirical,
    Erlang,
    Hyperexponential,
    Pareto,
    Weibull,
)
from tests.oracles.workloads import LAWS, near


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_law_has_mean_one_and_its_variance(law):
    values = law.draw(np.random.default_rng(1), 2_000_000)
    assert (values >= 0.0).all()
    if law.scv == 0.0:
        assert (values == 1.0).all()
        return
    near(values, 1.0, 0.01)
    near((values - 1.0) ** 2, law.scv, 0.2 if law == LAWS["pareto"] else 0.05)


def test_laws_are_those_that_they_say():
    """Points of the distribution functions, by the share of values below."""
    tails = {
        Erlang(2): lambda x: np.exp(-2 * x) * (1 + 2 * x),
        Hyperexponential(4.0): lambda x: sum(
            p * np.exp(-2 * p * x) for p in (0.5 + 0.5 * 0.6**0.5, 0.5 - 0.5 * 0.6**0.5)
        ),
        Pareto(1.5): lambda x: min(1.0, (1 / 3 / x) ** 1.5),
        Weibull(0.5): lambda x: np.exp(-((2 * x) ** 0.5)),
    }
    for law, tail in tails.items():
        values = law.draw(np.random.default_rng(2), 400_000)
        for x in (0.4, 1.0, 3.0):
            near(values > x, tail(x), 0.05)
    within = Pareto(1.2, bound=100.0).draw(np.random.default_rng(3), 400_000)
    assert 95.0 < within.max() / within.min() <= 100.0 * (1 + 1e-12)


def test_an_empirical_law_draws_the_values_of_a_file(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("note,work\na,1\nb,2\nc,9\n")
    law = Empirical(str(path), "work")
    values = law.draw(np.random.default_rng(4), 300_000)
    assert set(values) == {0.25, 0.5, 2.25}
    for value in (0.25, 0.5, 2.25):
        near(values == value, 1 / 3, 0.02)
    assert law.scv == pytest.approx((0.75**2 + 0.5**2 + 1.25**2) / 3)
    path.write_text("work\n1\n1\n")
    assert law.scv == 0.0
    path.write_text("work\n1\n0\n")
    with pytest.raises(
        ValueError, match=r"sizes\.csv, line 3: work is '0': it must be a positive finite number"
    ):
        law.scv  # noqa: B018
