"""Zhou, Tan and Shroff 2018: thresholds that are heavy-traffic optimal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from baselines.policies.registry import make
from baselines.reproduce.common.heavy_traffic import measure, run_at, scaled_number
from baselines.reproduce.common.study import Row, Setup, Study, make_row
from baselines.reproduce.zhou.figure import figure
from baselines.reproduce.zhou.sections import sections
from pull_env.scenario.scenario import Pool, Scenario
from pull_env.theory.exact import solve
from pull_env.theory.formulas import jiq_two_servers_mean_number

SOURCE = (
    "X. Zhou, J. Tan, N. Shroff, Heavy-traffic delay optimality in pull-based load balancing systems: "
    "necessary and sufficient conditions, Proc. ACM on Measurement and Analysis of Computing Systems 2 "
    "(2018), arXiv:1808.06911."
)
ABOUT = (
    "One router sends a customer to a random server with fewer than r customers, if there is one, and else "
    "to any server at random; r = 1 is join-idle-queue (JIQ). As rho -> 1, no policy has (1 - rho) E[N] "
    "below 1, the limit of all servers pooled into one; one that reaches 1 is optimal in heavy traffic. "
    "Random routing reaches n. The paper proves that JIQ lies strictly between, that no constant r is "
    "optimal, that an r which grows like the logarithm of the number of customers is, and that one which "
    "grows like a polynomial may be too large."
)
SOLVED = ("JSQ", "r = 2", "r = 4", "r = 8")  # by their Markov chain as well, at n = 2


@dataclass(frozen=True)
class Rule:
    """A policy for each load.

    Attributes:
        threshold: r, given x = 1 / (1 - rho), which is about E[N]; None: a policy without threshold.
        highest: The highest load measured.
        independent: Whether queues are nearly independent, so that they relax n times slower than a pooled
            server.
    """

    threshold: Callable[[float], int] | None = None
    highest: float = 1.0
    independent: bool = False


RULES = {
    "JSQ": Rule(),
    "JIQ": Rule(lambda x: 1),
    "r = 2": Rule(lambda x: 2),
    "r = 4": Rule(lambda x: 4),
    "r = 8": Rule(lambda x: 8),
    "r = 1.5 log x": Rule(lambda x: math.ceil(1.5 * math.log(x))),
    "r = x^0.5": Rule(lambda x: math.ceil(x**0.5)),
    "r = x": Rule(math.ceil, highest=0.995, independent=True),
    "r = x^1.5": Rule(lambda x: math.ceil(x**1.5), highest=0.995, independent=True),
    "random": Rule(highest=0.995, independent=True),
}


@dataclass(frozen=True)
class Sizes:
    """How much to measure.

    Attributes:
        servers: Each n.
        relaxations: By load, counted relaxation times of the pooled server, over all replications.
        solved: The highest load at which chains are solved.
    """

    servers: tuple[int, ...]
    relaxations: Mapping[float, float]
    solved: float


QUICK = Sizes((2, 10), {0.8: 600, 0.9: 600, 0.95: 600, 0.98: 300, 0.99: 100}, 0.9)
FULL = Sizes(
    (2, 4, 10), {0.8: 2000, 0.9: 2000, 0.95: 2000, 0.98: 1000, 0.99: 800, 0.995: 400, 0.998: 80}, 0.95
)


def tasks(setup: Setup) -> Iterator[Callable[[], Row]]:
    """Yield the measurements."""
    return measurements(setup, QUICK if setup.quick else FULL)


def measurements(setup: Setup, sizes: Sizes) -> Iterator[Callable[[], Row]]:
    """Yield the measurements, n by n."""
    for servers in sizes.servers:
        for index, load in enumerate(sizes.relaxations):
            for name, rule in RULES.items():
                if load <= rule.highest:
                    yield partial(point, setup, sizes, servers, name, load, setup.seed + index)


def threshold(rule: str, load: float) -> int | None:
    """Return r of a rule at a load."""
    of = RULES[rule].threshold
    return None if of is None else of(round(1.0 / (1.0 - load), 9))  # against rounding errors before ceil


def policy_name(rule: str, load: float) -> str:
    """Return the name of the policy of a rule at a load, for `make`."""
    return {"JSQ": "jsq", "JIQ": "jiq", "random": "random"}.get(rule) or f"jbt({threshold(rule, load)})"


def point(setup: Setup, sizes: Sizes, servers: int, rule: str, load: float, seed: int) -> Row:
    """Measure a rule at a load, with its exact value where known."""
    scenario = Scenario((Pool(servers),), load=load, name=f"{servers} equal servers")
    warmup = 5 * servers if RULES[rule].independent else 10
    run = run_at(load, seed, sizes.relaxations[load], warmup, setup.workers)
    result = measure(scenario, policy_name(rule, load), run)
    where = {
        "experiment": "limit",
        "n": servers,
        "rule": rule,
        "load": load,
        "threshold": threshold(rule, load),
    }
    extra = {"scaled": scaled_number(result, run), "exact": exact(scenario, rule, sizes.solved)}
    return make_row(setup, scenario, make(policy_name(rule, load)), result, where, extra)


def exact(scenario: Scenario, rule: str, solved: float) -> float | None:
    """Return (1 - rho) E[N] where known: closed form, or chain up to `solved`."""
    servers, load = scenario.servers, scenario.nominal_load
    if rule == "random":
        return servers * load
    if servers == 2 and rule == "JIQ":
        return (1.0 - load) * jiq_two_servers_mean_number(load)
    if servers == 2 and rule in SOLVED and load <= solved:
        return (1.0 - load) * solve(scenario, make(policy_name(rule, load))).mean_number
    return None


STUDY = Study(
    "zhou",
    "Thresholds of pull-based policies in heavy traffic (Zhou, Tan and Shroff 2018)",
    SOURCE,
    ABOUT,
    tasks,
    sections,
    figure,
)
