"""Closed forms for the shortest of d queues against known digits and their own equations."""

import pytest

from pull_env.theory import supermarket as s


@pytest.mark.parametrize(("load", "d", "response"), [
    (0.9, 2, 2.614057), (0.9, 3, 2.027856), (0.9, 5, 1.632881), (0.9, 10, 1.348688), (0.99, 2, 5.431997), (0.9, 1, 10.0),
])  # fmt: skip
def test_supermarket_model(load, d, response):
    assert s.supermarket_response(load, d) == pytest.approx(response, abs=5e-7)
    tail = s.supermarket_tail(load, d, 400)
    assert tail[:3] == pytest.approx([1.0, load, load ** (d + 1)])
    assert tail[1:].sum() / load == pytest.approx(response, abs=5e-7)
    assert tail[1:] == pytest.approx(
        load * tail[:-1] ** d
    )  # what is sent to queues of k - 1 or more is served


@pytest.mark.parametrize(("c", "response"), [(1, 3.333333), (2, 1.298242), (3, 1.053924), (5, 0.885945)])
def test_balanced_routing(c, response):
    assert s.balanced_response(0.8, c, 1.5) == pytest.approx(response, abs=5e-7)
    assert s.balanced_tail(0.8, c, 5) == pytest.approx(s.supermarket_tail(0.8, c, 5))


@pytest.mark.parametrize(("alpha", "beta", "k"), [(0.5, 0.2, 3), (0.6, 0.2, 3), (0.3, 0.4, 1), (0.8, 0.4, 2)])
def test_equilibrium_length(alpha, beta, k):
    n = 10.0**10
    assert s.equilibrium_length(1 - n**-alpha, round(n**beta)) == k


@pytest.mark.parametrize(("call", "named"), [
    (lambda: s.supermarket_response(1.0, 2), "load"),
    (lambda: s.supermarket_tail(0.5, 0, 2), "choices"),
    (lambda: s.equilibrium_length(0.5, 1), "choices"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
