"""Learning with full information: the table is what the network does, and its cost is the env's."""

import dataclasses
import json

import pytest

from agents.training.train_dispatch import Args, buffers, exact_costs, simulated_gap, tabulate, train
from agents.zoo.registry import load_trained
from baselines import make
from pull_env.envs.dispatch import DispatchEnv
from pull_env.policy.policy import load_policy
from pull_env.scenario.scenario import Pool, Scenario, load_scenario
from pull_env.theory.optimum import optimise

SCENARIO = load_scenario("small-mixed")
SHORT = Args(steps=256, envs=2, n_steps=64, evaluations=2, score_customers=0)


def test_a_table_does_what_the_network_does(tmp_path):
    """In an episode of the env whose customers are sent at random, at every one of them."""
    model = train(SHORT, SCENARIO, tmp_path)
    (lookup,) = tabulate(model, SCENARIO).steps
    env = DispatchEnv(SCENARIO, free_information=True, customers=1_000)
    seen, _ = env.reset(seed=4)
    env.action_space.seed(0)
    truncated, visited = False, set()
    while not truncated:
        queues = tuple(env.simulator.arrays.servers["queue"].tolist())
        action, _ = model.predict(seen, deterministic=True)
        place = 0
        for queue, most in zip(queues, lookup.limits, strict=True):
            place = place * (most + 1) + queue
        assert lookup.servers[place] == action
        visited.add(queues)
        seen, _, _, truncated, _ = env.step(env.action_space.sample())
    assert len(visited) > 50


def test_what_a_table_costs_above_the_optimum():
    """The optimum is not above itself; a rule that is known to be worse is, by the same in simulation."""
    best = optimise(SCENARIO).policy()
    assert exact_costs(SCENARIO, best)[0] == pytest.approx(exact_costs(SCENARIO, best)[1], rel=1e-9)
    assert simulated_gap(SCENARIO, best, 4_000).mean == 0
    free = dataclasses.replace(SCENARIO, prices=dataclasses.replace(SCENARIO.prices, message=0.0))
    known, optimal = exact_costs(free, make("jsq"))
    gap = simulated_gap(free, make("jsq"), 200_000)
    assert gap.low < 100 * (known / optimal - 1) < gap.high


@pytest.mark.parametrize("pool", [Pool(2, 1.0), Pool(9, 1.0, buffer=9)], ids=["infinite", "too large"])
def test_a_table_that_cannot_be_is_refused(pool):
    with pytest.raises(ValueError, match="all buffers must be finite"):
        buffers(Scenario((pool,), load=0.5))


def test_a_run_leaves_its_table_and_its_curve(call, tmp_path):
    words = (
        f"--steps 256 --envs 2 --n-steps 64 --evaluations 2 --score-customers 2000 --out {tmp_path / 'run'}"
    )
    status, printed, _ = call("dispatch", *words.split())
    assert status == 0
    policy = load_policy(tmp_path / "run" / "policy.toml")
    assert f"learned {exact_costs(SCENARIO, policy)[0]:.5f}" in printed
    curve = (tmp_path / "run" / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["customers"] for line in curve] == [0, 128]
    status, _, refused = call("dispatch", *words.split())
    assert status == 2
    assert "it exists already" in refused


def test_the_trained_one_is_within_two_per_cent_of_the_optimum():
    trained = load_trained("small-mixed-in-sight")
    learned, best = exact_costs(trained.scenario, trained.policy)
    assert best <= learned <= 1.02 * best
