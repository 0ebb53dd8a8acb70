"""Action sets: what a learner can choose from; a tuned chain can be played exactly."""

import dataclasses

import numpy as np
import pytest

from agents.training import train
from agents.training.action_set import ActionSet, start_policy
from agents.training.algorithms import actor_weights, router_model, set_actor_weights
from agents.training.export import policy_of
from agents.training.imitation import check_imitable, imitate
from baselines.policies.tuned import tuned_names
from pull_env.envs.router import RouterEnv
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import Announce, Memory, load_policy
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.simulate import simulate

SCENARIO = load_scenario("small-mixed")


def test_the_default_is_the_catalog_of_the_env():
    env, actions = RouterEnv(SCENARIO), ActionSet.from_configuration({}, SCENARIO)
    assert (actions.steps, actions.announce, actions.memory) == (env.catalog, env.announce, env.memory)


@pytest.mark.parametrize("name", tuned_names())
def test_a_tuned_policy_can_be_imitated_with_the_steps_around_it(name):
    scenario = load_scenario(name)
    start = start_policy("tuned", scenario)
    actions = ActionSet.around(start, scenario)
    check_imitable(start, scenario, actions)
    assert (actions.announce, actions.memory) == (start.announce, start.memory)
    assert set(default_catalog(scenario)) < set(actions.steps)
    assert len(set(actions.steps)) == len(actions.steps)


def test_an_action_set_is_written_and_read_back():
    start = dataclasses.replace(
        start_policy("tuned", SCENARIO), announce=Announce(2, recipient="fewest", sample=2), memory=Memory(3)
    )
    for actions in (
        ActionSet.around(start, SCENARIO),
        dataclasses.replace(ActionSet.around(start, SCENARIO), announce=None),
    ):
        assert ActionSet.from_configuration({"action_set": actions.to_dict()}, SCENARIO) == actions


def test_a_start_is_a_name_or_a_file():
    assert start_policy("pull-fastest", SCENARIO).name == "pull-fastest"
    assert start_policy("tuned", SCENARIO).name == "tuned"
    assert start_policy("two-speeds.toml", SCENARIO).steps[1].pool == 0
    with pytest.raises(ValueError, match="did you mean"):
        start_policy("pul", SCENARIO)
    with pytest.raises(ValueError, match=r"'nowhere.toml' cannot be read"):
        start_policy("nowhere.toml", SCENARIO)


def test_an_action_set_around_nothing_is_refused(short):
    with pytest.raises(ValueError, match="action_set is start: there must be a policy to begin from"):
        train.check(short(None, "maskable-ppo", action_set="start"))


def test_a_taught_network_plays_the_tuned_policy(short):
    """By its best actions it does the same, so that both cost the same on the same customers."""
    args = train.check(short(None, "maskable-ppo", envs=8, start="tuned", action_set="start"))
    model, start = train.make_model(args), start_policy("tuned", SCENARIO)
    assert imitate(model, start, 4_000, 0.0, 0, updates=250) > 0.99
    actions = train.action_set_of(args)
    plays = set_actor_weights(
        router_model("maskable-ppo", SCENARIO, (64, 64), 0, actions), actor_weights(model)
    )
    policy = policy_of(plays, {"algo": "maskable-ppo", "action_set": actions.to_dict()}, SCENARIO)
    run = {"seed": 3, "warmup": 100, "replications": 4}
    found, expected = (simulate(SCENARIO, each, 20_000, **run).cost for each in (policy, start))
    assert found.mean == pytest.approx(expected.mean, rel=0.03)


def test_environments_are_in_motion_from_the_start(short):
    args = train.check(short(None, "maskable-ppo", envs=4, start="tuned", action_set="start"))
    envs = train.make_envs(args, SCENARIO)
    envs.seed(0)
    envs.reset()
    busy = [env.simulator.arrays.servers["queue"].sum() for env in envs.envs.envs]
    assert np.mean(busy) > 1


def test_a_run_leaves_its_policy_and_its_start(short, tmp_path):
    train.run(short(tmp_path / "run", "maskable-ppo", start="tuned", action_set="start", start_customers=500))
    policy, start = (load_policy(tmp_path / "run" / name) for name in ("policy.toml", "start.toml"))
    assert set(start.steps[1:]) < set(policy.steps)
    assert (policy.announce, policy.memory) == (start.announce, start.memory)
    assert policy.network.masked
    assert simulate(SCENARIO, policy, 2_000, warmup=100, replications=2).customers >= 2_000
