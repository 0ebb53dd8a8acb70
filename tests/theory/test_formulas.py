"""Closed forms against known digits, against each other, and against sums and chains done by hand."""

import math

import pytest

from pull_env.theory import formulas as f


def test_single_queue():
    assert f.mm1_mean_number(0.9) == pytest.approx(9.0)
    assert f.mm1_response(1.6, 2.0) == pytest.approx(2.5)
    quantile = f.mm1_wait_quantile(0.99, 1.6, 2.0)
    assert 0.8 * math.exp(-0.4 * quantile) == pytest.approx(0.01)
    assert f.mm1_wait_quantile(0.1, 1.6, 2.0) == 0.0


@pytest.mark.parametrize("load", [0.3, 1.0, 2.5])
def test_finite_queue_balances(load):
    distribution = f.mm1b_distribution(load, 1.0, 7)
    assert distribution.sum() == pytest.approx(1.0)
    assert distribution[1:] == pytest.approx(load * distribution[:-1])
    assert f.mm1b_blocking(load, 1.0, 7) == pytest.approx(distribution[-1], rel=1e-12)
    assert 1.0 - distribution[0] == pytest.approx(load * (1.0 - distribution[-1]))
    assert f.mm1b_mean_number(load, 1.0, 7) == pytest.approx(sum(k * p for k, p in enumerate(distribution)))


def test_large_finite_queues_are_stable():
    assert f.mm1b_mean_number(0.9, 1.0, 100_000) == pytest.approx(9.0)
    assert f.mm1b_blocking(2.0, 1.0, 100_000) == pytest.approx(0.5)


def test_buffers_too_long_to_write_out():
    assert f.mm1b_mean_number(0.9, 1.0, 2**31 - 1) == pytest.approx(9.0)
    assert f.mm1b_mean_number(1.0, 1.0, 2**31 - 1) == pytest.approx(2**30)
    assert f.mm1b_mean_number(2.0, 1.0, 2**31 - 1) == pytest.approx(2**31 - 2)
    near = 1 + 1e-6
    assert f.mm1b_mean_number(near, 1.0, f.LONG) == pytest.approx(
        f.mm1b_mean_number(near, 1.0, f.LONG + 1), rel=1e-5
    )
    assert f.mm1b_blocking(1.5, 1.0, 2**31 - 1) == pytest.approx(1 / 3)
    assert f.mm1b_blocking(0.5, 1.0, 2**31 - 1) == 0.0


def test_erlang_formulas():
    offered, servers = 2.4, 3
    weights = [offered**k / math.factorial(k) for k in range(servers + 1)]
    assert f.erlang_b(servers, offered) == pytest.approx(weights[-1] / sum(weights), rel=1e-14)
    assert f.erlang_c(servers, offered) == pytest.approx(0.6471910112359551, rel=1e-14)
    assert f.mmc_wait(servers, offered) == pytest.approx(0.6471910112359551 / 0.6)
    assert f.erlang_c(1, 0.7) == pytest.approx(0.7)
    assert f.mmc_response(1, 1.6, 2.0) == pytest.approx(f.mm1_response(1.6, 2.0))


@pytest.mark.parametrize(("load", "number"), [(0.8, 4.44444), (0.9, 9.47368), (0.95, 19.48718)])
def test_two_servers_of_one_queue(load, number):
    assert 2 * load * f.mmc_response(2, 2 * load) == pytest.approx(number, abs=5e-6)


def test_erlang_of_many_servers():
    """As c grows at a = c - sqrt(c), P(wait) -> 1 / (1 + Phi(1) / phi(1)) (Halfin and Whitt 1981)."""
    servers = 100_000
    phi, cdf = math.exp(-0.5) / math.sqrt(2 * math.pi), 0.5 * (1 + math.erf(math.sqrt(0.5)))
    assert f.erlang_c(servers, servers - math.sqrt(servers)) == pytest.approx(1 / (1 + cdf / phi), rel=0.005)
    assert 0.0 <= f.erlang_b(servers, 1.0) < 1e-300


def test_general_service():
    assert f.mg1_response(0.8, 1.0, 1.0) == pytest.approx(f.mm1_response(0.8))
    assert f.mg1_wait(0.8, 1.0, 0.0) == pytest.approx(f.mm1_response(0.8) * 0.8 / 2)
    assert f.mg1_response(1.4, 2.0, 0.81) == pytest.approx(0.5 * (1 + 0.7 * 1.81 / 0.6))


def test_round_robin():
    assert f.round_robin_p_wait(1, 0.8) == pytest.approx(0.8, rel=1e-13)
    z = f.round_robin_p_wait(2, 1.6)
    assert z == pytest.approx((1.6 / (1.6 + 1 - z)) ** 2, rel=1e-13)
    assert f.round_robin_response(2, 1.6) == pytest.approx(1 / (1 - z))
    deterministic = f.round_robin_p_wait(1_000_000, 800_000.0)  # D/M/1: z = exp(-(1 - z) / rho)
    assert deterministic == pytest.approx(math.exp(-(1 - deterministic) / 0.8), rel=1e-5)
    assert f.round_robin_response(5, 5 - 5e-9) == pytest.approx(0.6 / 1e-9, rel=1e-5)  # (ca2 + 1) / 2 = .6


@pytest.mark.parametrize(("load", "number"), [(0.8, 5.53846), (0.9, 12.21429), (0.95, 25.55172)])
def test_join_idle_queue_of_two(load, number):
    assert f.jiq_two_servers_mean_number(load) == pytest.approx(number, abs=5e-6)
    assert (1 - 0.999999) * f.jiq_two_servers_mean_number(0.999999) == pytest.approx(4 / 3, rel=1e-5)


@pytest.mark.parametrize(("call", "named"), [
    (lambda: f.mm1_response(1.0), "arrival_rate / rate"),
    (lambda: f.mm1_mean_number(-1.0), "arrival_rate"),
    (lambda: f.mm1_wait_quantile(1.0, 0.5), "probability"),
    (lambda: f.mm1b_distribution(1.0, 1.0, 0), "buffer"),
    (lambda: f.erlang_b(0, 1.0), "servers"),
    (lambda: f.erlang_b(2, math.nan), "offered"),
    (lambda: f.erlang_c(2, 2.0), "offered / servers"),
    (lambda: f.mg1_wait(0.5, 1.0, -1.0), "variation"),
    (lambda: f.round_robin_p_wait(2, 2.0), "arrival_rate / \\(servers"),
])  # fmt: skip
def test_out_of_range(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
