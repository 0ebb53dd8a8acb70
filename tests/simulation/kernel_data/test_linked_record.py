"""Every linked record holds the addresses of its own arrays, after copying and unpickling too."""

import copy
import pickle

import numpy as np
import pytest

from pull_env.envs.control import ControlEnv
from pull_env.envs.dispatch import DispatchEnv
from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.policy.network import Network
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.kernel_data.linked_record import LinkedRecord


def network():
    layer = np.ones((3, 5)), np.zeros(3)
    return CompiledNetwork(Network((layer,)))


def started(env):
    env.reset(seed=0)
    return env


OWNERS = {
    "network": network,
    "router": lambda: started(RouterEnv("two-speeds")),
    "dispatch": lambda: started(DispatchEnv("two-speeds")),
    "control": lambda: started(ControlEnv("two-speeds")),
    "faults": lambda: started(RouterEnv("failures")),
    "vector": lambda: started(RouterVectorEnv(3, scenario="two-speeds")),
}


def linked_records(owner, seen=None):
    """Yield all linked records that an object owns, at any depth."""
    seen = {} if seen is None else seen
    if id(owner) in seen:
        return
    seen[id(owner)] = owner
    if isinstance(owner, LinkedRecord):
        yield owner
    inner = owner if isinstance(owner, list) else vars(owner).values() if hasattr(owner, "__dict__") else ()
    for each in inner:
        if isinstance(each, list) or type(each).__module__.startswith("pull_env"):
            yield from linked_records(each, seen)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda owner: pickle.loads(pickle.dumps(owner))])
@pytest.mark.parametrize("name", OWNERS)
def test_addresses_are_those_of_the_arrays(name, copied):
    original = OWNERS[name]()
    records = list(linked_records(copied(original)))
    assert records
    for one in records:
        for field in one.linked:
            value = getattr(one, field)
            address = value.ctypes.data if isinstance(value, np.ndarray) else value.address
            assert one.record[field][0] == address, (type(one).__name__, field)
    addresses = {one.address for one in linked_records(original)}
    assert not addresses & {one.address for one in records}
