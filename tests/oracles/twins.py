"""The simulator and its naive twin, run side by side and compared bit by bit."""

import numpy as np
import pytest

from pull_env.kernels import state, statistics
from pull_env.kernels.faults.events import CELL_BITS
from pull_env.kernels.heap import BRANCHES_LOG
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from tests.oracles.naive import Naive
from tests.oracles.naive_faults import NaiveFaults

TALLIES = ("accepted", "blocked", "waited", "queue_sum", "wait_sum", "service_sum")
AREAS = ("area", "busy_area")
COUNTS = ("pulls", "removes", "probes", "updates")
FAULT_COUNTS = ("lost_customers", "stale_messages", "lost_messages")


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
    twin = NaiveFaults if simulator.arrays.head["flags"][0] & state.FAULTS else Naive
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
    """Return all that a simulator maintains, as plain values by name."""
    arrays, scenario = simulator.arrays, simulator.scenario
    head, kept = arrays.head[0], int(arrays.head["flags"][0])
    J, R, calendar = len(scenario.pools), scenario.routers, bool(kept & state.CALENDAR)
    statistics.update_areas(simulator.address)
    values = {
        **{name: int(head[name]) for name in COUNTS},
        "now": float(head["now"]),
        "router": int(head["router"]),
        "size": float(head["size"]),
        "wait": float(head["wait"]),
        "blocked": bool(head["blocked"]),
        "streams": arrays.streams.tolist(),
        "queues": arrays.servers["queue"].tolist(),
        "announced": (arrays.servers["holder"] >= 0).tolist(),
        "pool inside": arrays.pools["customers"].tolist(),
        "pool busy": arrays.pools["busy"].tolist(),
        "tallies": [[pool[name].item() for name in TALLIES] for pool in arrays.pools],
        "areas": [pool[name].item() for pool in arrays.pools for name in AREAS],
        "histogram": [{int(k): int(row[k]) for k in np.flatnonzero(row)} for row in arrays.histogram.T],
        "held": arrays.routers["held"].tolist(),
        "last": arrays.routers["last_announced"].tolist(),
        "slots": [[slots(arrays, r, j) for j in range(J)] for r in range(R)],
        "cycles": [
            [int(row["cycle"]), *arrays.lists[r]["cycle"].tolist()] for r, row in enumerate(arrays.routers)
        ],
        "credit": arrays.lists["credit"].tolist(),
    }
    if arrays.histogram.any() or arrays.pools["blocked"].any():
        count = int(head["probed_count"])
        probed = range(scenario.servers) if count < 0 else arrays.probed[:count].tolist()
        values["last customer"] = (int(head["last_router"]), int(head["last_server"]), list(probed))
    if kept & state.KEEP_AGE:
        values["by age"] = [[by_age(arrays, r, j) for j in range(J)] for r in range(R)]
    if kept & state.KEEP_QUEUE_INDEX:
        values["by queue"] = arrays.by_queue.order.tolist()
    if kept & state.KEEP_ROUTER_INDEX:
        values["by held"] = arrays.by_held.order.tolist()
    if kept & state.KEEP_MEMORY:
        values["memory"] = [
            [[entry for entry in entries(row) if entry[0] >= 0] for row in rows] for rows in arrays.memory
        ]
    if kept & state.KEEP_OBSERVATION:
        values["recent"] = arrays.routers[["last_arrival", "recent_gap", "recent_empty"]].tolist()
        values["answers"] = arrays.lists[["probed_wait", "probed_idle"]].tolist()
        values["mean received"] = arrays.lists["mean_received"].tolist()
    if kept & state.FAULTS:
        values["events"] = events(arrays)
        values["faults"] = [int(head[name]) for name in FAULT_COUNTS]
        values["probe time"], values["doomed"] = float(head["probe_time"]), bool(head["doomed"])
        values["period end"] = arrays.health[["period", "period_end"]].tolist()
    if kept & state.KEEP_HISTORY:
        values["histories"] = [[answers_in(history) for history in row] for row in arrays.histories]
    if calendar:
        values["departures due"] = [due(arrays, server) for server in range(scenario.servers)]
    return values


def entries(row):
    """Yield the entries of a router's memory of a group: server, length and time."""
    return zip(*(row[name].tolist() for name in ("server", "queue", "time")), strict=True)


def answers_in(history):
    """Return the number of answers of a pool, the recent ones, and the reservation."""
    count, size = int(history["count"]), history["queues"].size
    kept = [int(history["queues"][k % size]) for k in range(max(0, count - size), count)]
    return count, kept, float(history["reservation"])


def slots(arrays, router, pool):
    """Return the servers whose messages a router holds; each must know its slot."""
    if arrays.slots.shape[0] != len(arrays.routers):
        return []  # servers announce nothing
    first = int(arrays.pools["start"][pool])
    listed = arrays.slots[router, first : first + arrays.lists["held"][router, pool]].tolist()
    for slot, server in enumerate(listed):
        if arrays.head["flags"][0] & (state.STALE | state.FAULTS):
            assert arrays.messages[router, server] == slot
        else:
            assert arrays.servers[["slot", "holder"]][server].item() == (slot, router)
    return listed


def by_age(arrays, router, pool):
    """Return the same servers by age, along a chain that must be linked both ways."""
    chain, at, before = [], int(arrays.lists["oldest"][router, pool]), -1
    while at >= 0:
        assert arrays.ages["older"][at] == before
        chain.append(at % len(arrays.servers))
        before, at = at, int(arrays.ages["newer"][at])
    assert arrays.lists["newest"][router, pool] == before
    return chain


def due(arrays, server):
    """Return when each customer of a server will depart; the last time ends all work."""
    work, cell = arrays.work[server], int(arrays.work["first"][server])
    heap = arrays.departure_heap[: arrays.head["departures"][0]]
    times = heap["due"][heap["key"] == server].tolist()
    for _ in range(1, arrays.servers["queue"][server]):
        times.append(float(arrays.waiting["due"][cell]))
        cell = int(arrays.waiting["next"][cell])
    assert not times or times[-1] == work["work_end"]
    return times


def events(arrays):
    """Return the pending events in order."""
    rows = []
    for due, key in sorted(arrays.event_heap[: arrays.head["pending_events"][0]].tolist()):
        event = arrays.events[key & (1 << CELL_BITS) - 1]
        rows.append((due, key >> CELL_BITS, *event[["kind", "server", "router", "number"]].tolist()))
    return rows


def distinct(lists):
    """Return the lists that are not the same object."""
    return list({id(one): one for one in lists}.values())


def state_of_twin(naive):
    """Return the same of the twin."""
    pools, servers, routers = naive.pools, naive.servers, naive.routers
    naive.update_areas(pools)
    areas = [pool.tally[name] for pool in pools for name in AREAS]
    placed = naive.count["arrivals"] - (naive.router is not None)
    return {
        **{name: naive.count[name] for name in COUNTS},
        "now": naive.now,
        "router": naive.router.number if naive.router else -1,
        "size": naive.size,
        "wait": naive.wait,
        "blocked": naive.blocked,
        "streams": [stream.words for stream in naive.streams],
        "queues": [server.queue for server in servers],
        "announced": [server.announced for server in servers],
        "pool inside": [sum(server.queue for server in pool.servers) for pool in pools],
        "pool busy": [sum(server.queue > 0 for server in pool.servers) for pool in pools],
        "tallies": [[pool.tally[name] for name in TALLIES] for pool in pools],
        "areas": areas if naive.feed is None else pytest.approx(areas, rel=1e-9, abs=1e-9),  # ticks are exact
        "histogram": [dict(pool.histogram) for pool in pools],
        "held": [len(router.by_age) for router in routers],
        "slots": [[[s.number for s in router.slots[pool]] for pool in pools] for router in routers],
        "cycles": [[router.cycle_position[group] for group in [naive, *pools]] for router in routers],
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
        "recent": [(router.last_arrival, router.recent["gap"], router.recent["empty"]) for router in routers],
        "answers": [
            [(router.recent["answer", pool], router.recent["idle", pool]) for pool in pools]
            for router in routers
        ],
        "mean received": [[router.mean_received[pool] for pool in pools] for router in routers],
        "histories": [
            [(len(router.answers[p]), router.answers[p][-16:], float(router.reservation[p])) for p in pools]
            for router in routers
        ],
        "last customer": placed
        and (naive.last_router.number, naive.last_server.number, [server.number for server in naive.probed]),
        "departures due": [server.departures for server in servers],
        **(state_of_faults(naive) if isinstance(naive, NaiveFaults) else {}),
    }


def state_of_faults(naive):
    kinds = (
        "receive_pull",
        "receive_remove",
        "repeat_pull",
        "switch_server",
        "open_pool",
        "close_pool",
        "restart_router",
    )
    rows = []
    for due, order, action, arguments in naive.events:
        row = {"Router": -1, "Server": -1, "Pool": -1, "int": 0}
        row.update((type(each).__name__, getattr(each, "number", each)) for each in arguments)
        server = row["Pool"] if action.__name__ in ("open_pool", "close_pool") else row["Server"]
        rows.append((due, order, kinds.index(action.__name__), server, row["Router"], row["int"]))
    return {
        "events": sorted(rows),
        "faults": [naive.count[name] for name in FAULT_COUNTS],
        "probe time": naive.probe_time,
        "doomed": naive.doomed,
        "period end": [(server.period, server.until) for server in naive.servers],
    }


def check_conservation(naive):
    """Check that customers, and messages of a protocol that withdraws, are conserved."""
    inside = sum(server.queue for server in naive.servers)
    blocked = sum(pool.tally["blocked"] for pool in naive.pools)
    at_hand = naive.router is not None
    assert naive.count["arrivals"] == naive.count["departures"] + blocked + inside + at_hand
    assert all(server.queue <= server.pool.buffer for server in naive.servers)
    held = [server for router in naive.routers for server in router.by_age]
    if isinstance(naive, NaiveFaults):
        assert all(len(set(router.by_age)) == len(router.by_age) for router in naive.routers)
    elif naive.announce and naive.announce.withdraw:
        available = [server for server in naive.servers if server.queue < naive.announce.threshold]
        assert sorted(server.number for server in held) == [server.number for server in available]
        assert [server for server in naive.servers if server.announced] == available
    elif not naive.announce:
        assert not held


def check_indices(simulator):
    """Check the indices by level and the heap of departures."""
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
    """Check that events form a heap, and that every cell is pending or free."""
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


def assigned_by(naive):
    return sum(pool.tally["accepted"] + pool.tally["blocked"] for pool in naive.pools)


def run_both(simulator, run, naive, stops):
    """Run both from stop to stop and compare them at each."""
    compare(simulator, naive)
    for customers in stops:
        before = assigned_by(naive)
        assigned = run(customers)
        naive.run(customers)
        assert assigned == assigned_by(naive) - before
        assert assigned == customers or not naive.router
        compare(simulator, naive)
