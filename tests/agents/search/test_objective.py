"""The cost of a candidate is that of `simulate`."""

import dataclasses

import pytest

import pull_env
from agents.search.cma_es import Args
from agents.search.objective import candidate_costs
from pull_env.scenario.scenario import load_scenario
from tests.oracles.networks import follow

TINY = Args(customers=2000, warmup=100, replications=2)


@pytest.mark.parametrize("name", ["small-mixed", "bursty"])
def test_the_cost_of_a_candidate_is_that_of_simulate(name):
    scenario, policy = load_scenario(name), follow(load_scenario(name), 4)
    args = dataclasses.replace(TINY, customers=2 * 32 * 50)
    run = {"customers": args.customers, "warmup": args.warmup, "replications": args.replications, "seed": 7}
    expected = pull_env.simulate(scenario, policy, **run).cost.mean
    assert candidate_costs(args, scenario, [policy], 7) == [pytest.approx(expected, rel=1e-12)]
