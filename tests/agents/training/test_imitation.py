"""Imitation: what is taught, and that it is learned."""

import numpy as np
import pytest

from agents.training import train
from agents.training.action_set import ActionSet
from agents.training.imitation import check_imitable, discounted, imitate, watch
from pull_env import Announce, Policy, Probe, Send, Take
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.kernel_data.view import observation_names

SCENARIO = load_scenario("small-mixed")
NAMES = observation_names(SCENARIO)
BY_MESSAGES = Policy("pull-fastest", (Take(order="fastest"), Send(1)), Announce())


@pytest.mark.parametrize("algo", ["ppo", "maskable-ppo"])
def test_a_network_learns_the_choices_of_a_policy(short, algo):
    model = train.make_model(train.check(short(None, algo, envs=8)))
    before = model.policy.mlp_extractor.value_net[0].weight.clone()
    assert imitate(model, BY_MESSAGES, 6_000, 0.1, 0, updates=250) > 0.97
    assert not (before == model.policy.mlp_extractor.value_net[0].weight).all()


def test_what_is_watched(short):
    model = train.make_model(train.check(short(None, "maskable-ppo", envs=4)))
    seen = watch(model, BY_MESSAGES, 400, 0)
    assert seen.observations.shape == (400, model.observation_space.shape[0])
    assert set(seen.actions.tolist()) == {0, 1, 5}  # take of either pool, and send to pool 1
    assert seen.masks[np.arange(400), seen.actions].all()
    held = seen.observations[:, [NAMES.index(f"pool {j}: messages held") for j in (0, 1)]].numpy() > 0
    assert (held[:, 1] == (seen.actions == 1).numpy()).all()  # a fast server that pulled goes first


def test_returns_go_on_beyond_the_end():
    rewards, ends = np.array([[1.0, 0.0], [2.0, 4.0], [3.0, 2.0]]), np.zeros((3, 2), bool)
    ends[1, 0] = True
    beyond = 2.0 / 0.5  # the mean, for ever
    expected = [
        [1 + 0.5 * (2 + 0.5 * beyond), 0 + 0.5 * (4 + 0.5 * (2 + 0.5 * beyond))],
        [2 + 0.5 * beyond, 4 + 0.5 * (2 + 0.5 * beyond)],
        [3 + 0.5 * beyond, 2 + 0.5 * beyond],
    ]
    assert np.allclose(discounted(rewards, ends, 0.5), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("policy", "cause"),
    [
        (Policy("far", (Probe(stop_at=0.3),), Announce()), "the catalog has no counterpart"),
        (Policy("silent", (Send(0),)), "announce is"),
    ],
)
def test_a_start_that_cannot_be_taught(policy, cause):
    with pytest.raises(ValueError, match=f"start is {policy.name}, which cannot be taught: .*{cause}"):
        check_imitable(policy, SCENARIO, ActionSet.from_configuration({}, SCENARIO))
