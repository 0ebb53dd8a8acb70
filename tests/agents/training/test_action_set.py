"""Offers: what a learner may choose from, and that a tuned chain is in its reach, to the bit."""

import dataclasses

import numpy as np
import pytest

from agents.training import train
from agents.training.action_set import Offer, start_policy
from agents.training.algorithms import actor, router, set_actor
from agents.training.export import policy_of
from agents.training.imitation import check_start, clone
from baselines.policies.tuned import tuned_names
from pull_env.envs.router import RouterEnv
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import Announce, Memory, load_policy
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.simulate import simulate

SCENARIO = load_scenario("small-mixed")


def test_the_default_is_the_catalog_of_the_env():
    env, offer = RouterEnv(SCENARIO), Offer.of({}, SCENARIO)
    assert (offer.steps, offer.announce, offer.memory) == (env.catalog, env.announce, env.memory)


@pytest.mark.parametrize("name", tuned_names())
def test_a_tuned_policy_can_be_taught_in_what_it_offers(name):
    scenario = load_scenario(name)
    start = start_policy("tuned", scenario)
    offer = Offer.by(start, scenario)
    check_start(start, scenario, offer)
    assert (offer.announce, offer.memory) == (start.announce, start.memory)
    assert set(default_catalog(scenario)) < set(offer.steps)
    assert len(set(offer.steps)) == len(offer.steps)


def test_an_offer_is_told_and_read_back():
    start = dataclasses.replace(
        start_policy("tuned", SCENARIO), announce=Announce(2, recipient="fewest", sample=2), memory=Memory(3)
    )
    for offer in (Offer.by(start, SCENARIO), dataclasses.replace(Offer.by(start, SCENARIO), announce=None)):
        assert Offer.of({"offer": offer.to_dict()}, SCENARIO) == offer


def test_a_start_is_a_name_or_a_file():
    assert start_policy("pull-fastest", SCENARIO).name == "pull-fastest"
    assert start_policy("tuned", SCENARIO).name == "tuned"
    assert start_policy("two-speeds.toml", SCENARIO).steps[1].pool == 0
    with pytest.raises(ValueError, match="did you mean"):
        start_policy("pul", SCENARIO)
    with pytest.raises(ValueError, match=r"'nowhere.toml' cannot be read"):
        start_policy("nowhere.toml", SCENARIO)


def test_an_offer_by_nobody_is_refused(short):
    with pytest.raises(ValueError, match="offer is start: there must be a policy to begin from"):
        train.check(short(None, "maskable-ppo", offer="start"))


def test_a_taught_network_plays_the_tuned_policy(short):
    """By its best actions it does the same, so that both cost the same on the same customers."""
    args = train.check(short(None, "maskable-ppo", envs=8, start="tuned", offer="start"))
    model, start = train.make_model(args), start_policy("tuned", SCENARIO)
    assert clone(model, start, 4_000, 0.0, 0) > 0.99
    offer = train.offer_of(args)
    plays = set_actor(router("maskable-ppo", SCENARIO, (64, 64), 0, offer), actor(model))
    policy = policy_of(plays, {"algo": "maskable-ppo", "offer": offer.to_dict()}, SCENARIO)
    run = {"seed": 3, "warmup": 100, "replications": 4}
    found, expected = (simulate(SCENARIO, each, 20_000, **run).cost for each in (policy, start))
    assert found.mean == pytest.approx(expected.mean, rel=0.03)


def test_environments_are_in_motion_from_the_start(short):
    args = train.check(short(None, "maskable-ppo", envs=4, start="tuned", offer="start"))
    envs = train.environments(args, SCENARIO)
    envs.seed(0)
    envs.reset()
    busy = [env.simulator.arrays.servers["queue"].sum() for env in envs.envs.envs]
    assert np.mean(busy) > 1


def test_a_run_leaves_its_policy_and_its_start(short, tmp_path):
    train.run(short(tmp_path / "run", "maskable-ppo", start="tuned", offer="start", start_customers=500))
    policy, start = (load_policy(tmp_path / "run" / name) for name in ("policy.toml", "start.toml"))
    assert set(start.steps[1:]) < set(policy.steps)
    assert (policy.announce, policy.memory) == (start.announce, start.memory)
    assert policy.network.masked
    assert simulate(SCENARIO, policy, 2_000, warmup=100, replications=2).customers >= 2_000
