"""Policies as data: a chain of steps, and the pull protocol of the servers.

A router tries the steps of the chain in order; the first that can act assigns the customer. `Take`, `Recall`
and `Last` cannot act without a message, a remembered server, or any announcement so far; the last step of a
chain must always be able to act. With a network the steps are not a chain but a catalog, from which the
network picks one for each customer.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pull_env.policy.network import Network, read_network, write_layers
from pull_env.policy.steps import (
    STEPS,
    UNLIMITED,
    Cycle,
    Inspect,
    Last,
    Lookup,
    PolicyError,
    Probe,
    Recall,
    Search,
    Send,
    Step,
    Take,
    Weights,
    check_record,
    check_steps,
    step_from_dict,
    step_to_dict,
)
from pull_env.policy.steps import check_policy as check
from pull_env.scenario.files import read_toml

if TYPE_CHECKING:
    from pull_env.scenario.scenario import Scenario

Recipient = Literal["uniform", "fewest"]

__all__ = [
    "STEPS",
    "Announce",
    "Cycle",
    "Inspect",
    "Last",
    "Lookup",
    "Memory",
    "Network",
    "Policy",
    "PolicyError",
    "Probe",
    "Recall",
    "Search",
    "Send",
    "Step",
    "Take",
    "Weights",
    "as_announce",
    "as_memory",
    "check_steps",
    "load_policy",
    "save_policy",
    "step_from_dict",
    "step_to_dict",
]


@dataclass(frozen=True)
class Announce:
    """How servers announce themselves to routers by pull-messages; 1 message each.

    A server is available while it holds fewer than `threshold` customers. It sends a pull-message to one
    router when a departure leaves it available and it has no message out.

    Attributes:
        threshold: 1: only idle servers are available. Above a buffer, full servers are available too.
        withdraw: Whether a server that becomes unavailable by a customer assigned without its message
            withdraws the message, by one remove-message if another router holds it. False: messages stay and
            may be stale, and a server that received a customer may announce itself again; a router ignores a
            second message from the same server.
        recipient: `uniform`: a random router; `fewest`: the router with fewest messages, ties at random.
        sample: With `fewest`: the best of this many random routers (2 messages each); None: of all routers,
            for free.
        growth: K: the threshold grows with the load rho of the system, to ceil(K log(1 / (1 - rho))), but at
            most to the smallest buffer, as a full server is not available; None: it is fixed.
    """

    threshold: int = 1
    withdraw: bool = True
    recipient: Recipient = "uniform"
    sample: int | None = None
    growth: float | None = None

    def __post_init__(self) -> None:
        check_record(self, "announce")
        if self.sample is not None and self.recipient != "fewest":
            raise PolicyError(f"announce.sample is {self.sample}: it needs announce.recipient = 'fewest'")

    def on(self, scenario: Scenario) -> Announce:
        """Return the protocol with its threshold on `scenario`, and no growth."""
        if self.growth is None:
            return self
        load, buffers = scenario.nominal_load, [pool.buffer or UNLIMITED for pool in scenario.pools]
        wanted = min(-self.growth * math.log1p(-load), UNLIMITED) if load < 1 else UNLIMITED
        return dataclasses.replace(
            self, threshold=max(self.threshold, min(math.ceil(wanted), *buffers)), growth=None
        )


@dataclass(frozen=True)
class Memory:
    """What a router remembers: recently seen servers, their queue lengths and when.

    Attributes:
        size: Number of servers.
        by_pool: Whether `size` servers are remembered per pool. False: over all pools; and if that is all
            servers, they are known from the start, as empty.
    """

    size: int = 8
    by_pool: bool = True

    def __post_init__(self) -> None:
        check_record(self, "memory")

    def complete(self, servers: int) -> bool:
        """Return whether a router remembers all `servers` from the start."""
        return not self.by_pool and self.size >= servers


@dataclass(frozen=True)
class Policy:
    """A router's policy.

    Attributes:
        name: What tables call it.
        steps: The chain, tried in order; the last step must always be able to act. With a network: the
            catalog, one step per output; a step that cannot act sends to its pool, or by rate.
        announce: The pull protocol; None: servers send no messages.
        memory: What a router remembers, for steps that recall and networks that observe it.
        network: Picks a step given the observation of a router, as in `pull_env/Router-v0`; None: the steps
            are a chain.

    Raises:
        PolicyError: A field has a value that is not allowed.
    """

    name: str
    steps: tuple[Step, ...]
    announce: Announce | None = None
    memory: Memory = Memory()
    network: Network | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_steps(self.steps))
        check.text("name", self.name)
        check.instance("memory", self.memory, Memory)
        if self.network is None:
            self._check_chain()
            return
        if not isinstance(self.network, Network):
            raise check.refusal("network", self.network, "a Network; load_policy reads one from files")
        if self.network.sizes[-1] != len(self.steps):
            raise PolicyError(
                f"network has {self.network.sizes[-1]} outputs: "
                f"there must be one for each of {len(self.steps)} steps"
            )

    def _check_chain(self) -> None:
        if not self.steps[-1].always_acts:
            kinds = ", ".join(kind for kind, step in STEPS.items() if step.always_acts)
            raise PolicyError(
                f"steps[-1] is {self.steps[-1].kind}: the last step must always be able to act: {kinds}"
            )
        taking = next((step for step in self.steps if isinstance(step, Take | Last)), None)
        if self.announce is None and taking is not None:
            raise PolicyError(f"announce is None: {taking.kind} needs servers that announce themselves")

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain JSON values, with the SHA-256 of a network."""
        announce = None if self.announce is None else dataclasses.asdict(self.announce)
        network = {} if self.network is None else {"network": self.network.to_dict()}
        return {
            "name": self.name,
            "announce": announce,
            "memory": dataclasses.asdict(self.memory),
            "steps": [step_to_dict(step) for step in self.steps],
            **network,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Policy:
        """Build a policy from what `to_dict` returns, or from TOML.

        A `network` must be a `Network`, as a table does not hold its weights; `load_policy` reads them.

        Raises:
            PolicyError: A key is unknown, or a value is not allowed.
        """
        fields = ("name", "announce", "memory", "steps", "network")
        content = check.known_keys("policy", content, fields, prefix="")
        return cls(
            content.get("name", "custom"),
            tuple(step_from_dict(step) for step in check.items("steps", content.get("steps", ()))),
            as_announce(content.get("announce")),
            as_memory(content.get("memory", {})),
            content.get("network"),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the policy as JSON, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy from a TOML file.

    It has a `name`, tables `announce` and `memory`, and a table `[[steps]]` with a `kind` per step; for a
    network a table `network`, see `network.read_network`. A table `about` is ignored. No code is run.

    Raises:
        PolicyError: The file is missing, is not TOML, or describes no policy.
    """
    content = read_toml(Path(path), PolicyError, "policy file")
    content.pop("about", None)
    if "network" in content:
        content["network"] = read_network(content["network"], Path(path).parent)
    return Policy.from_dict({"name": Path(path).stem, **content})


def save_policy(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy as TOML for `load_policy`; weights go to a safetensors file.

    Raises:
        PolicyError: One of the files exists already.
    """
    import tomli_w  # only where a policy is written

    content, path = policy.to_dict(), Path(path)
    weights = path.with_suffix(".safetensors")
    for file in (path, weights) if policy.network is not None else (path,):
        if file.exists():
            raise PolicyError(f"policy file {str(file)!r} exists already, and is never overwritten")
    if policy.network is not None:
        write_layers(policy.network, weights)
        content["network"] = {"weights": weights.name, **content["network"]}
        del content["network"]["sizes"]
    path.write_text(tomli_w.dumps(without_none(content)), encoding="utf-8")


def without_none(value: Any) -> Any:
    """Return plain values without None, which TOML lacks and fields default to."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def as_announce(content: Announce | Mapping[str, Any] | None) -> Announce | None:
    """Build a pull protocol from plain values; None: servers send no messages.

    Raises:
        PolicyError: A key is unknown, or a value is not allowed.
    """
    if content is None or isinstance(content, Announce):
        return content
    return Announce(**check.known_fields("announce", content, Announce))


def as_memory(content: Memory | Mapping[str, Any] | int) -> Memory:
    """Build a memory from plain values; a whole number is its size per pool.

    Raises:
        PolicyError: A key is unknown, or a value is not allowed.
    """
    if isinstance(content, Memory):
        return content
    if not isinstance(content, Mapping):
        return Memory(content)
    return Memory(**check.known_fields("memory", content, Memory))
