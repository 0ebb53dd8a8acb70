"""Scenarios, policies and feeds to compare the simulator and its naive twin."""

import itertools

import numpy as np
from hypothesis import strategies as st

import baselines
from pull_env.kernels import state
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
from pull_env.scenario.arrivals import Bursts
from pull_env.scenario.laws import Empirical
from pull_env.scenario.scenario import Pool, Prices, Scenario
from pull_env.simulation.kernel_data.step_records import needs_calendar

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
    """A feed of `customers` exponential gaps and requirements, a few at a time."""

    def __init__(self, rate, customers, sequence):
        self.generator, self.rate, self.remaining = np.random.default_rng(sequence), rate, customers

    def draw(self, count):
        count = min(count, 97, self.remaining)
        self.remaining -= count
        return self.generator.exponential(1 / self.rate, count), self.generator.standard_exponential(count)


class Simultaneous(Exponential):
    """Gaps and requirements in small whole numbers, so that events are simultaneous."""

    def draw(self, count):
        gaps, sizes = super().draw(count)
        return np.floor(gaps + 0.5), np.floor(sizes + 0.7)


def feeds(scenario, kind=Exponential, customers=1 << 40):
    return lambda sequence: kind(scenario.total_arrival_rate, customers, sequence)


def all_policies():
    """Return every policy declared here, and all registered in `baselines`."""
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


@st.composite
def systems(draw):
    """Draw a small scenario, a policy of random steps and other arguments of `pair`."""
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
    """Return strategies of steps that may fail to act, and of those that cannot."""
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
    by_messages = takes | st.builds(Last)
    return (by_messages | recalls if messages else recalls), (
        sends | probes | searches | st.builds(Inspect, ranks) | cycles
    )


def quick(kind):
    """Return whether any load can have such arrivals, with few phases per customer."""
    phases = getattr(kind, "lengths", [1.0])
    return not isinstance(kind, Bursts) and not empirical(kind) and min(phases) > 0.1


def empirical(kind):
    return isinstance(getattr(kind, "gaps", None), Empirical)
