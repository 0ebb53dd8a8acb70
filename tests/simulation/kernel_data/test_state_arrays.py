"""Where the arrays of a system lie, and that a reset in place leaves nothing behind."""

import copy
import pickle

import numpy as np
import pytest

from pull_env import Pool, Scenario
from pull_env.envs.vector import RouterVectorEnv
from pull_env.kernels import state
from pull_env.policy.policy import Announce, Inspect, Lookup, Memory, Probe, Search, Send, Take
from pull_env.simulation.kernel_data import state_arrays as arrays
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import calendar_workload

TWO = Scenario(pools=(Pool(6, 1.5), Pool(5, 0.5, buffer=3)), routers=3, load=0.9)
MANY = Scenario(pools=tuple(Pool(1, 1 + 0.1 * j) for j in range(8)), routers=2, load=0.95)
FULL = state.KEEP_OBSERVATION | state.KEEP_QUEUE_INDEX | state.KEEP_ROUTER_INDEX | state.KEEP_MEMORY
FULL |= state.KEEP_HISTORY
SYSTEMS = {
    "blind": (TWO, (Send(),), None, Memory(), 0, False),
    "all kept": (TWO, (Take(order="oldest"), Probe(at_most=3)), Announce(), Memory(2), FULL, False),
    "stale": (
        TWO,
        (Take(), Probe(recall=True)),
        Announce(withdraw=False),
        Memory(99, by_pool=False),
        0,
        False,
    ),
    "fewest": (MANY, (Take(), Send()), Announce(recipient="fewest"), Memory(), 0, False),
    "sampled": (TWO, (Take(), Send()), Announce(recipient="fewest", sample=2), Memory(), FULL, True),
    "search": (TWO, (Take(), Search()), Announce(), Memory(), 0, False),
    "calendar": (MANY, (Inspect("work"),), None, Memory(), 0, True),
    "table": (TWO, (Lookup((1,) * 11, tuple(k % 11 for k in range(2**11))),), None, Memory(), 0, False),
}


@pytest.fixture(params=[1 << 18, 1000], ids=["most small", "few small"])
def limit(request, monkeypatch):
    """The bytes up to which an array is small."""
    monkeypatch.setattr(arrays, "SMALL", request.param)
    return request.param


def build(name):
    scenario, steps, announce, memory, extra_flags, calendar = SYSTEMS[name]
    workload = calendar_workload(scenario) if calendar else None
    simulator = Simulator(
        scenario, steps, announce, memory=memory, extra_flags=extra_flags, workload=workload
    )
    return simulator, encode(steps, scenario)


def content(simulator):
    """All arrays as numbers, but for the addresses: bytes between fields mean nothing."""
    held, found = simulator.arrays, {}
    for name in ("head", *arrays.ADDRESSES):
        array = getattr(held, name)
        if isinstance(array, arrays.LevelIndex):
            found |= {f"{name}.{part}": getattr(array, part).tolist() for part in array.linked}
        elif name == "head":
            found |= {field: array[field].tolist() for field in array.dtype.names if not hasattr(held, field)}
        elif name == "laws":  # arrays within records cannot be compared at once
            found |= {f"laws.{field}": array[field].tolist() for field in array.dtype.names}
        else:
            found[name] = [array[field].tolist() for field in array.dtype.names or [...]]
    return found


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_reset_leaves_nothing_behind(name, limit):
    used, chain = build(name)
    used.reset(1)
    used.run(chain, 3000)
    fresh, _ = build(name)
    for simulator in (used, fresh):
        simulator.reset(2, episode=1)
    assert content(used) == content(fresh)
    for simulator in (used, fresh):
        simulator.run(chain, 3000)
    assert content(used) == content(fresh)


@pytest.mark.parametrize("name", SYSTEMS)
def test_copies_go_on_alike(name, limit):
    original, chain = build(name)
    original.reset(1)
    original.run(chain, 500)
    copies = [copy.deepcopy(original), pickle.loads(pickle.dumps(original))]
    for simulator in (original, *copies):
        simulator.run(chain, 500)
    for simulator in copies:
        assert content(simulator) == content(original)
        assert not np.shares_memory(simulator.arrays.room, original.arrays.room)
    copies[0].reset(3)
    original.reset(3)
    assert content(copies[0]) == content(original)


@pytest.mark.parametrize("name", SYSTEMS)
def test_twins_go_on_as_if_built_alone(name, limit):
    original, chain = build(name)
    original.arrays.gather()
    rooms = [arrays.lines(original.arrays.extent() + 99) for _ in range(2)]
    clones = [original.clone_into(room) for room in rooms]
    for clone, room in zip(clones, rooms, strict=True):
        assert content(clone) == content(original)
        assert np.shares_memory(clone.arrays.head, room)
    for seed, simulator in enumerate((original, *clones)):
        alone, _ = build(name)
        for episode in range(2):
            for each in (simulator, alone):
                each.reset(seed, episode)
                each.run(chain, 2000)
        assert content(simulator) == content(alone)


def test_small_arrays_lie_side_by_side_each_on_its_own_lines():
    simulator, _ = build("all kept")
    simulator.reset(0)
    held, spans = simulator.arrays, []
    for name in ("head", "pools", "routers", "lists", "memory", "servers", "messages", "slots"):
        first = getattr(held, name).ctypes.data
        assert first % arrays.LINE == 0
        spans += [first, first + getattr(held, name).nbytes]
    assert spans == sorted(spans)
    assert spans[-1] - spans[0] <= held.room.size == held.extent()
    assert held.long_histogram.nbytes > arrays.SMALL
    assert not np.shares_memory(held.long_histogram, held.room)


def test_the_systems_of_a_vector_env_lie_in_one_allocation_after_resets_and_copies():
    envs = RouterVectorEnv(4, scenario=TWO, customers=20)
    envs.reset(seed=0)
    envs.reset()
    for each in (envs, copy.deepcopy(envs)):
        heads = [env.simulator.address for env in each.envs]
        assert len(set(np.diff(heads).tolist())) == 1
        for env in each.envs:
            assert np.shares_memory(env.simulator.arrays.head, each._batch._systems)
    envs.close()
