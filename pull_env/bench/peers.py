"""Other simulators of the same system: the shorter of two random queues.

Each is written in the style of its manual, and returns the mean response, so that a test can check that it
simulates what `simulate` does. None has routers: without messages from servers, R routers do what one does.
Each timing is a process of its own, since Cimba must be loaded before Numba has compiled anything:

    python -m pull_env.bench.peers NAME CUSTOMERS MARGIN SEED
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from statistics import fmean
from typing import Any

from pull_env.bench.processes import run_python
from pull_env.bench.subjects import CUSTOMERS, WarmRun, system
from pull_env.bench.timing import Measurement, throughput
from pull_env.policy.policy import Policy
from pull_env.scenario.scenario import Scenario

# Arguments: scenario, customers, how many of them at either end are not counted, seed.
Peer = Callable[[Scenario, int, int, int], float]

SERVERS = 100
SECONDS = 0.5  # that a timing of a peer takes, about


def rates_of(scenario: Scenario) -> list[float]:
    """Return the rate of every server."""
    return [pool.rate for pool in scenario.pools for _ in range(pool.size)]


def simpy(scenario: Scenario, customers: int, margin: int, seed: int) -> float:
    """Return the mean response: one process per customer, one resource per server."""
    library, draw = import_module("simpy"), random.Random(seed)
    rates, responses = rates_of(scenario), []
    env = library.Environment()
    servers = [library.Resource(env) for _ in rates]
    length = [0] * len(rates)

    def customer(number: int, k: int) -> Iterator[Any]:
        arrived = env.now
        length[k] += 1
        with servers[k].request() as request:
            yield request
            yield env.timeout(draw.expovariate(rates[k]))
        length[k] -= 1
        if margin <= number < customers - margin:
            responses.append(env.now - arrived)

    def arrivals() -> Iterator[Any]:
        for number in range(customers):
            yield env.timeout(draw.expovariate(scenario.total_arrival_rate))
            env.process(customer(number, min(draw.sample(range(len(rates)), 2), key=length.__getitem__)))

    env.process(arrivals())
    env.run()
    return fmean(responses)


def ciw(scenario: Scenario, customers: int, margin: int, seed: int) -> float:
    """Return the mean response: a node per server, behind one that routes in no time."""
    library: Any = import_module("ciw")
    rates = rates_of(scenario)
    distributions, leave = library.dists, library.routing.Leave

    class TwoChoices(library.routing.NodeRouting):  # type: ignore[misc]
        def next_node(self, individual: Any) -> Any:
            nodes = self.simulation.nodes  # arrivals, the first node, the servers, the exit
            chosen = random.sample(range(2, len(nodes) - 1), 2)  # from the generator that `ciw.seed` seeds
            return min((nodes[k] for k in chosen), key=lambda node: node.number_of_individuals)

    network = library.create_network(
        arrival_distributions=[distributions.Exponential(scenario.total_arrival_rate), *[None] * len(rates)],
        service_distributions=[distributions.Deterministic(0.0), *map(distributions.Exponential, rates)],
        number_of_servers=[float("inf"), *[1] * len(rates)],
        routing=library.routing.NetworkRouting([TwoChoices(), *(leave() for _ in rates)]),
    )
    library.seed(seed)
    simulation = library.Simulation(network)
    simulation.simulate_until_max_customers(customers, method="Arrive")
    return fmean(
        record.exit_date - record.arrival_date
        for record in simulation.get_all_records()
        if record.node > 1 and margin < record.id_number <= customers - margin
    )


def cimba(scenario: Scenario, customers: int, margin: int, seed: int) -> float:
    """Return the mean response: a process and a store per server."""
    return import_module("pull_env.bench.cimba_peer").mean_response(  # type: ignore[no-any-return]
        rates_of(scenario), scenario.total_arrival_rate, customers, margin, seed
    )


PEERS: dict[str, tuple[str, Peer, int]] = {  # module, peer, customers in about `SECONDS`
    "SimPy": ("simpy", simpy, 10_000),
    "Ciw": ("ciw", ciw, 1_000),
    "Cimba": ("cimba", cimba, 500_000),
}


def installed() -> list[str]:
    """Return the names of the peers that can be imported."""
    return [name for name, (module, _, _) in PEERS.items() if find_spec(module) is not None]


def time_peer(name: str, customers: int, margin: int, seed: int) -> tuple[float, float]:
    """Simulate by a peer in a new process; return the mean response and seconds.

    Args:
        name: Of the peer.
        customers: How many to simulate.
        margin: How many are not counted at the start, when the system fills, and at the end, when it empties.
        seed: Of the peer's random numbers.
    """
    words = ("-m", "pull_env.bench.peers", name, str(customers), str(margin), str(seed))
    response, seconds = json.loads(run_python(words)[1])
    return response, seconds


def compare(policy: Policy, seconds: float, timings: int) -> Iterator[Measurement]:
    """Yield the customers per second of this simulator and its peers, in turns.

    Args:
        policy: The shorter of two queues.
        seconds: Length of a timing of this simulator; that of a peer is `SECONDS`.
        timings: How many.
    """
    scenario = system(SERVERS)
    own = WarmRun(scenario, policy, seconds)
    names = installed()
    rates: dict[str, list[float]] = {name: [] for name in ("pull_env", *names)}
    for seed in range(timings):
        rates["pull_env"].extend(throughput([own], own.customers, seconds, 1))
        for name in names:
            customers = PEERS[name][2]
            rates[name].append(customers / time_peer(name, customers, customers // 10, seed)[1])
    for name, values in rates.items():
        warmup = own.warmup if name == "pull_env" else 0
        title = name if name == "pull_env" else f"{name} {version(PEERS[name][0])}"
        yield Measurement("peers", title, CUSTOMERS, tuple(values), 1, None, warmup, scenario, policy)


def main(name: str, *numbers: str) -> None:
    """Simulate by a peer; print its mean response and the seconds, as JSON."""
    peer, scenario = PEERS[name][1], system(SERVERS)
    customers, margin, seed = map(int, numbers)
    peer(scenario, 20, 0, 0)  # imports, and compiles
    start = time.perf_counter()
    response = peer(scenario, customers, margin, seed)
    print(json.dumps([response, time.perf_counter() - start]))


if __name__ == "__main__":
    main(*sys.argv[1:])
