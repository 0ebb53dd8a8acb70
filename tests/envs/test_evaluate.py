"""`evaluate` scores an agent as `simulate` scores a policy."""

import numpy as np
import pytest

import baselines
from pull_env import Announce, Driver, Policy, Pool, Scenario, Send, evaluate, simulate, spawn_seeds
from pull_env.envs.router import RouterEnv
from pull_env.scenario.scenario import Trace
from pull_env.simulation.kernel_data.view import local_size
from tests.oracles.exactness import agrees

SMALL = Scenario((Pool(2, 1.0, 2), Pool(2, 2.0, 2)), routers=2, arrival_rate=4.8)


@pytest.mark.slow
def test_a_driven_policy_scores_as_the_kernel_does():
    driver = Driver(baselines.make("pull-weighted"), RouterEnv(SMALL), seed=1)
    found = evaluate(driver, SMALL, 200_000, seed=2)
    kernel = simulate(SMALL, baselines.make("pull-weighted"), 4_000_000, seed=3, replications=16)
    for name in ("wait", "p_wait", "p_block", "mean_number", "cost"):
        agrees(getattr(found, name), getattr(kernel, name), width=0.05, what=name)
    agrees(found.messages["pull"], kernel.messages["pull"], width=0.02)


class Always:
    """An agent that always takes one action, and records its calls."""

    def __init__(self, action):
        self.action, self.calls = action, []

    def predict(self, observation, *, deterministic=False):
        self.calls.append((observation.copy(), deterministic))
        return np.full(len(observation), self.action), None


def test_counts_and_the_same_streams():
    agent = Always(4)  # send to pool 0
    first, second = (evaluate(agent, SMALL, 3_200, seed=4, replications=2, warmup=7) for _ in range(2))
    assert (first.customers, first.warmup, first.replications) == (3_200, 7, 2)
    assert first == second
    assert first.busy[1].mean < 0.01  # filled by the warm-up of the kernel, it soon empties
    assert len(agent.calls) == 2 * (7 + 1_600)
    assert agent.calls[0][0].shape == (2, local_size(SMALL))
    assert agent.calls[0][1] is True


def test_the_system_may_be_filled_by_another_policy():
    run = {"seed": 4, "replications": 2, "warmup": 0}
    slow = Policy("slow", (Send(1),))
    filled, full = (evaluate(Always(4), SMALL, 64, fill=slow, fill_customers=n, **run) for n in (0, 500))
    assert filled.busy[1].mean < 0.3  # from an empty system; the agent sends to the other pool
    assert full.busy[1].mean > filled.busy[1].mean + 0.1
    assert full == evaluate(Always(4), SMALL, 64, fill=slow, fill_customers=500, **run)
    with pytest.raises(ValueError, match="fill_customers is -1: it must be a whole number from 0"):
        evaluate(Always(4), SMALL, 64, fill_customers=-1, **run)


def test_a_whole_trace_counts_to_its_last_customer(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at,size\n" + "".join(f"{0.3 * k},{1 + k % 3}\n" for k in range(64)), encoding="utf-8")
    arrivals = Trace(str(path), "at", "size")
    scenario = Scenario(SMALL.pools, routers=2, load=0.9, arrivals=arrivals)
    found = evaluate(Always(4), scenario, seed=6, replications=3)
    kernel = simulate(scenario, Policy("blind", (Send(0),), Announce()), seed=6, replications=3)
    assert found.customers == kernel.customers == 3 * 64
    assert (found.wait, found.cost, found.mean_number) == (kernel.wait, kernel.cost, kernel.mean_number)


def test_masks_go_to_agents_that_take_them():
    class Masked(Always):
        def predict(self, observation, *, deterministic=False, action_masks):
            assert action_masks.shape == (2, 18)
            assert action_masks.dtype == bool
            return np.array([row.nonzero()[0][0] for row in action_masks]), None

    assert evaluate(Masked(0), SMALL, 640, replications=2, warmup=0).customers == 640


def test_seeds_do_not_overlap():
    seeds = [
        seed for run in range(200) for key in ("train", "evaluate") for seed in spawn_seeds(run, 64, key)
    ]
    assert len(set(spawn_seeds(5, 5000))) == 5000
    assert len(seeds) - len(set(seeds)) <= 2  # by chance: 25,600 draws of 2^32
    assert max(seeds) < 2**32


@pytest.mark.parametrize(
    ("name", "value"), [("customers", 0), ("replications", 0), ("warmup", -1), ("seed", -1)]
)
def test_a_bad_argument_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value}: "):
        evaluate(Always(0), SMALL, **{name: value})
