"""`DispatchEnv`: its entries, the price of looking, and the optimum played in it."""

import numpy as np
import pytest

from pull_env import Announce, Pool, Prices, Scenario
from pull_env.envs.dispatch import DispatchEnv
from pull_env.simulation.results import Recorder, summarise
from pull_env.theory.optimum import optimise
from tests.oracles.exactness import meets

UNEVEN = Scenario(
    pools=(Pool(2, rate=2.0, buffer=2), Pool(3, rate=0.5), Pool(1, rate=1.0, buffer=1)),
    routers=3,
    load=1.1,
    shares=(0.6, 0.3, 0.1),
    prices=Prices(wait=2.0, message=0.1, block=3.0),
)
FULL = Scenario(pools=(Pool(1, rate=1.0, buffer=1), Pool(2, rate=2.0, buffer=2)), load=2.0)


def expected(env, router):
    """What the router should see and may do, from the arrays, server by server."""
    arrays, scenario = env.simulator.arrays, env.scenario
    pools = [scenario.pools[j] for j in arrays.servers["pool"]]
    queues = arrays.servers["queue"].tolist()
    n = len(queues)
    seen = [q / (1 + q) for q in queues]
    seen += [pool.rate / max(p.rate for p in pools) for pool in pools]
    seen += [1.0 if pool.buffer is None else pool.buffer / (1 + pool.buffer) for pool in pools]
    held = set()
    for j, start in enumerate(arrays.pools["start"]):
        count = arrays.lists["held"][router, j]
        held |= set(arrays.slots[router, start : start + count].tolist()) if count else set()
    seen += [float(k in held) for k in range(n)]
    room = [pool.buffer is None or q < pool.buffer for pool, q in zip(pools, queues, strict=True)]
    return seen, room if any(room) else [True] * n


@pytest.mark.parametrize("scenario", [UNEVEN, FULL], ids=["uneven", "full"])
@pytest.mark.parametrize(
    "announce", [None, Announce(), Announce(withdraw=False), Announce(threshold=2)], ids=str
)
def test_every_entry_and_mask_is_what_the_arrays_say(scenario, announce):
    env = DispatchEnv(scenario, announce=announce, customers=600)
    observation, info = env.reset(seed=5)
    env.action_space.seed(0)
    blocked, held, truncated = 0, 0.0, False
    while not truncated:
        seen, mask = expected(env, info["router"])
        np.testing.assert_allclose(observation, seen, rtol=0, atol=2e-7)
        assert env.action_masks().tolist() == mask
        assert env.observation_space.contains(observation)
        held += observation[-scenario.servers :].sum()
        action = env.action_space.sample()
        full = env.simulator.arrays.servers["queue"][action] >= (
            scenario.pools[env.simulator.arrays.servers["pool"][action]].buffer or np.inf
        )
        observation, _, _, truncated, info = env.step(action)
        assert info["blocked"] == full
        blocked += info["blocked"]
    assert blocked > 0
    assert (held > 0) == (announce is not None)


def test_all_servers_are_marked_where_all_are_full():
    env = DispatchEnv(FULL, customers=600)
    env.reset(seed=0)
    seen_full = 0
    for k in range(600):
        queues = env.simulator.arrays.servers["queue"].tolist()
        if queues == [1, 2, 2]:
            seen_full += 1
            assert env.action_masks().all()
            assert env.step(k % 3)[4]["blocked"]
        else:
            assert env.action_masks().tolist() == [
                q < most for q, most in zip(queues, (1, 2, 2), strict=True)
            ]
            assert not env.step(int(env.action_masks().argmax()))[4]["blocked"]
    assert seen_full > 20


def test_looking_costs_two_messages_a_server_or_nothing():
    paid, free = (DispatchEnv(UNEVEN, free_information=kind, customers=300) for kind in (False, True))
    paid.reset(seed=1), free.reset(seed=1)
    for k in range(300):
        seen, reward, *_, info = paid.step(k % 6)
        seen_free, reward_free, *_, info_free = free.step(k % 6)
        assert np.array_equal(seen, seen_free)
        assert (info["messages"], info_free["messages"]) == (12, 0)
        assert reward == pytest.approx(reward_free - 0.1 * 12, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"free_information": 1}, "free_information is 1: it must be true or false"),
        ({"announce": {"threshold": 0}}, "announce.threshold is 0"),
        ({"scenario": "small-mixt"}, "small-mixed"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        DispatchEnv(**arguments)


def test_a_server_that_is_not_there():
    env = DispatchEnv()
    env.reset(seed=0)
    for action in (-1, 4):
        with pytest.raises(ValueError, match=f"action is {action}: it must be a whole number from 0 to 3"):
            env.step(action)


def play_optimum(scenario, best, replications, warmup, batch, batches=32):
    """Play the optimal table on what the env shows; measure as `simulate` does."""
    counts, n = [], scenario.servers
    for k in range(replications):
        env = DispatchEnv(scenario, free_information=True, customers=warmup + batches * batch + 1)
        seen, _ = env.reset(seed=3, options={"episode": k})
        for customer in range(warmup + batches * batch):
            if customer == warmup:
                recorder = Recorder(env.simulator)
            elif customer > warmup and (customer - warmup) % batch == 0:
                recorder.end_batch()
            queues = np.rint(seen[:n] / (1 - seen[:n])).astype(int).tolist()
            seen = env.step(best.server(queues))[0]
        recorder.end_batch()
        counts.append(recorder.counts())
    return summarise(scenario, counts, seed=3, warmup=warmup, seconds=1.0)


def test_the_optimum_played_in_it_has_its_exact_values():
    scenario = Scenario(
        (Pool(1, rate=1.0, buffer=3), Pool(2, rate=2.5, buffer=4)),
        routers=2,
        load=0.9,
        prices=Prices(1.0, 0.05, 2.0),
    )
    best = optimise(scenario)
    result = play_optimum(scenario, best, replications=16, warmup=500, batch=500)
    meets(result.mean_number, best.exact.mean_number, width=0.02)
    meets(result.cost, best.exact.cost, width=0.03)
    meets(result.wait, best.exact.wait, width=0.03)
