"""Envs compared with the kernel run of a policy, counters, and one another."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.kernels.state import CALENDAR
from pull_env.policy.policy import (
    Announce,
    Cycle,
    Inspect,
    Last,
    Memory,
    Policy,
    Probe,
    Recall,
    Search,
    Send,
    Take,
)
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for

FASTEST = Policy("pull fastest", (Take(order="fastest"), Send(weights="rate")), Announce())

WEIGHTED = Policy("pull weighted", (Take(), Send(weights="rate")), Announce())

POLICIES = [
    Policy("uniform", (Send(),)),
    Policy("pool", (Send(1),)),
    Policy("pull", (Take(), Send()), Announce()),
    WEIGHTED,
    FASTEST,
    Policy("slow first", (Take(1), Take(0), Send(0)), Announce()),
    Policy("oldest, stale", (Take(order="oldest"), Send()), Announce(withdraw=False)),
    Policy("threshold", (Take(), Send(weights="rate")), Announce(threshold=3)),
    Policy("fewest", (Take(), Send()), Announce(recipient="fewest")),
    Policy("fewest of 2", (Take(), Send()), Announce(recipient="fewest", sample=2)),
    Policy("two choices", (Probe(),)),
    Policy("balanced", (Probe(weights="rate", replace=True, rank="queue then speed"),)),
    Policy("until idle", (Take(0), Probe(0, at_most=30, stop_at=0.0, rank="delay")), Announce()),
    Policy("search", (Take(1), Search()), Announce()),
    Policy("recall", (Take(order="fastest"), Recall(), Probe(weights="rate", stop_at=1.0)), Announce()),
    Policy("recall a pool", (Recall(0), Probe(at_most=3))),
    Policy("jsq", (Inspect("queue"),)),
    Policy("sed", (Inspect("delay"),)),
    Policy("jfsq", (Inspect("queue then speed"),)),
    Policy("lwl", (Inspect("work"),)),
    Policy("least work of 2", (Take(), Probe(rank="work")), Announce()),
    Policy("round robin", (Cycle(),)),
    Policy("weighted round robin", (Cycle(weights="rate"),)),
    Policy("last", (Take(1), Last(), Send()), Announce(growth=0.7)),
    Policy("two and the remembered", (Probe(recall=True),), memory=Memory(3, by_pool=False)),
    Policy("local shortest queue", (Probe(recall=True),), memory=Memory(99, by_pool=False)),
]

# What an env keeps for its observation, whether the policy reads it or not.
VIEW_FIELDS = {
    "head": {"flags", "probed", "Q", "F"},
    "routers": {"last_arrival", "recent_gap", "recent_empty"},
    "lists": {"probed_wait", "probed_idle", "mean_received", "best_entry", "best_queue", "best_time"},
}

COUNTERS = ("pulls", "removes", "probes", "updates")

MODES = list(AutoresetMode)


def kernel_run(policy: Policy, scenario, customers: int, seed: int, episode: int) -> Simulator:
    workload = workload_for(scenario, policy.steps)
    simulator = Simulator(scenario, policy.steps, policy.announce, memory=policy.memory, workload=workload)
    simulator.reset(seed, episode)
    simulator.run(encode(policy.steps, scenario), customers)
    return simulator


def assert_same_state(env: RouterEnv, simulator: Simulator) -> None:
    ours, theirs = env.simulator.arrays, simulator.arrays
    addresses = {name for name in ours.head.dtype.names if hasattr(ours, name)}
    for name in ("head", "routers", "lists", "pools", "servers", "ages", "work"):
        a, b = getattr(ours, name), getattr(theirs, name)
        for field in set(a.dtype.names) - VIEW_FIELDS.get(name, set()):
            if name == "head" and field in addresses:
                continue
            assert np.array_equal(a[field], b[field]), f"{name}.{field}"
    for name in ("streams", "messages", "slots", "histogram", "departure_heap", "gaps", "sizes", "waiting"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    if theirs.memory.size > 1:
        assert np.array_equal(ours.memory, theirs.memory)
    if theirs.histories.size > 1:
        assert np.array_equal(ours.histories, theirs.histories)
    if theirs.by_queue.order.size > 1:
        assert np.array_equal(ours.by_queue.order, theirs.by_queue.order)


def cost_of(env: RouterEnv) -> float:
    """The total cost of the run so far, from the simulator's counters."""
    arrays, prices = env.simulator.arrays, env.scenario.prices
    wait = (
        arrays.pools["wait_sum"]
        if arrays.head["flags"][0] & CALENDAR
        else arrays.pools["queue_sum"] / arrays.pools["rate"]
    )
    messages = sum(int(arrays.head[name][0]) for name in COUNTERS)
    return float(
        prices.wait * wait.sum()
        + prices.block * (arrays.pools["blocked"].sum() + int(arrays.head["lost_customers"][0]))
        + prices.message * messages
    )


def record(env: RouterEnv, steps: int, seed: int = 9) -> list:
    """Return what an env returns for random actions."""
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(steps):
        observation, reward, *_, info = env.step(int(rng.integers(env.action_space.n)))
        answers.append((observation.tolist(), reward, {k: np.asarray(v).tolist() for k, v in info.items()}))
    return answers


def assert_same(one, other, where=""):
    """Compare what two envs return: values, types, shapes, keys."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (tuple, list)):
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}/{k}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        if one.dtype == object:
            assert_same(one.tolist(), other.tolist(), where)
        else:
            assert np.array_equal(one, other), where
    else:
        assert one == other, where


def assert_twins(single, native, steps, seed=7):
    """Step Gymnasium's vector env and the native one by the same random actions."""
    assert_same(single.reset(seed=seed), native.reset(seed=seed))
    rng, ends = np.random.default_rng(0), 0
    for step in range(steps):
        actions = rng.integers(native.single_action_space.n, size=native.num_envs)
        expected, given = single.step(actions), native.step(actions)
        assert_same(expected, given, f"step {step}")
        ends += int(expected[3].sum())
        if native.metadata["autoreset_mode"] == AutoresetMode.DISABLED and expected[3].any():
            assert_same(*(envs.reset(options={"reset_mask": expected[3]}) for envs in (single, native)))
    return ends


def pair(mode, num_envs, workers=1, **arguments):
    single = SyncVectorEnv([lambda: RouterEnv(**arguments)] * num_envs, autoreset_mode=mode)
    return single, RouterVectorEnv(num_envs, autoreset_mode=mode, workers=workers, **arguments)
