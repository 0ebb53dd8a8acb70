"""What a router is offered to learn with: the steps it may take, what servers tell it, what it remembers.

By default that is the catalog of `pull_env/Router-v0`, in servers that announce themselves when idle. A
learner that begins with a tuned chain is better offered the pull protocol and the memory of that chain, its
steps, and others beside them: what it was taught is then in its reach, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import baselines
from agents.search.initial_networks import beside, spelled_out
from baselines.policies.tuned import tuned_or_refused
from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE
from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import (
    Announce,
    Memory,
    Policy,
    Step,
    as_announce,
    as_memory,
    load_policy,
    step_from_dict,
    step_to_dict,
)
from pull_env.scenario.scenario import Scenario

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
