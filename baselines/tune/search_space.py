"""The policies that a person could set up by hand, as a search space.

What Optuna suggests, and what a search starts from.

One policy is left out: announcing to the router that holds fewest of all, which costs nothing here and which
nobody could know without a message. The fewest of a few that were asked is in, and so is its price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Announce, Cycle, Memory, Policy, Probe, Search, Send, Step, Take
from pull_env.policy.steps import Order, Rank
from pull_env.scenario.scenario import Scenario

if TYPE_CHECKING:
    from optuna import Trial

MOST_ASKED, MOST_REMEMBERED, HIGHEST_THRESHOLD = 8, 16, 4
LONGEST_STOP, STOP_STEP = 4.0, 0.25  # of the wait at which probing stops, in mean service times
RECIPIENTS: dict[str, Announce] = {
    "at random": Announce(),
    "fewest of 2": Announce(recipient="fewest", sample=2),
    "fewest of 4": Announce(recipient="fewest", sample=4),
}
ORDERS: tuple[Order, ...] = ("fastest", "random", "oldest")

ASKS = {"searches": False, "rank": "queue", "remembers": "nothing", "target": "rate"}
TOLD = {
    "told": True,
    "searches": False,
    "threshold": 1,
    "withdraw": True,
    "recipient": "at random",
    "order": "fastest",
}


def well_known(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the starting candidates of a search.

    `pull-fastest` alone, in turn or with probes; servers in turn; two choices.
    """
    told = {**TOLD, "pools taken from": len(scenario.pools), "target": "rate"}
    until_idle = {**ASKS, "stops": True, "stop at": 0.0}
    few, more, most = (min(asked, scenario.servers) for asked in (2, 3, MOST_ASKED))
    return [
        {**told, "asked": 0, "in turn": False},
        {**told, "asked": 0, "in turn": True},
        {"told": False, "searches": False, "asked": 0, "target": "rate", "in turn": True},
        {**told, **until_idle, "asked": more},
        {**told, **until_idle, "asked": most},
        {**ASKS, "told": False, "asked": few, "stops": False},
        {**until_idle, "told": False, "asked": most},
        {**told, "searches": True},
    ]


def candidate(trial: Trial, scenario: Scenario) -> Policy:
    """Return the policy that `trial` suggests for `scenario`.

    It takes a message, else searches, probes or sends blindly, and remembers or not.
    """
    told = trial.suggest_categorical("told", (True, False))
    announce = _announce(trial, scenario) if told else None
    takes = _takes(trial, scenario) if told else ()
    if trial.suggest_categorical("searches", (False, True)):
        return Policy("tuned", (*takes, Search()), announce)
    asked = trial.suggest_int("asked", 0, min(MOST_ASKED, scenario.servers))
    target = _target(trial, scenario)
    if asked == 0:
        blind = Send if "pool" in target or not trial.suggest_categorical("in turn", (False, True)) else Cycle
        return Policy("tuned", (*takes, blind(**target)), announce)
    last, memory = _probe(trial, scenario, asked, target)
    return Policy("tuned", (*takes, last), announce, memory)


def _announce(trial: Trial, scenario: Scenario) -> Announce:
    """Suggest when servers announce themselves, and to whom."""
    highest = min(HIGHEST_THRESHOLD, *(pool.buffer or HIGHEST_THRESHOLD for pool in scenario.pools))
    threshold = trial.suggest_int("threshold", 1, highest)
    withdraw = trial.suggest_categorical("withdraw", (True, False))
    known = [name for name, announce in RECIPIENTS.items() if (announce.sample or 1) <= scenario.routers]
    recipient = RECIPIENTS[trial.suggest_categorical("recipient", known)]
    return Announce(threshold, withdraw, recipient.recipient, recipient.sample)


def _takes(trial: Trial, scenario: Scenario) -> tuple[Step, ...]:
    """Suggest whose messages are taken, and in which order."""
    order = cast(Order, trial.suggest_categorical("order", ORDERS))
    pools = sorted(range(len(scenario.pools)), key=lambda j: -scenario.pools[j].rate)
    some = trial.suggest_int("pools taken from", 1, len(pools))
    if some == len(pools):
        return (Take(order=order),)
    return tuple(Take(pool, order="oldest" if order == "oldest" else "random") for pool in pools[:some])


def _target(trial: Trial, scenario: Scenario) -> dict[str, Any]:
    """Suggest which servers to ask or send to: a pool, or all by weights."""
    if len(scenario.pools) == 1:
        return {}
    pools = [f"pool {j}" for j in range(len(scenario.pools))]
    target = trial.suggest_categorical("target", ("rate", "uniform", *pools))
    return {"pool": pools.index(target)} if target in pools else {"weights": target}


def _probe(trial: Trial, scenario: Scenario, asked: int, target: dict[str, Any]) -> tuple[Probe, Memory]:
    """Suggest how many to ask, when to stop, and what to remember."""
    ranks: tuple[Rank, ...] = (
        ("queue", "delay", "queue then speed") if len(scenario.pools) > 1 else ("queue",)
    )
    stop_at = None
    if trial.suggest_categorical("stops", (True, False)):
        stop_at = trial.suggest_float("stop at", 0.0, LONGEST_STOP, step=STOP_STEP) * mean_service_time(
            scenario
        )
    remembers = trial.suggest_categorical("remembers", ("nothing", "by pool", "over all pools"))
    memory = Memory()
    if remembers != "nothing":
        memory = Memory(trial.suggest_int("remembered", 1, MOST_REMEMBERED), by_pool=remembers == "by pool")
    rank = cast(Rank, trial.suggest_categorical("rank", ranks))
    recall = remembers != "nothing"
    return Probe(**target, at_most=asked, stop_at=stop_at, rank=rank, recall=recall), memory
