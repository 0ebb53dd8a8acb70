"""What a learner can do: its steps, the servers' pull protocol, its memory.

By default they are the catalog of `pull_env/Router-v0`, with servers that announce themselves when idle. A
learner that starts from a tuned chain of steps can have the protocol, the memory and the steps of that chain
instead, and more steps beside them: it can then play exactly what it is taught.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pull_env.envs.base import IDLE_SERVERS_ANNOUNCE
from pull_env.policy.catalog import default_catalog, mean_service_time
from pull_env.policy.lookup import as_policy
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
    step_from_dict,
    step_to_dict,
)
from pull_env.scenario.scenario import Scenario

PROBED = (1, 2, 4, 8)  # numbers of servers to probe at most, beside a chain that probes
STARTS = Path(__file__).parents[1] / "starts"


@dataclass(frozen=True)
class ActionSet:
    """What a router can do.

    Attributes:
        steps: Its catalog; an action is an index into it.
        announce: The pull protocol of the servers.
        memory: What it remembers.
    """

    steps: tuple[Step, ...]
    announce: Announce | None = IDLE_SERVERS_ANNOUNCE
    memory: Memory = Memory()  # noqa: RUF009  it is frozen

    @classmethod
    def around(cls, start: Policy, scenario: Scenario) -> ActionSet:
        """Return the steps of a chain and more, with its protocol and its memory.

        Others beside the chain and those of the default catalog are added.
        """
        own = with_takes_by_pool(start.steps, scenario)
        steps = dict.fromkeys((*own, *steps_beside(own, scenario), *default_catalog(scenario)))
        return cls(tuple(steps), start.announce, start.memory)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], scenario: Scenario) -> ActionSet:
        """Return the action set in the configuration of a run, or the default one."""
        content = configuration.get("action_set")
        if content is None:
            return cls(default_catalog(scenario))
        steps = tuple(step_from_dict(step) for step in content["steps"])
        return cls(steps, as_announce(content["announce"]), as_memory(content["memory"]))

    def env_arguments(self) -> dict[str, Any]:
        """Return the action set as arguments of `pull_env/Router-v0`."""
        return {"catalog": self.steps, "announce": self.announce, "memory": self.memory}

    def to_dict(self) -> dict[str, Any]:
        """Return the action set as plain JSON values."""
        announce = None if self.announce is None else asdict(self.announce)
        steps = [step_to_dict(step) for step in self.steps]
        return {"steps": steps, "announce": announce, "memory": asdict(self.memory)}


def start_policy(name: str, scenario: Scenario) -> Policy:
    """Return the policy to start from: a name, `tuned`, or a TOML file.

    A file is looked up here and in agents/starts.

    Raises:
        ValueError: There is no such policy.
    """
    in_starts = (STARTS / name).is_file() and not Path(name).exists()
    return as_policy(STARTS / name if in_starts else name, scenario)


def with_takes_by_pool(steps: tuple[Step, ...], scenario: Scenario) -> tuple[Step, ...]:
    """Return a chain in which a take of each pool replaces one of the fastest pool."""
    order = sorted(range(len(scenario.pools)), key=lambda j: -scenario.pools[j].rate)
    result: list[Step] = []
    for step in steps:
        fastest = isinstance(step, Take) and step.pool is None and step.order == "fastest"
        result += [Take(pool) for pool in order] if fastest else [step]
    return tuple(dict.fromkeys(result))


def steps_beside(own: tuple[Step, ...], scenario: Scenario) -> Iterator[Step]:
    """Yield other steps beside a chain: take, recall or send by pool, other probes."""
    pools, last = range(len(scenario.pools)), own[-1]
    if any(isinstance(step, Take) for step in own):
        yield from (Take(pool) for pool in pools)
    yield from (Recall(pool) for pool in pools)
    if isinstance(last, Probe):
        yield from with_other_counts(last, scenario)
        yield replace(last, pool=None, weights="rate")
        yield from (replace(last, pool=pool, weights="uniform") for pool in pools)
    elif isinstance(last, Search):
        yield from with_other_counts(last, scenario)
        remembering = Probe(weights="rate", stop_at=mean_service_time(scenario), rank="delay", recall=True)
        yield from (replace(remembering, at_most=min(count, scenario.servers)) for count in (1, 4))
    else:
        yield from (Send(pool) for pool in pools)
        yield from (
            Probe(weights="rate", at_most=min(count, scenario.servers), stop_at=0.0) for count in PROBED
        )


def with_other_counts(last: Step, scenario: Scenario) -> tuple[Step, ...]:
    """Return a probe or search with other numbers of servers; nothing for other steps."""
    if not isinstance(last, Probe | Search):
        return ()
    counts = {min(count, scenario.servers) for count in PROBED} - {last.at_most}
    return tuple(replace(last, at_most=count) for count in sorted(counts))
