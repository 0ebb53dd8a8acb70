"""The general router: one set of weights, made into a policy for any system."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.general.planner import short_run_cost
from agents.general.plans import LAST_STEPS, PLANS, PROTOCOLS, Plan
from agents.general.random_systems import draw_systems
from agents.general.router import GENERAL, GeneralRouter, load, plan_preferences, run, save, starting_weights
from agents.general.router import Args as GeneralArgs
from pull_env import Pool, Prices, Scenario, load_policy, load_scenario, simulate
from pull_env.__main__ import main

SYSTEMS = draw_systems(3, 12, "tests")


def silent(seed: int = 0) -> GeneralRouter:
    """Return a router whose player never adds to the plan."""
    weights = starting_weights(seed)
    weights["player.each"][:] = 0.0
    return GeneralRouter(weights)


def planned(router: GeneralRouter, scenario: Scenario) -> Plan:
    """Return the plan that seems cheapest."""
    excess = router.excess(scenario)
    chosen, last = np.unravel_index(excess.argmin(), excess.shape)
    return Plan(list(PROTOCOLS)[chosen], int(last))


@pytest.mark.parametrize("scenario", SYSTEMS, ids=lambda scenario: scenario.name)
def test_without_a_player_the_router_is_its_plan_to_the_bit(scenario: Scenario) -> None:
    few = replace(scenario, name="few")
    router = silent(scenario.servers)
    assert short_run_cost(few, router.on(few), 1) == short_run_cost(few, planned(router, few).on(few), 1)


@pytest.mark.parametrize("last", range(LAST_STEPS))
def test_every_plan_is_played_to_the_bit(last: int) -> None:
    router = silent()
    router.weights["planner.excess"][:] = 0.0
    excess = router.weights["planner.excess"][:, -1]
    excess[:] = 0.5
    excess[PLANS.index(Plan("idle", last))] = 0.0
    scenario = Scenario((Pool(9, 1.5), Pool(6, 0.5)), routers=3, load=0.8)
    assert planned(router, scenario) == Plan("idle", last)
    assert short_run_cost(scenario, router.on(scenario), 1) == short_run_cost(
        scenario, Plan("idle", last).on(scenario), 1
    )


def test_messages_come_first_however_slow_their_servers() -> None:
    scenario = Scenario((Pool(5, 10.0), Pool(60, 1.0)), routers=3, load=0.8)
    preferences = plan_preferences(scenario, silent().excess(scenario)[0])
    takes = [7, 7 + 5]
    assert preferences[takes[0]] > preferences[takes[1]]
    assert np.delete(preferences, takes).max() == 0.0 < preferences[takes[1]] - 0.3


def test_the_order_of_pools_does_not_matter() -> None:
    pools = (Pool(30, 1.5), Pool(20, 0.6), Pool(10, 0.2))
    ways = [Scenario(order, routers=4, load=0.8) for order in (pools, pools[::-1])]
    router = GeneralRouter(random_player(0))
    plans = [router.excess(scenario) for scenario in ways]
    assert np.allclose(*plans)
    results = [simulate(scenario, router.on(scenario), 400_000, seed=0) for scenario in ways]
    assert abs(results[0].cost.mean - results[1].cost.mean) < 4 * (
        results[0].cost.half_width() + results[1].cost.half_width()
    )
    first, second = (router.on(scenario).network for scenario in ways)
    assert first is not None
    assert second is not None
    for (weights, _), (others, _) in zip(first.layers, second.layers, strict=True):
        assert np.allclose(np.sort(weights.ravel()), np.sort(others.ravel()))


def random_player(seed: int) -> dict[str, np.ndarray]:
    """Return weights of which the player has an opinion, too."""
    weights, rng = starting_weights(seed), np.random.default_rng(seed)
    for name in ("player.all", "player.each"):
        weights[name] += rng.normal(0, 0.1, weights[name].shape)
    return weights


def test_a_player_sees_its_own_pool_as_any_other_pool() -> None:
    """Pools that are alike are treated alike: their blocks of weights are equal."""
    scenario = Scenario((Pool(10, 1.0), Pool(10, 1.0)), routers=2, load=0.7)
    network = GeneralRouter(random_player(1)).on(scenario).network
    assert network is not None
    (first, added), (second, biases) = network.layers
    units = len(added) // 2
    assert np.array_equal(added[:units], added[units:])
    assert np.array_equal(first[:units, :9], first[units:, 9:18])
    each = (len(biases) - 7) // 2
    assert np.array_equal(biases[7 : 7 + each], biases[7 + each :])
    assert np.array_equal(second[7 : 7 + each, :units], second[7 + each :, units:])


def test_weights_are_read_as_they_were_saved(tmp_path: Path) -> None:
    router = GeneralRouter(random_player(2))
    save(router, tmp_path / "weights.safetensors")
    again = load(tmp_path / "weights.safetensors")
    assert again.digest == router.digest
    with pytest.raises(ValueError, match=r"nowhere.*cannot be read"):
        load(tmp_path / "nowhere.safetensors")
    from safetensors.numpy import save_file

    save_file({"player.all": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="it must hold planner"):
        load(tmp_path / "other.safetensors")


def test_the_committed_router_is_what_its_training_says() -> None:
    training = json.loads(GENERAL.with_name("training.json").read_text())
    router = load()
    assert router.digest == training["weights_sha256"]
    assert sum(file.stat().st_size for file in GENERAL.parent.iterdir()) < 2**20


def test_the_policy_for_a_scenario_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, out = load_scenario("many-pools"), tmp_path / "new" / "general.toml"
    assert run(GeneralArgs("many-pools", out)) == 0
    assert load_policy(out) == load().on(scenario)
    assert main(["simulate", "many-pools", str(out), "--customers", "20000"]) == 0
    assert "general" in capsys.readouterr().out
    with pytest.raises(ValueError, match="exists already"):
        run(GeneralArgs("many-pools", out))


def test_the_committed_router_depends_on_the_price_of_a_message() -> None:
    """As messages cost more it sends fewer, and customers wait longer."""
    scenario, router = load_scenario("two-speeds"), load()
    results = []
    for price in (0.005, 0.05, 0.5):
        priced = replace(scenario, prices=Prices(message=price))
        result = simulate(priced, router.on(priced), 200_000, seed=0, warmup=10_000)
        results.append((result.messages["total"].mean, result.wait.mean))
    messages, waits = zip(*results, strict=True)
    assert messages[0] > messages[1] > messages[2]
    assert waits[0] < waits[1] < waits[2]
