"""The simulator against its slow twin, to the bit: every policy and step, on both clocks, all along a run."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from pull_env.kernels import state
from pull_env.kernels import statistics as tally
from pull_env.kernels.faults.events import CELL_BITS
from pull_env.kernels.heap import BRANCHES_LOG
from pull_env.policy.policy import (
    Announce,
    Cycle,
    Inspect,
    Last,
    Lookup,
    Memory,
    Policy,
    Probe,
    Recall,
    Search,
    Send,
    Take,
)
from pull_env.scenario.scenario import Pool, Prices, Scenario
from pull_env.simulation.kernel_data.step_records import encode, needs_calendar
from pull_env.simulation.simulator import Simulator
from tests.oracles.naive import Naive, wait_bin
from tests.oracles.naive_faults import Troubled

TALLIES = ("accepted", "blocked", "waited", "queue_sum", "wait_sum", "service_sum")
AREAS = ("area", "busy_area")
COUNTS = ("pulls", "removes", "probes", "updates")
TROUBLES = ("lost_customers", "stale_messages", "lost_messages")
KEEP_ALL = (
    state.KEEP_AGE
    | state.KEEP_QUEUE_INDEX
    | state.KEEP_ROUTER_INDEX
    | state.KEEP_MEMORY
    | state.KEEP_OBSERVATION
    | state.KEEP_HISTORY
)

SCENARIOS = {
    "finite buffers": Scenario((Pool(3, 1.0, 2), Pool(2, 2.5, 3)), routers=3, load=0.9),
    "infinite buffers": Scenario((Pool(4, 1.5), Pool(3, 0.5)), routers=3, load=0.85),
    "unequal shares": Scenario(
        (Pool(3, 1.0, 4), Pool(4, 2.0)), routers=4, load=0.8, shares=(0.55, 0.3, 0.15, 0)
    ),
    "one router": Scenario((Pool(3, 0.7, 1), Pool(3, 2.0)), routers=1, load=0.95),
    "equal rates": Scenario((Pool(2, 1.2), Pool(3, 1.2, 3), Pool(2, 1.2, 1)), routers=2, load=0.9),
    "overloaded": Scenario((Pool(2, 1.0, 3), Pool(1, 3.0, 2)), routers=2, arrival_rate=9.0),
    "more routers than servers": Scenario((Pool(1, 1.0, 5), Pool(1, 2.0)), routers=5, load=0.7),
}
ANNOUNCEMENTS = {
    "pull": Announce(),
    "pull-min": Announce(recipient="fewest"),
    "pull-min(2)": Announce(recipient="fewest", sample=2),
    "stale": Announce(withdraw=False),
    "stale, to the fewest": Announce(withdraw=False, recipient="fewest"),
    "below 2": Announce(threshold=2),
    "below 4, to the fewest of 3": Announce(threshold=4, recipient="fewest", sample=3),
    "stale, below 3": Announce(threshold=3, withdraw=False),
}
BLIND = {
    "random": (Send(),),
    "weighted": (Send(weights="rate"),),
    "own pool": (Send(pool=1),),
    "round robin": (Cycle(),),
    "weighted round robin": (Cycle(weights="rate"),),
    "shortest queue": (Inspect(),),
    "shortest delay": (Inspect(rank="delay"),),
    "fastest of the shortest": (Inspect(rank="queue then speed"),),
    "least work": (Inspect(rank="work"),),
    "two": (Probe(),),
    "balanced": (Probe(weights="rate", replace=True),),
    "until idle": (Probe(weights="rate", at_most=8, stop_at=0.0),),
    "reservation": (Probe(pool=0, at_most=5, stop_at=1.5),),
    "delay of three": (Probe(at_most=3, rank="delay"),),
    "queue then speed of three": (Probe(at_most=3, rank="queue then speed"),),
    "work of three": (Probe(at_most=3, rank="work"),),
    "search": (Search(),),
    "search among three": (Search(at_most=3),),
    "recall": (Recall(), Probe(at_most=3)),
    "recall or search": (Recall(), Search(at_most=2)),
    "recall in a pool": (Recall(pool=1), Probe(pool=1, weights="uniform", stop_at=0.5)),
    "two and the remembered": (Probe(recall=True),),
    "by delay and the remembered": (
        Probe(weights="rate", at_most=3, rank="delay", replace=True, recall=True),
    ),
}
PULLED = {
    "random": (Take(), Send()),
    "oldest": (Take(order="oldest"), Send()),
    "fastest": (Take(order="fastest"), Send(weights="rate")),
    "pool by pool": (Take(pool=1, order="oldest"), Take(pool=0, order="fastest"), Cycle(weights="rate")),
    "then probe": (Take(), Probe(weights="rate", stop_at=0.0)),
    "then recall": (Take(order="fastest"), Recall(), Probe(at_most=1)),
    "but inspect": (Take(pool=0), Inspect()),
    "then search": (Take(order="fastest"), Search()),
    "last": (Last(), Probe()),
    "unused": (Probe(),),
}


class Exponential:
    """A feed of exponential gaps and requirements, a few at a time, and no more than `customers`."""

    def __init__(self, rate, customers, sequence):
        self.generator, self.rate, self.left = np.random.default_rng(sequence), rate, customers

    def draw(self, count):
        count = min(count, 97, self.left)
        self.left -= count
        return self.generator.exponential(1 / self.rate, count), self.generator.standard_exponential(count)


class Simultaneous(Exponential):
    """Gaps and requirements in small whole numbers, 0 too, so that departures and arrivals fall together."""

    def draw(self, count):
        gaps, sizes = super().draw(count)
        return np.floor(gaps + 0.5), np.floor(sizes + 0.7)


def feeds(scenario, kind=Exponential, customers=1 << 40):
    return lambda sequence: kind(scenario.total_arrival_rate, customers, sequence)


def all_policies():
    """Return every kind of policy declared here, and whatever `baselines` has registered."""
    table = [Policy(name, steps) for name, steps in BLIND.items()]
    memories = {
        "three of all": Memory(3, by_pool=False),
        "one a pool": Memory(1),
        "all": Memory(99, by_pool=False),
    }
    for (kind, memory), name in itertools.product(memories.items(), ("recall", "two and the remembered")):
        table.append(Policy(f"{kind}: {name}", BLIND[name], memory=memory))
    for (kind, announce), (name, steps) in itertools.product(ANNOUNCEMENTS.items(), PULLED.items()):
        table.append(Policy(f"{kind}: {name}", steps, announce))
    for entry in baselines.POLICIES.values():
        needed = {k: 2 for k, p in entry.arguments.items() if p.default is p.empty}
        table.append(baselines.make(entry.name, **needed))
    return table


def pair(scenario, policy, seed, episode=0, workload=None, extra_flags=0):
    """Return a simulator at its first customer, a function that runs it, and its twin."""
    simulator = Simulator(
        scenario,
        policy.steps,
        policy.announce,
        memory=policy.memory,
        extra_flags=extra_flags,
        workload=workload,
    )
    simulator.reset(seed, episode)
    chain = encode(policy.steps, scenario)
    twin = Troubled if simulator.arrays.head["flags"][0] & state.FAULTS else Naive
    naive = twin(scenario, policy, seed, episode, workload, levels=state.LEVELS)
    return simulator, lambda customers: simulator.run(chain, customers), naive


def compare(simulator, naive):
    """Check that both are in the same state, and that the state makes sense."""
    kernel, twin = state_of(simulator), state_of_twin(naive)
    different = {key: (value, twin[key]) for key, value in kernel.items() if value != twin[key]}
    assert not different, f"kernel and twin differ at tick {naive.now}: {different}"
    check_conservation(naive)
    check_indices(simulator)


def state_of(simulator):
    """Return all that a simulator keeps, as plain values by name; what it does not maintain is left out."""
    arrays, scenario = simulator.arrays, simulator.scenario
    head, kept = arrays.head[0], int(arrays.head["flags"][0])
    J, R, calendar = len(scenario.pools), scenario.routers, bool(kept & state.CALENDAR)
    tally.update_areas(simulator.address)
    found = {
        **{name: int(head[name]) for name in COUNTS},
        "now": float(head["now"]),
        "router": int(head["router"]),
        "size": float(head["size"]),
        "wait": float(head["wait"]),
        "lost": bool(head["blocked"]),
        "streams": arrays.streams.tolist(),
        "queues": arrays.servers["queue"].tolist(),
        "announced": (arrays.servers["holder"] >= 0).tolist(),
        "pool inside": arrays.pools["customers"].tolist(),
        "pool busy": arrays.pools["busy"].tolist(),
        "tallies": [[pool[name].item() for name in TALLIES] for pool in arrays.pools],
        "areas": [pool[name].item() for pool in arrays.pools for name in AREAS],
        "law": [{int(k): int(row[k]) for k in np.flatnonzero(row)} for row in arrays.histogram.T],
        "held": arrays.routers["held"].tolist(),
        "last": arrays.routers["last_announced"].tolist(),
        "slots": [[slots(arrays, r, j) for j in range(J)] for r in range(R)],
        "turns": [
            [int(row["cycle"]), *arrays.lists[r]["cycle"].tolist()] for r, row in enumerate(arrays.routers)
        ],
        "credit": arrays.lists["credit"].tolist(),
    }
    if arrays.histogram.any() or arrays.pools["blocked"].any():
        answers = int(head["probed_count"])
        asked = range(scenario.servers) if answers < 0 else arrays.probed[:answers].tolist()
        found["last customer"] = (int(head["last_router"]), int(head["last_server"]), list(asked))
    if kept & state.KEEP_AGE:
        found["by age"] = [[by_age(arrays, r, j) for j in range(J)] for r in range(R)]
    if kept & state.KEEP_QUEUE_INDEX:
        found["by queue"] = arrays.by_queue.order.tolist()
    if kept & state.KEEP_ROUTER_INDEX:
        found["by held"] = arrays.by_held.order.tolist()
    if kept & state.KEEP_MEMORY:
        found["memory"] = [
            [[place for place in places(row) if place[0] >= 0] for row in rows] for rows in arrays.memory
        ]
    if kept & state.KEEP_OBSERVATION:
        found["seen"] = arrays.routers[["last_arrival", "recent_gap", "recent_empty"]].tolist()
        found["answers"] = arrays.lists[["probed_wait", "probed_idle"]].tolist()
        found["came"] = arrays.lists["mean_received"].tolist()
    if kept & state.FAULTS:
        found["events"] = events(arrays)
        found["troubles"] = [int(head[name]) for name in TROUBLES]
        found["asking"], found["doomed"] = float(head["probe_time"]), bool(head["doomed"])
        found["until"] = arrays.health[["period", "period_end"]].tolist()
    if kept & state.KEEP_HISTORY:
        found["laws"] = [[told_by(law) for law in row] for row in arrays.histories]
    if calendar:
        found["departures due"] = [due(arrays, server) for server in range(scenario.servers)]
    return found


def places(row):
    """Return what stands in the places of a router's memory: servers, lengths and times."""
    return zip(*(row[name].tolist() for name in ("server", "queue", "time")), strict=True)


def told_by(law):
    """Return how many answers a router got of a pool, the last of them in order, and what it made of them."""
    told, size = int(law["count"]), law["queues"].size
    kept = [int(law["queues"][k % size]) for k in range(max(0, told - size), told)]
    return told, kept, float(law["reservation"])


def slots(arrays, router, pool):
    """Return the servers whose messages a router holds, by place; each must know its own place."""
    if arrays.slots.shape[0] != len(arrays.routers):
        return []  # servers announce nothing
    first = int(arrays.pools["start"][pool])
    listed = arrays.slots[router, first : first + arrays.lists["held"][router, pool]].tolist()
    for place, server in enumerate(listed):
        if arrays.head["flags"][0] & (state.STALE | state.FAULTS):
            assert arrays.messages[router, server] == place
        else:
            assert arrays.servers[["slot", "holder"]][server].item() == (place, router)
    return listed


def by_age(arrays, router, pool):
    """Return the same servers along the chain from the oldest message to the newest, which must lead back."""
    chain, at, before = [], int(arrays.lists["oldest"][router, pool]), -1
    while at >= 0:
        assert arrays.ages["older"][at] == before
        chain.append(at % len(arrays.servers))
        before, at = at, int(arrays.ages["newer"][at])
    assert arrays.lists["newest"][router, pool] == before
    return chain


def due(arrays, server):
    """Return when each customer of a server will depart; the last time is when all work there is done."""
    work, cell = arrays.work[server], int(arrays.work["first"][server])
    heap = arrays.departure_heap[: arrays.head["departures"][0]]
    times = heap["due"][heap["key"] == server].tolist()
    for _ in range(1, arrays.servers["queue"][server]):
        times.append(float(arrays.waiting["due"][cell]))
        cell = int(arrays.waiting["next"][cell])
    assert not times or times[-1] == work["work_end"]
    return times


def events(arrays):
    """Return the pending events in the order in which they will happen."""
    rows = []
    for when, key in sorted(arrays.event_heap[: arrays.head["pending_events"][0]].tolist()):
        event = arrays.events[key & (1 << CELL_BITS) - 1]
        rows.append((when, key >> CELL_BITS, *event[["kind", "server", "router", "number"]].tolist()))
    return rows


def distinct(lists):
    """Return the lists that are not the same object."""
    return list({id(one): one for one in lists}.values())


def state_of_twin(naive):
    """Return the same of the twin."""
    pools, servers, routers = naive.pools, naive.servers, naive.routers
    naive.settle(pools)
    areas = [pool.tally[name] for pool in pools for name in AREAS]
    placed = naive.count["arrivals"] - (naive.router is not None)
    return {
        **{name: naive.count[name] for name in COUNTS},
        "now": naive.now,
        "router": naive.router.number if naive.router else -1,
        "size": naive.size,
        "wait": naive.wait,
        "lost": naive.lost,
        "streams": [stream.words for stream in naive.streams],
        "queues": [server.queue for server in servers],
        "announced": [server.announced for server in servers],
        "pool inside": [sum(server.queue for server in pool.servers) for pool in pools],
        "pool busy": [sum(server.queue > 0 for server in pool.servers) for pool in pools],
        "tallies": [[pool.tally[name] for name in TALLIES] for pool in pools],
        "areas": areas if naive.feed is None else pytest.approx(areas, rel=1e-9, abs=1e-9),  # ticks are exact
        "law": [dict(pool.law) for pool in pools],
        "held": [len(router.by_age) for router in routers],
        "slots": [[[s.number for s in router.slots[pool]] for pool in pools] for router in routers],
        "turns": [[router.turn[group] for group in [naive, *pools]] for router in routers],
        "credit": [[router.credit[pool] for pool in pools] for router in routers],
        "by age": [[[s.number for s in r.by_age if s.pool is pool] for pool in pools] for r in routers],
        "by queue": [server.number for pool in pools for server in pool.by_queue.items],
        "by held": [router.number for router in naive.by_held.items],
        "memory": [
            [
                [(s.number, *known) for s, *known in entries if s]
                for entries in distinct(router.memory.values())
            ]
            for router in routers
        ],
        "last": [router.last.number if router.last else -1 for router in routers],
        "seen": [(router.seen, router.recent["gap"], router.recent["empty"]) for router in routers],
        "answers": [
            [(router.recent["answer", pool], router.recent["idle", pool]) for pool in pools]
            for router in routers
        ],
        "came": [[router.came[pool] for pool in pools] for router in routers],
        "laws": [
            [(len(router.told[p]), router.told[p][-16:], float(router.reservation[p])) for p in pools]
            for router in routers
        ],
        "last customer": placed
        and (naive.sender.number, naive.target.number, [server.number for server in naive.asked]),
        "departures due": [server.departures for server in servers],
        **(state_of_troubles(naive) if isinstance(naive, Troubled) else {}),
    }


def state_of_troubles(naive):
    acts = {"deliver": 0, "remove": 1, "repeat": 2, "switch": 3, "open": 4, "close": 5, "restart": 6}
    rows = []
    for due, order, act, arguments in naive.events:
        row = {"Router": -1, "Server": -1, "Pool": -1, "int": 0}
        row.update((type(each).__name__, getattr(each, "number", each)) for each in arguments)
        server = row["Pool"] if act.__name__ in ("open", "close") else row["Server"]
        rows.append((due, order, acts[act.__name__], server, row["Router"], row["int"]))
    return {
        "events": sorted(rows),
        "troubles": [naive.count[name] for name in TROUBLES],
        "asking": naive.asking,
        "doomed": naive.doomed,
        "until": [(server.period, server.until) for server in naive.servers],
    }


def check_conservation(naive):
    """Customers are neither lost nor made, and neither are the messages of a protocol that withdraws them."""
    inside = sum(server.queue for server in naive.servers)
    blocked = sum(pool.tally["blocked"] for pool in naive.pools)
    at_hand = naive.router is not None
    assert naive.count["arrivals"] == naive.count["departures"] + blocked + inside + at_hand
    assert all(server.queue <= server.pool.buffer for server in naive.servers)
    held = [server for router in naive.routers for server in router.by_age]
    if isinstance(naive, Troubled):
        assert all(len(set(router.by_age)) == len(router.by_age) for router in naive.routers)
    elif naive.announce and naive.announce.withdraw:
        available = [server for server in naive.servers if server.queue < naive.announce.threshold]
        assert sorted(server.number for server in held) == [server.number for server in available]
        assert [server for server in naive.servers if server.announced] == available
    elif not naive.announce:
        assert not held


def check_indices(simulator):
    """The orders by level that the kernels keep, and the heap of departures, are what they promise."""
    arrays, kept = simulator.arrays, int(simulator.arrays.head["flags"][0])
    if kept & state.KEEP_QUEUE_INDEX:
        sizes = [pool.size for pool in simulator.scenario.pools]
        check_index(arrays.by_queue, arrays.servers["queue"], sizes)
    if kept & state.KEEP_ROUTER_INDEX:
        check_index(arrays.by_held, arrays.routers["held"], [simulator.scenario.routers])
    if kept & state.FAULTS:
        check_events(arrays)
    if kept & state.CALENDAR:
        heap = arrays.departure_heap[: arrays.head["departures"][0]].tolist()
        assert sorted(server for _, server in heap) == np.flatnonzero(arrays.servers["queue"]).tolist()
        assert all(heap[(k - 1) >> BRANCHES_LOG] < heap[k] for k in range(1, len(heap)))


def check_events(arrays):
    """The events are in a heap, and every cell is either pending or free."""
    head = arrays.head[0]
    heap = arrays.event_heap[: head["pending_events"]].tolist()
    assert all(heap[(k - 1) >> BRANCHES_LOG] < heap[k] for k in range(1, len(heap)))
    pending, free, at = [key & (1 << CELL_BITS) - 1 for _, key in heap], [], int(head["free_event"])
    while at < arrays.events.size:
        free.append(at)
        at = int(arrays.events["next"][at])
    assert sorted(pending + free) == list(range(arrays.events.size))
    assert head["closed_servers"] == sum(not is_open(arrays, server) for server in range(head["n"]))


def is_open(arrays, server):
    pool = arrays.servers["pool"][server]
    return arrays.health["period"][server] % 2 == 0 and arrays.conditions["open"][pool] == 1


def check_index(index, levels, sizes):
    top, end = index.above.shape[1] - 2, 0
    assert index.position[index.order].tolist() == list(range(sum(sizes)))
    for group, size in enumerate(sizes):
        first, end = end, end + size
        items = index.order[first:end]
        assert sorted(items.tolist()) == list(range(first, end))
        inside = np.minimum(levels[items], top)
        assert (np.diff(inside) >= 0).all()
        assert index.lowest[group] == inside[0]
        counts = [int((inside >= level).sum()) for level in range(int(inside[-1]) + 2)]
        assert index.above[group, : len(counts)].tolist() == counts
        assert not index.above[group, len(counts) :].any()


def placed_by(naive):
    return sum(pool.tally["accepted"] + pool.tally["blocked"] for pool in naive.pools)


def run_both(simulator, run, naive, stops):
    """Run both from stop to stop and compare them at each."""
    compare(simulator, naive)
    for customers in stops:
        before = placed_by(naive)
        placed = run(customers)
        naive.run(customers)
        assert placed == placed_by(naive) - before
        assert placed == customers or not naive.router
        compare(simulator, naive)


@pytest.mark.parametrize("policy", all_policies(), ids=lambda policy: policy.name)
@pytest.mark.parametrize("clock", ["markov", "calendar"])
def test_every_policy(policy, clock):
    if clock == "markov" and needs_calendar(policy.steps):
        pytest.skip("only the calendar clock knows the work left")
    for seed, scenario in enumerate(SCENARIOS.values()):
        workload = feeds(scenario) if clock == "calendar" else None
        run_both(*pair(scenario, policy, seed, workload=workload), stops=(1, 40, 159))


@pytest.mark.parametrize(
    "kind", [None, Exponential, Simultaneous], ids=["markov", "exponential", "simultaneous"]
)
@pytest.mark.parametrize("name", ["pull-min", "jiq", "jbt(3)", "sed", "probe-until-idle"])
def test_long_run(name, kind):
    scenario = Scenario((Pool(6, 0.5, 8), Pool(5, 1.0), Pool(4, 2.0, 1)), routers=3, load=0.9)
    workload = kind and feeds(scenario, kind)
    run_both(
        *pair(scenario, baselines.make(name), 7, 1, workload, extra_flags=KEEP_ALL), stops=(500, 1000, 1500)
    )


@pytest.mark.parametrize(
    "memory", [Memory(10), Memory(20, by_pool=False), Memory(34, by_pool=False)], ids=["pool", "most", "all"]
)
@pytest.mark.parametrize("steps", [(Take(), Recall(), Send()), (Probe(at_most=3, recall=True),)])
def test_memories_of_several_vectors(memory, steps):
    """The kernels look at eight places at a time; no pool but the first begins where eight of them do."""
    scenario = Scenario((Pool(19, 1.0), Pool(15, 0.6)), routers=2, load=0.95)
    policy = Policy("remembers", steps, Announce(threshold=1), memory)
    run_both(*pair(scenario, policy, 4), stops=(100, 300, 600))


def test_a_threshold_without_limit():
    """At full load the logarithm has none, and neither have the buffers: every server is always available."""
    scenario = Scenario((Pool(2, 0.5), Pool(1, 2.0)), routers=2, load=1.0)
    policy = Policy("no limit", (Take(), Recall(), Send()), Announce(growth=1.0), Memory(2))
    assert policy.announce.on(scenario).threshold == 2**30
    run_both(*pair(scenario, policy, 3), stops=(1, 40, 300))


@pytest.mark.parametrize("free", [True, False])
def test_lookup(free):
    scenario, limits = SCENARIOS["infinite buffers"], (1, 3, 0, 2, 4, 1, 1)
    entries = int(np.prod(np.array(limits) + 1))
    table = tuple(np.random.default_rng(5).integers(7, size=entries).tolist())
    policy = Policy("table", (Lookup(limits, table, free),))
    run_both(*pair(scenario, policy, 3), stops=(1, 40, 300))


@pytest.mark.parametrize("customers", [0, 1, 2, 96, 97, 98, 250])
def test_feed_ends(customers):
    scenario = SCENARIOS["finite buffers"]
    policy = baselines.make("pull")
    stops = (0, 1, 95, 1, 1, 100, 100)
    run_both(*pair(scenario, policy, 1, workload=feeds(scenario, customers=customers)), stops)


def test_wait_bins():
    waits = [0.0, 5e-324, *(2.0**k * (1 + part) for k in range(-40, 60) for part in (0, 0.3, 1 - 2**-52))]
    assert [tally.wait_bin.py_func(wait) for wait in waits] == [wait_bin(wait) for wait in waits]


@st.composite
def systems(draw):
    """Draw a small scenario, a policy of random steps and all that `pair` takes beyond them."""
    rates = st.sampled_from([0.5, 1.0, 2.0]) | st.floats(0.2, 4.0)
    pools = draw(
        st.lists(
            st.builds(Pool, st.integers(1, 4), rates, st.none() | st.integers(1, 4)), min_size=1, max_size=3
        )
    )
    weights = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4).filter(any))
    scenario = Scenario(
        tuple(pools),
        routers=len(weights),
        load=draw(st.floats(0.2, 1.5)),
        shares=draw(st.sampled_from([None, tuple(weight / sum(weights) for weight in weights)])),
        prices=draw(st.builds(Prices, st.sampled_from([1.0, 0.0, 3.0]), st.just(0.05) | st.floats(0, 2))),
    )
    announce = draw(st.none() | announcements)
    some, last = chains(len(pools), announce is not None)
    memory = draw(st.builds(Memory, st.integers(1, 5), st.booleans()))
    policy = Policy("random", (*draw(st.lists(some, max_size=3)), draw(last)), announce, memory)
    kinds = [Exponential, Simultaneous] if needs_calendar(policy.steps) else [None, Exponential, Simultaneous]
    kind = draw(st.sampled_from(kinds))
    return {
        "scenario": scenario,
        "policy": policy,
        "seed": draw(st.integers(0, 2**32)),
        "episode": draw(st.integers(0, 3)),
        "workload": kind and feeds(scenario, kind, draw(st.integers(100, 400))),
        "extra_flags": draw(st.sampled_from([0, KEEP_ALL])),
    }


growths = st.none() | st.floats(0, 3)
announcements = st.builds(Announce, st.integers(1, 4), st.booleans(), growth=growths) | st.builds(
    Announce, st.integers(1, 4), st.booleans(), st.just("fewest"), st.none() | st.integers(1, 3), growths
)


def chains(pools, messages):
    """Return the steps that may fail to act and those that cannot, with all their parameters."""
    pool = st.none() | st.integers(0, pools - 1)
    targets = st.tuples(pool, st.sampled_from(["uniform", "rate"])).map(
        lambda t: t if t[0] is None else (t[0], "uniform")
    )
    ranks = st.sampled_from(["queue", "delay", "queue then speed", "work"])
    stop_at = st.none() | st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 3)
    probes = st.builds(
        lambda target, *others: Probe(*target, *others),
        targets,
        st.integers(1, 6),
        stop_at,
        ranks,
        st.booleans(),
        st.booleans(),
    ).filter(lambda step: not (step.recall and step.rank == "work"))
    sends = targets.map(lambda target: Send(*target))
    searches = st.builds(Search, st.integers(1, 6))
    cycles = st.builds(Cycle, st.sampled_from(["uniform", "rate"]))
    takes = st.builds(Take, pool, st.sampled_from(["random", "oldest", "fastest"]))
    recalls = st.builds(Recall, pool)
    told = takes | st.builds(Last)
    return (told | recalls if messages else recalls), (
        sends | probes | searches | st.builds(Inspect, ranks) | cycles
    )


@settings(max_examples=300, deadline=None)
@given(systems(), st.lists(st.integers(0, 60), min_size=1, max_size=4), st.sampled_from([2, 3, state.LEVELS]))
def test_random_systems(system, stops, levels):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEVELS", levels)  # few levels: most queues are beyond the last one told apart
        run_both(*pair(**system), stops)
