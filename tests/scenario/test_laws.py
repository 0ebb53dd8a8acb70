"""Every service distribution has the mean, variance and tail that it declares; bad values."""

import math

import numpy as np
import pytest

from pull_env import Scenario
from pull_env.scenario.laws import LAWS as KINDS
from pull_env.scenario.laws import Empirical, Erlang, Hyperexponential, Lognormal, Pareto, Weibull
from tests.oracles.workloads import LAWS, near
from tests.scenario.conftest import raises


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


POSITIVE = "it must be a positive finite number"


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Erlang(0), "phases is 0: it must be a whole number from 1 to 2147483647"),
        (lambda: Erlang(2.5), "phases is 2.5: it must be a whole number .*"),
        (lambda: Hyperexponential(1.0), "scv is 1.0: it must be a finite number above 1"),
        (lambda: Hyperexponential(math.inf), "scv is inf: it must be a finite number above 1"),
        (lambda: Lognormal(0), f"scv is 0: {POSITIVE}"),
        (lambda: Pareto(1.0), "shape is 1.0: it must be a finite number above 1"),
        (lambda: Pareto(0.0, bound=2), f"shape is 0.0: {POSITIVE}"),
        (lambda: Pareto(1.5, bound=1), "bound is 1: it must be a finite number above 1"),
        (lambda: Weibull(0.09), "shape is 0.09: it must be a finite number from 0.1"),
        (lambda: Empirical("", "x"), "file is '': it must be a string that is not empty"),
        (lambda: Empirical("a.csv", 3), "column is 3: it must be a string that is not empty"),
    ],
)  # fmt: skip
def test_bad_values(build, sentence):
    with raises(sentence):
        build()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"service": "erlang"}, f"service is 'erlang': it must be a table with the key law, one of {', '.join(KINDS)}"),
        ({"service": {"scv": 4}}, f"service.law is missing: it must be one of {', '.join(KINDS)}"),
        ({"service": {"law": "lognormel"}}, r"service.law is 'lognormel': did you mean 'lognormal'\? It must be one of exponential, .*"),
        ({"service": {"law": "lognormal"}}, "service.scv is missing: it must be given"),
        ({"service": {"law": "lognormal", "svc": 4}}, r"service.svc is not a known key: did you mean 'scv'\? It must be scv"),
        ({"service": {"law": "deterministic", "scv": 0}}, "service.scv is not a known key: there is none"),
        ({"service": {"law": "erlang", "phases": -1}}, "service.phases is -1: it must be a whole number .*"),
        ({"service": {"law": ["erlang"]}}, r"service.law is \['erlang'\]: it must be one of .*"),
    ],
)  # fmt: skip
def test_bad_tables(content, sentence):
    with raises(sentence):
        Scenario.from_dict({"pools": [{"size": 1}], "routers": 2, "load": 0.8, **content})
