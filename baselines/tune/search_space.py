"""The policies that a person could set up by hand, as a search space for Optuna.

Announcing to the router with fewest messages of all is left out: it costs nothing in the simulator, but no
server could know that router without sending messages. The fewest of a sample is included, at its price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Announce, Cycle, Memory, Policy, Probe, Search, Send, Step, Take
from pull_env.policy.steps import Order, Rank
from pull_env.scenario.scenario import Scenario

if TYPE_CHECKING:
    from optuna import Trial

MOST_PROBES, MOST_REMEMBERED, HIGHEST_THRESHOLD = 8, 16, 4
HIGHEST_STOP, STOP_STEP = 4.0, 0.25  # of the wait at which probing stops, in mean service times
RECIPIENTS: dict[str, Announce] = {
    "at random": Announce(),
    "fewest of 2": Announce(recipient="fewest", sample=2),
    "fewest of 4": Announce(recipient="fewest", sample=4),
}
ORDERS: tuple[Order, ...] = ("fastest", "random", "oldest")

# Optuna draws some parameters in alphabetical order: names in another order change what a seed finds.
PROBING = {"searches": False, "rank": "queue", "remembers": "nothing", "target": "rate"}
PULLING = {
    "uses messages": True,
    "searches": False,
    "threshold": 1,
    "withdraw": True,
    "recipient": "at random",
    "order": "fastest",
}


def well_known(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the parameters of the policies that a search starts from.

    These are pull-fastest with a random, cyclic or probing fallback, weighted-round-robin, power-of-d,
    probe-until-idle and pandora.
    """
    pulling = {**PULLING, "pools taken from": len(scenario.pools), "target": "rate"}
    until_idle = {**PROBING, "stops": True, "stop at": 0.0}
    two, three, most = (min(probes, scenario.servers) for probes in (2, 3, MOST_PROBES))
    return [
        {**pulling, "at most": 0, "cyclic": False},
        {**pulling, "at most": 0, "cyclic": True},
        {"uses messages": False, "searches": False, "at most": 0, "target": "rate", "cyclic": True},
        {**pulling, **until_idle, "at most": three},
        {**pulling, **until_idle, "at most": most},
        {**PROBING, "uses messages": False, "at most": two, "stops": False},
        {**until_idle, "uses messages": False, "at most": most},
        {**pulling, "searches": True},
    ]


def candidate(trial: Trial, scenario: Scenario) -> Policy:
    """Return the policy that `trial` suggests for `scenario`.

    It takes a message, else searches, probes, or sends without information.
    """
    announces = trial.suggest_categorical("uses messages", (True, False))
    announce = _announce(trial, scenario) if announces else None
    takes = _takes(trial, scenario) if announces else ()
    if trial.suggest_categorical("searches", (False, True)):
        return Policy("tuned", (*takes, Search()), announce)
    probes = trial.suggest_int("at most", 0, min(MOST_PROBES, scenario.servers))
    target = _target(trial, scenario)
    if probes == 0:
        step = Send if "pool" in target or not trial.suggest_categorical("cyclic", (False, True)) else Cycle
        return Policy("tuned", (*takes, step(**target)), announce)
    probe, memory = _probe(trial, scenario, probes, target)
    return Policy("tuned", (*takes, probe), announce, memory)


def _announce(trial: Trial, scenario: Scenario) -> Announce:
    """Suggest when servers announce themselves, and to whom."""
    highest = min(HIGHEST_THRESHOLD, *(pool.buffer or HIGHEST_THRESHOLD for pool in scenario.pools))
    threshold = trial.suggest_int("threshold", 1, highest)
    withdraw = trial.suggest_categorical("withdraw", (True, False))
    possible = [name for name, announce in RECIPIENTS.items() if (announce.sample or 1) <= scenario.routers]
    recipient = RECIPIENTS[trial.suggest_categorical("recipient", possible)]
    return Announce(threshold, withdraw, recipient.recipient, recipient.sample)


def _takes(trial: Trial, scenario: Scenario) -> tuple[Step, ...]:
    """Suggest whose messages are taken, and in which order."""
    order = cast(Order, trial.suggest_categorical("order", ORDERS))
    pools = sorted(range(len(scenario.pools)), key=lambda j: -scenario.pools[j].rate)
    count = trial.suggest_int("pools taken from", 1, len(pools))
    if count == len(pools):
        return (Take(order=order),)
    return tuple(Take(pool, order="oldest" if order == "oldest" else "random") for pool in pools[:count])


def _target(trial: Trial, scenario: Scenario) -> dict[str, Any]:
    """Suggest which servers to probe or send to: a pool, or all by weights."""
    if len(scenario.pools) == 1:
        return {}
    pools = [f"pool {j}" for j in range(len(scenario.pools))]
    target = trial.suggest_categorical("target", ("rate", "uniform", *pools))
    return {"pool": pools.index(target)} if target in pools else {"weights": target}


def _probe(trial: Trial, scenario: Scenario, probes: int, target: dict[str, Any]) -> tuple[Probe, Memory]:
    """Suggest when to stop probing, what to remember, and which answer is best."""
    several = len(scenario.pools) > 1
    ranks: tuple[Rank, ...] = ("queue", "delay", "queue then speed") if several else ("queue",)
    stop_at = None
    if trial.suggest_categorical("stops", (True, False)):
        stop_at = trial.suggest_float("stop at", 0.0, HIGHEST_STOP, step=STOP_STEP)
        stop_at *= mean_service_time(scenario)
    remembers = trial.suggest_categorical("remembers", ("nothing", "by pool", "over all pools"))
    memory = Memory()
    if remembers != "nothing":
        memory = Memory(trial.suggest_int("remembered", 1, MOST_REMEMBERED), by_pool=remembers == "by pool")
    rank = cast(Rank, trial.suggest_categorical("rank", ranks))
    recall = remembers != "nothing"
    return Probe(**target, at_most=probes, stop_at=stop_at, rank=rank, recall=recall), memory
