"""The trained routers: each folder is complete, and none is overwritten."""

import json

import pytest

from agents.training.action_set import with_takes_by_pool
from agents.zoo import registry
from agents.zoo.registry import TRAINED, load_trained, trained_names
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.simulate import simulate


@pytest.mark.parametrize("name", trained_names())
def test_each_trained_router_is_whole(name):
    trained = load_trained(name)
    policy, start, training = trained.policy, trained.start, trained.training
    check_fit(policy, trained.scenario)
    assert registry.digest(policy) == training["weights_sha256"]
    assert trained.scenario.digest == training["scenario"]["sha256"]
    assert sum(path.stat().st_size for path in (TRAINED / name).iterdir()) < 2**20  # a MiB
    curve = [json.loads(line) for line in (TRAINED / name / "curve.jsonl").read_text().splitlines()]
    assert (
        curve[-1]["generation"] == training["generations"]
        if "generations" in training
        else training["customers"]
    )
    if not trained.full_information:
        assert policy.network.training_seed == training["seed"]
    if start is not None:
        assert (policy.announce, policy.memory) == (start.announce, start.memory)
        own = with_takes_by_pool(start.steps, trained.scenario)
        assert policy.steps[: len(own)] == own
    result = simulate(trained.scenario, trained.policy, 2_000, warmup=100, replications=2)
    assert result.customers >= 2_000


def test_what_is_there_is_never_overwritten(own_router):
    with pytest.raises(ValueError, match="there already"):
        registry.shelve(own_router, "mine")
    with pytest.raises(ValueError, match="must be the folder of a run"):
        registry.shelve(own_router / "nothing", "other")
    with pytest.raises(ValueError, match="name is 'yours': it must be mine"):
        load_trained("yours")
