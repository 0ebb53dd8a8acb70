"""The actor sees what its router sees, the critic all; what is saved plays without the state."""

import numpy as np
import pytest
import torch

from agents.training import train
from agents.training.algorithms import (
    ACTOR_CRITIC,
    actor_weights,
    load,
    router_model,
    save_model,
    set_actor_weights,
)
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.kernel_data.view import local_size
from tests.agents.conftest import weights_digest

SCENARIO = load_scenario("small-mixed")
LOCAL = local_size(SCENARIO)


def make(short, algo, **given):
    return train.make_model(train.check(short(None, algo, **given)))


@pytest.mark.parametrize("algo", ACTOR_CRITIC)
def test_the_actor_is_blind_to_the_state_and_the_critic_is_not(short, algo):
    model = make(short, algo)
    seen = torch.as_tensor(model.env.reset())
    other = seen.clone()
    other[:, LOCAL:] = 1.0 - other[:, LOCAL:]
    choice, again = (model.policy.get_distribution(x).distribution.probs for x in (seen, other))
    assert torch.equal(choice, again)
    assert not torch.equal(model.policy.predict_values(seen), model.policy.predict_values(other))
    other = seen.clone()
    other[:, 0] = 0.9
    assert not torch.equal(choice, model.policy.get_distribution(other).distribution.probs)


@pytest.mark.parametrize("algo", ["ppo", "maskable-ppo", "dqn", "qr-dqn"])
def test_a_saved_router_chooses_as_the_learner_does(short, algo, tmp_path):
    model = make(short, algo)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.mul_(3.0)  # untrained choices are too alike
    plays = set_actor_weights(router_model(algo, SCENARIO, (64, 64), 5), actor_weights(model))
    save_model(plays, tmp_path / "best.zip")
    (tmp_path / "config.json").write_text(f'{{"algo": "{algo}"}}')
    loaded, _, _ = load(tmp_path)
    seen = np.random.default_rng(0).random((200, model.observation_space.shape[0]), np.float32)
    expected, _ = model.predict(seen, deterministic=True)
    for plain in (plays, loaded):
        assert plain.observation_space.shape == (LOCAL,)
        given, _ = plain.predict(seen[:, :LOCAL], deterministic=True)
        assert np.array_equal(given, expected)
        assert len(set(given.tolist())) > 1
    assert weights_digest(plays) == weights_digest(loaded)
    again = set_actor_weights(router_model(algo, SCENARIO, (64, 64), 6), actor_weights(model))
    assert weights_digest(plays) == weights_digest(again)


def test_a_critic_may_see_no_more_than_the_router(short):
    model = make(short, "ppo", observation="router")
    assert model.observation_space.shape == (LOCAL,)


def test_making_a_router_leaves_random_generators_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    router_model("ppo", SCENARIO, (8,), 0)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
