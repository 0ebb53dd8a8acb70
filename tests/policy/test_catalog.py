"""The catalog of steps that a learned router chooses from."""

import pytest

from pull_env.envs.router import RouterEnv
from pull_env.policy.catalog import as_catalog, default_catalog, with_fallback
from pull_env.policy.policy import PolicyError, Probe, Recall, Send, Take
from pull_env.scenario.scenario import load_scenario, scenario_names


def test_the_default_catalog():
    scenario = load_scenario("two-speeds")
    catalog = default_catalog(scenario)
    assert catalog[:6] == (Take(0), Take(1), Recall(0), Recall(1), Send(0), Send(1))
    assert catalog[7] == Probe(0, at_most=8, stop_at=0.5, rank="delay")
    assert catalog[17] == Probe(weights="rate", at_most=8, stop_at=2.0, rank="delay")
    for name in scenario_names():
        J = len(load_scenario(name).pools)
        assert RouterEnv(name).action_space.n == len(default_catalog(load_scenario(name))) == 7 * J + 4


def test_every_action_has_a_chain_that_can_act():
    for step in default_catalog(load_scenario("two-speeds")):
        first, second = with_fallback(step)
        assert first is step
        assert second.always_acts
    assert with_fallback(Take(1)) == (Take(1), Send(1))
    assert with_fallback(Take()) == (Take(), Send(weights="rate"))


@pytest.mark.parametrize(
    ("catalog", "sentence"),
    [
        ("take", "catalog is 'take': it must be a list"),
        ((), r"catalog: steps is .*: it must be a list of at least one item"),
        ([{"kind": "tale"}], "catalog: step.kind is 'tale': did you mean 'take'"),
    ],
)
def test_what_is_no_catalog(catalog, sentence):
    with pytest.raises(PolicyError, match=sentence):
        as_catalog(catalog, load_scenario("two-speeds"))
