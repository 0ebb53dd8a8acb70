"""Every entry of an observation against a slow computation, and its bounds."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pull_env.envs.observation import observation_box
from pull_env.envs.router import RouterEnv
from pull_env.kernels.routing.memory import UNKNOWN
from pull_env.policy.policy import Announce, Probe, Recall, Send, Take
from pull_env.scenario.faults import Faults
from pull_env.scenario.scenario import Pool, Prices, Scenario, load_scenario, scenario_names
from pull_env.simulation.kernel_data.view import local_size, observation_names, observation_size

UNEVEN = Scenario(
    pools=(Pool(3, rate=2.0, buffer=4), Pool(5, rate=0.5), Pool(2, rate=1.0, buffer=1)),
    routers=3,
    load=1.2,
    shares=(0.6, 0.3, 0.1),
    prices=Prices(wait=2.0, message=0.1, block=3.0),
)
PROTOCOLS = {
    "pull": Announce(),
    "stale": Announce(withdraw=False),
    "threshold": Announce(threshold=3),
    "nothing": None,
}


def squash(x: float) -> float:
    return x / (1 + x)


class Twin:
    """What routers should observe, from the arrays and means updated step by step."""

    def __init__(self, env: RouterEnv) -> None:
        self.env = env
        scenario = env.scenario
        shape = (scenario.routers, len(scenario.pools))
        self.answer, self.idle = np.zeros(shape), np.zeros(shape)
        self.gap = env.simulator.arrays.routers["recent_gap"] * env.simulator.arrays.head["time_step"][0]
        self.empty = np.zeros(scenario.routers)
        self.seen = np.zeros(scenario.routers)

    def arrived(self, info: dict) -> None:
        router, time = info["router"], info["time"]
        self.gap[router] += (time - self.seen[router] - self.gap[router]) / 16
        self.seen[router] = time
        nothing = self.env.simulator.arrays.lists["held"][router].sum() == 0
        self.empty[router] += (nothing - self.empty[router]) / 16

    def answered(self, router: int, server: int, queue: int) -> None:
        pool = int(self.env.simulator.arrays.servers["pool"][server])
        wait = queue / self.env.scenario.pools[pool].rate
        self.answer[router, pool] += (wait - self.answer[router, pool]) / 16
        self.idle[router, pool] += ((queue == 0) - self.idle[router, pool]) / 16

    def observation(self, router: int) -> list[float]:
        scenario, arrays = self.env.scenario, self.env.simulator.arrays
        n, R = scenario.servers, scenario.routers
        service = n / sum(pool.size * pool.rate for pool in scenario.pools)
        now, tick = arrays.head["now"][0], arrays.head["time_step"][0]
        out = []
        for j, pool in enumerate(scenario.pools):
            lists = arrays.lists[router, j]
            row = arrays.memory[router, j]
            known = row["server"] >= 0
            lengths, times = row["queue"][known].tolist(), row["time"][known].tolist()
            best = min(zip(lengths, times, strict=True), key=lambda it: (it[0], -it[1]), default=None)
            out += [
                pool.size / n,
                pool.rate / max(p.rate for p in scenario.pools),
                1.0 if pool.buffer is None else squash(pool.buffer),
                squash(arrays.lists["held"][router, j]),
                1.0 if best is None else squash(best[0] / pool.rate / service),
                1.0 if best is None else squash((now - best[1]) * tick / service),
                squash(self.answer[router, j] / service),
                self.idle[router, j],
                squash((now - lists["mean_received"]) * tick / service) if lists["held"] else 1.0,
            ]
        nominal = 1 / (scenario.total_arrival_rate * scenario.router_shares[router])
        message = scenario.prices.message / scenario.prices.wait / service
        out += [
            nominal / (nominal + self.gap[router]),
            self.empty[router],
            message / (message + 0.05),
            min(scenario.nominal_load, 1.5) / 1.5,
        ]
        held = arrays.lists["held"].sum(axis=1)
        for j, pool in enumerate(scenario.pools):
            queues = arrays.servers["queue"][arrays.servers["pool"] == j]
            out += [(queues == q).sum() / pool.size for q in range(4)] + [(queues >= 4).sum() / pool.size]
        out += [(held == 0).sum() / R, held[router] / max(held.sum(), 1), 0.0, 0.0]
        return out


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("scenario", [UNEVEN, load_scenario("two-speeds"), load_scenario("small-mixed")])
def test_every_entry_is_what_the_arrays_say(scenario, protocol):
    env = RouterEnv(scenario, announce=PROTOCOLS[protocol], observation="with-state", customers=600, memory=3)
    twin = Twin(env)
    observation, info = env.reset(seed=5)
    twin.arrived(info)
    rng = np.random.default_rng(1)
    truncated = False
    while not truncated:
        np.testing.assert_allclose(observation, twin.observation(info["router"]), rtol=0, atol=2e-7)
        arrays, router = env.simulator.arrays, info["router"]
        queues, probes = arrays.servers["queue"].copy(), int(arrays.head["probes"][0])
        observation, _, _, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        for server in arrays.probed[: (int(arrays.head["probes"][0]) - probes) // 2]:
            twin.answered(router, server, queues[server])
        twin.arrived(info)


@pytest.mark.parametrize("memory", [{"size": 10, "by_pool": False}, {"size": 2, "by_pool": False}])
def test_other_memories_stay_within_the_bounds(memory):
    env = RouterEnv(UNEVEN, memory=memory, customers=300)
    observation, _ = env.reset(seed=5)
    for k in range(299):
        assert env.observation_space.contains(observation)
        observation, *_ = env.step(k * 7 % 25)


@pytest.mark.parametrize("memory", [3, {"size": 2, "by_pool": False}, {"size": 10, "by_pool": False}])
@pytest.mark.parametrize("restart", [None, 1.0])
def test_the_best_server_remembered_is_known_whatever_changes(memory, restart):
    env = RouterEnv(dataclasses.replace(UNEVEN, faults=Faults(restart=restart)), memory=memory, customers=300)
    env.reset(seed=5)
    for k in range(299):
        router, arrays = env.step(k * 7 % 25)[4]["router"], env.simulator.arrays
        rows, pools = arrays.memory, arrays.servers["pool"]
        assert (arrays.lists["best_entry"][router] != UNKNOWN).all()
        for other, j in itertools.product(range(3), range(3)):
            mine, row = arrays.lists[other, j], rows[other, j if rows.shape[1] > 1 else 0]
            known = np.flatnonzero((row["server"] >= 0) & (pools[row["server"]] == j)).tolist()
            best = min(known, key=lambda p: (row["queue"][p], -row["time"][p], p), default=-1)
            if mine["best_entry"] != UNKNOWN:
                assert mine["best_entry"] == best
                assert best < 0 or (mine["best_queue"], mine["best_time"]) == (
                    row["queue"][best],
                    row["time"][best],
                )


def test_names_sizes_and_space_fit():
    for name in scenario_names():
        scenario = load_scenario(name)
        J = len(scenario.pools)
        assert local_size(scenario) == observation_size(scenario) == 9 * J + 4
        assert observation_size(scenario, with_state=True) == 9 * J + 4 + 5 * J + 4
        for with_state in (False, True):
            names = observation_names(scenario, with_state)
            assert len(set(names)) == len(names) == observation_size(scenario, with_state)
            box = observation_box(scenario, with_state)
            assert box.shape == (len(names),)
            assert box.dtype == np.float32
    env = RouterEnv("two-speeds", observation="with-state")
    assert observation_names(env.scenario, True)[env.local_size] == "state of pool 0: idle"


def test_with_state_begins_with_the_local_observation():
    local, full = (RouterEnv("two-speeds", observation=kind) for kind in ("local", "with-state"))
    short, long = local.reset(seed=3)[0], full.reset(seed=3)[0]
    for action in range(18):
        assert np.array_equal(short, long[: full.local_size])
        short, long = local.step(action)[0], full.step(action)[0]


systems = st.builds(
    Scenario,
    pools=st.lists(
        st.builds(
            Pool, size=st.integers(1, 6), rate=st.floats(1e-3, 1e3), buffer=st.none() | st.integers(1, 5)
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    routers=st.integers(1, 4),
    load=st.floats(1e-2, 5.0),
    prices=st.builds(Prices, wait=st.floats(0, 1e6), message=st.floats(0, 1e6)),
)


@settings(max_examples=60, deadline=None)
@given(systems, st.sampled_from(list(PROTOCOLS)), st.integers(0, 2**32), st.integers(1, 9))
def test_any_play_stays_within_the_space(scenario, protocol, seed, memory):
    env = RouterEnv(
        scenario, announce=PROTOCOLS[protocol], observation="with-state", memory=memory, customers=80
    )
    observation, info = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    truncated = False
    while not truncated:
        assert env.observation_space.contains(observation), observation
        assert (info["action_mask"] == 1).any()
        observation, _, _, truncated, info = env.step(int(rng.integers(env.action_space.n)))
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("name", scenario_names())
def test_presets_stay_within_the_space(name):
    env = RouterEnv(name, observation="with-state", customers=400)
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    truncated = False
    while not truncated:
        assert env.observation_space.contains(observation)
        observation, _, _, truncated, _ = env.step(env.action_space.sample())


def test_masks_say_what_can_act():
    steps = [Take(), Take(1), Recall(), Recall(0), Send(), Probe()]
    env = RouterEnv(UNEVEN, catalog=steps, customers=500, observation="with-state")
    _, info = env.reset(seed=2)
    for k in range(499):
        arrays, router = env.simulator.arrays, info["router"]
        held, known = arrays.lists["held"][router], (arrays.memory["server"][router] >= 0).any(axis=1)
        expected = [held.sum() > 0, held[1] > 0, known.any(), known[0], True, True]
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].tolist() == expected
        assert env.action_masks().dtype == np.bool_
        assert env.action_masks().tolist() == expected
        info = env.step(k % 6)[4]
