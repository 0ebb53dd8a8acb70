"""What a router is offered to learn with: the steps it may take, what servers tell it, what it remembers.

By default that is the catalog of `pull_env/Router-v0`, in servers that announce themselves when idle. A
learner that begins with a tuned chain is better offered the pull protocol and the memory of that chain, its
steps, and others beside them: what it was taught is then in its reach, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import baselines
from baselines.policies.tuned import tuned_or_refused
from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE
from pull_env.policy.catalog import default_catalog, mean_service_time
from pull_env.policy.policy import (
    Announce,
    Memory,
    Policy,
    Probe,
    Recall,
    Search,
    Send,
    Step,
    Take,
    as_announce,
    as_memory,
    load_policy,
    step_from_dict,
    step_to_dict,
)
from pull_env.scenario.scenario import Scenario

ASKED = (1, 2, 4, 8)  # servers, offered where a chain probes
STARTS = Path(__file__).parents[1] / "starts"


@dataclass(frozen=True)
class Offer:
    """What a router is offered.

    Attributes:
        steps: Its catalog; an action is an index into it.
        announce: The pull protocol of the servers.
        memory: What it remembers.
    """

    steps: tuple[Step, ...]
    announce: Announce | None = IDLE_SERVERS_ANNOUNCE
    memory: Memory = Memory()  # noqa: RUF009  it is frozen

    @classmethod
    def by(cls, start: Policy, scenario: Scenario) -> Offer:
        """Return the steps of a chain, those beside them and the default ones; its protocol and memory."""
        own = spelled_out(start.steps, scenario)
        steps = dict.fromkeys((*own, *beside(own, scenario), *default_catalog(scenario)))
        return cls(tuple(steps), start.announce, start.memory)

    @classmethod
    def of(cls, configuration: Mapping[str, Any], scenario: Scenario) -> Offer:
        """Return what a run was offered, as its configuration tells: the default where it is silent."""
        told = configuration.get("offer")
        if told is None:
            return cls(default_catalog(scenario))
        steps = tuple(step_from_dict(step) for step in told["steps"])
        return cls(steps, as_announce(told["announce"]), as_memory(told["memory"]))

    def arguments(self) -> dict[str, Any]:
        """Return it as arguments of `pull_env/Router-v0`."""
        return {"catalog": self.steps, "announce": self.announce, "memory": self.memory}

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        announce = None if self.announce is None else asdict(self.announce)
        steps = [step_to_dict(step) for step in self.steps]
        return {"steps": steps, "announce": announce, "memory": asdict(self.memory)}


def start_policy(name: str, scenario: Scenario) -> Policy:
    """Return what learning begins with: a baseline by its name, `tuned`, or a policy by its TOML file.

    A file lies here or in agents/starts.

    Raises:
        ValueError: There is none.
    """
    if name == "tuned":
        return tuned_or_refused(scenario)
    if not name.endswith(".toml"):
        return baselines.make(name)
    here = Path(name)
    return load_policy(here if here.exists() or not (STARTS / name).exists() else STARTS / name)


def spelled_out(steps: tuple[Step, ...], scenario: Scenario) -> tuple[Step, ...]:
    """Return a chain with a take for each pool, the fastest first, in place of one that says so."""
    order = sorted(range(len(scenario.pools)), key=lambda j: -scenario.pools[j].rate)
    found: list[Step] = []
    for step in steps:
        fastest = isinstance(step, Take) and step.pool is None and step.order == "fastest"
        found += [Take(pool) for pool in order] if fastest else [step]
    return tuple(dict.fromkeys(found))


def beside(own: tuple[Step, ...], scenario: Scenario) -> Iterator[Step]:
    """Yield what a chain's router might do as well: of each pool take, recall or send; probe otherwise."""
    pools, last = range(len(scenario.pools)), own[-1]
    if any(isinstance(step, Take) for step in own):
        yield from (Take(pool) for pool in pools)
    yield from (Recall(pool) for pool in pools)
    if isinstance(last, Probe):
        yield from asking_otherwise(last, scenario)
        yield replace(last, pool=None, weights="rate")
        yield from (replace(last, pool=pool, weights="uniform") for pool in pools)
    elif isinstance(last, Search):
        yield from asking_otherwise(last, scenario)
        remembering = Probe(weights="rate", stop_at=mean_service_time(scenario), rank="delay", recall=True)
        few = [min(asked, scenario.servers) for asked in (1, 4)]
        yield from (replace(remembering, at_most=asked) for asked in few)
    else:
        yield from (Send(pool) for pool in pools)
        yield from (
            Probe(weights="rate", at_most=min(asked, scenario.servers), stop_at=0.0) for asked in ASKED
        )


def asking_otherwise(last: Step, scenario: Scenario) -> tuple[Step, ...]:
    """Return the steps that differ from a chain's last one in how many servers they ask; none if it asks
    none.
    """
    if not isinstance(last, Probe | Search):
        return ()
    numbers = {min(asked, scenario.servers) for asked in ASKED} - {last.at_most}
    return tuple(replace(last, at_most=asked) for asked in sorted(numbers))
