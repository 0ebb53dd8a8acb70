"""Hyperparameters: flags over the scenario's section over the default, and what is refused."""

import re
from typing import get_args

import pytest

from agents.training.action_set import ActionSet, start_policy
from agents.training.algorithms import Algorithm
from agents.training.hyperparameters import FOLDER, Hyperparameters, known, resolve
from agents.training.imitation import check_imitable
from pull_env.scenario.scenario import load_scenario, scenario_names

ALGORITHMS = get_args(Algorithm)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_files_give_all_that_a_learner_needs(algo):
    for name in scenario_names():
        learn = resolve(algo, name, Hyperparameters())
        assert set(known(algo)) - set(learn.given()) <= {"target_kl"}
        if learn.start != "none":
            scenario = load_scenario(name)
            start = start_policy(learn.start, scenario)
            actions = (
                ActionSet.around(start, scenario)
                if learn.action_set == "start"
                else ActionSet.from_configuration({}, scenario)
            )
            check_imitable(start, scenario, actions)


def test_every_family_of_learners_has_a_file():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {"ppo", "dqn"}


@pytest.fixture
def written(tmp_path):
    """Write a file of hyperparameters that begins as PPO's does, and resolve it."""

    def write(text, algo="ppo", scenario="two-speeds", **flags):
        path = tmp_path / "mine.yaml"
        begin = (FOLDER / f"{algo}.yaml").read_text(encoding="utf-8").partition("\ntwo-speeds:")[0]
        path.write_text(f"{begin}\n{text}", encoding="utf-8")
        return resolve(algo, scenario, Hyperparameters(**flags), path)

    return write


def test_flags_go_over_the_scenario_over_the_default(written):
    text = "two-speeds:\n  gamma: 0.5\n  envs: 7\n"
    usual, special = written(text, scenario="batches"), written(text)
    assert (special.gamma, special.envs, special.n_epochs) == (0.5, 7, usual.n_epochs)
    assert usual.gamma != 0.5
    flagged = written(text, gamma=0.25)
    assert (flagged.gamma, flagged.envs) == (0.25, 7)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "two-speeds:\n  gama: 0.5",
            "mine.yaml, section two-speeds: gama is unknown to ppo: did you mean 'gamma'",
        ),
        ("other:\n  gama: 0.5", "mine.yaml, section other: gama is unknown"),
        ("two-speeds:\n  train_freq: 4", "train_freq is unknown to ppo"),
        (
            "two-speeds:\n  learning_rate: 3e-4",
            "learning_rate is '3e-4': it must be a positive number, such as 3.0e-4",
        ),
        ("two-speeds:\n  envs: 0", "section two-speeds: envs is 0: it must be a whole number from 1"),
        ("two-speeds:\n  envs: true", "envs is True: it must be a whole number"),
        ("two-speeds:\n  layers: 64", "layers is 64: it must be a list of at least one item"),
        ("two-speeds:\n  observation: all", "observation is 'all': it must be one of with-state, router"),
        ("two-speeds:\n  gamma: .nan", "gamma is nan: it must be a number from 0 to 1"),
        ("two-speeds: 3", "it must hold sections by scenario, and default"),
        ("a: [", "not valid YAML"),
    ],
)
def test_what_is_not_allowed_is_named(written, text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        written(text)
    assert "\n" not in str(refused.value)


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "short.yaml"
    path.write_text("default:\n  steps: 3\n")
    with pytest.raises(ValueError, match=r"short.yaml gives no envs: section default must, or a flag"):
        resolve("ppo", "two-speeds", Hyperparameters(), path)
    with pytest.raises(ValueError, match=r"'.*none.yaml' cannot be read: No such file"):
        resolve("ppo", "two-speeds", Hyperparameters(), tmp_path / "none.yaml")


def test_learners_without_a_critic_or_an_actor_say_so():
    with pytest.raises(ValueError, match="observation is with-state: dqn has no critic"):
        resolve("dqn", "two-speeds", Hyperparameters(observation="with-state"))
    with pytest.raises(ValueError, match="start is pull: dqn has no actor"):
        resolve("dqn", "two-speeds", Hyperparameters(start="pull"))
    with pytest.raises(ValueError, match="n_epochs is unknown to dqn"):
        resolve("dqn", "two-speeds", Hyperparameters(n_epochs=3))
