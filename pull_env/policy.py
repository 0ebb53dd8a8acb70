"""A policy is data: an ordered chain of steps, and the pull protocol of the servers. It holds no code.

A router tries the steps of the chain in order; the first that can act assigns the customer at hand. `Take`
and `Recall` cannot act when there is no message, or nothing remembered; the last step of a chain must always
be able to.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_type_hints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Order = Literal["random", "oldest", "fastest"]
Weights = Literal["uniform", "rate"]
Rank = Literal["queue", "delay", "queue then speed", "work"]
Recipient = Literal["uniform", "fewest"]


class PolicyError(ValueError):
    """A policy that cannot be: the message names the field, its value and what is allowed."""


@dataclass(frozen=True)
class Take:
    """Assign to a server whose pull-message this router holds; 0 messages, as the pull-message was counted
    when sent.

    Attributes:
        pool: Take from this pool only; None: from any.
        order: `random` over the messages held, `oldest`, or `fastest`: at random from the fastest pool that
            has one.
    """

    kind: ClassVar[str] = "take"
    total: ClassVar[bool] = False
    pool: int | None = None
    order: Order = "random"


@dataclass(frozen=True)
class Recall:
    """Assign to the best server remembered from earlier probes and assignments; 0 messages.

    Best is the smallest remembered length, the freshest of equals; over several pools the least (length + 1)
    / rate.

    Attributes:
        pool: Recall from this pool only; None: from any.
    """

    kind: ClassVar[str] = "recall"
    total: ClassVar[bool] = False
    pool: int | None = None


@dataclass(frozen=True)
class Send:
    """Assign to a random server, blind; 0 messages.

    Attributes:
        pool: Uniformly within this pool; None: over all servers, by `weights`.
        weights: `uniform`, or `rate`: in proportion to the service rates.
    """

    kind: ClassVar[str] = "send"
    total: ClassVar[bool] = True
    pool: int | None = None
    weights: Weights = "uniform"


@dataclass(frozen=True)
class Probe:
    """Ask random servers one at a time for their queue length, assign to the best of them; 2 messages a
    server asked.

    Attributes:
        pool: Ask within this pool, uniformly; None: over all servers, by `weights`.
        weights: `uniform`, or `rate`: in proportion to the service rates.
        at_most: Ask no more servers than this.
        stop_at: Stop at the first answer that promises a wait (length / rate) of this or less; None: never
            early.
        rank: The best has the least `queue`, `delay` ((length + 1) / rate), `queue then speed`, or unfinished
            `work`;
            the first asked of equals.
        replace: Whether the same server may be asked twice for one customer.
    """

    kind: ClassVar[str] = "probe"
    total: ClassVar[bool] = True
    pool: int | None = None
    weights: Weights = "uniform"
    at_most: int = 2
    stop_at: float | None = None
    rank: Rank = "queue"
    replace: bool = False


@dataclass(frozen=True)
class Inspect:
    """Look at all n servers and assign to the best, at random among equals; 2n messages.

    Attributes:
        rank: As for `Probe`. `work` needs the calendar clock and costs O(n); the others O(pools).
    """

    kind: ClassVar[str] = "inspect"
    total: ClassVar[bool] = True
    rank: Rank = "queue"


@dataclass(frozen=True)
class Cycle:
    """Assign round robin, each router for itself from a random start; 0 messages.

    Attributes:
        weights: `uniform`: all servers in turn; `rate`: each server in proportion to its rate, spread evenly
            in time.
    """

    kind: ClassVar[str] = "cycle"
    total: ClassVar[bool] = True
    weights: Weights = "uniform"


Step = Take | Recall | Send | Probe | Inspect | Cycle
STEPS: dict[str, type[Step]] = {step.kind: step for step in get_args(Step)}


@dataclass(frozen=True)
class Announce:
    """How servers announce themselves to routers by pull-messages; 1 message each.

    A server is available while it holds fewer than `threshold` customers. It sends a pull-message to one
    router when a departure leaves it available and it has no message out.

    Attributes:
        threshold: 1: only idle servers are available. Above a buffer, full servers are available too.
        withdraw: When a server ceases to be available by a customer that came another way, its message is
            withdrawn, by one remove-message if another router holds it. False: messages stay and may be
            stale, and a server that got a customer may announce itself again; a router ignores a second
            message from a server it has one of.
        recipient: `uniform`: a random router; `fewest`: the one that holds fewest messages, at random among
            equals.
        sample: With `fewest`: the best of this many random routers (2 messages each); None: of all, at no
            cost.
    """

    threshold: int = 1
    withdraw: bool = True
    recipient: Recipient = "uniform"
    sample: int | None = None

    def __post_init__(self) -> None:
        _check(self, "announce")
        if self.sample is not None and self.recipient != "fewest":
            raise PolicyError(f"announce.sample is {self.sample}: it needs announce.recipient = 'fewest'")


@dataclass(frozen=True)
class Policy:
    """A router's policy.

    Attributes:
        name: What tables call it.
        steps: The chain, tried in order; the last one must always be able to act.
        announce: The pull protocol; None: servers announce nothing.

    Raises:
        PolicyError: A field has a value that is not allowed.
    """

    name: str
    steps: tuple[Step, ...]
    announce: Announce | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_steps(self.steps))
        if not isinstance(self.name, str) or not self.name:
            raise PolicyError(f"name is {self.name!r}: it must be a text that is not empty")
        if not self.steps[-1].total:
            raise PolicyError(
                f"steps[-1] is {self.steps[-1].kind}: the last step must always be able to act: {_totals()}"
            )
        if self.announce is None and any(isinstance(step, Take) for step in self.steps):
            raise PolicyError(
                "announce is None: a policy that takes pull-messages needs servers that announce themselves"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the full declaration as plain JSON values."""
        announce = None if self.announce is None else dataclasses.asdict(self.announce)
        return {"name": self.name, "announce": announce, "steps": [step_to_dict(step) for step in self.steps]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Policy:
        """Build a policy from what `to_dict` gives, or from TOML; fields left out have their defaults.

        Raises:
            PolicyError: A key is unknown, or a value is not allowed.
        """
        _known(content, ("name", "announce", "steps"), "policy")
        steps = content.get("steps", ())
        if not isinstance(steps, (list, tuple)):
            raise PolicyError(f"steps is {steps!r}: it must be a list of steps")
        announce = as_announce(content.get("announce"))
        return cls(content.get("name", "custom"), tuple(step_from_dict(step) for step in steps), announce)

    @property
    def digest(self) -> str:
        """The sha256 of the declaration, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy from a TOML file: `name`, a table `announce`, and one table `[[steps]]` with its `kind` a
    step.

    Raises:
        PolicyError: The file is missing, is not TOML, or declares no policy.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyError(f"policy file {os.fspath(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"policy file {os.fspath(path)!r} is not valid TOML: {error}") from None
    return Policy.from_dict({"name": Path(path).stem, **content})


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return a step as plain JSON values, its `kind` among them."""
    return {"kind": step.kind, **dataclasses.asdict(step)}


def step_from_dict(content: Step | Mapping[str, Any]) -> Step:
    """Build a step from what `step_to_dict` gives; a step is returned as it is.

    Raises:
        PolicyError: The kind or a key is unknown.
    """
    if isinstance(content, Take | Recall | Send | Probe | Inspect | Cycle):
        return content
    if not isinstance(content, Mapping):
        raise PolicyError(f"step is {content!r}: it must be a table with its kind")
    kind = content.get("kind")
    if kind not in STEPS:
        raise PolicyError(f"step.kind is {kind!r}: it must be one of {', '.join(STEPS)}")
    fields = {key: value for key, value in content.items() if key != "kind"}
    _known(fields, tuple(field.name for field in dataclasses.fields(STEPS[kind])), kind)
    return STEPS[kind](**fields)


def as_announce(content: Announce | Mapping[str, Any] | None) -> Announce | None:
    """Build a pull protocol from plain values; None means that servers announce nothing.

    Raises:
        PolicyError: A key is unknown, or a value is not allowed.
    """
    if content is None or isinstance(content, Announce):
        return content
    if not isinstance(content, Mapping):
        raise PolicyError(f"announce is {content!r}: it must be a table, or nothing")
    _known(content, tuple(field.name for field in dataclasses.fields(Announce)), "announce")
    return Announce(**content)


def check_steps(steps: Any) -> tuple[Step, ...]:
    """Return `steps` as a tuple of valid steps.

    Raises:
        PolicyError: There is none, or one has a value that is not allowed.
    """
    if isinstance(steps, str) or not isinstance(steps, (list, tuple)) or not steps:
        raise PolicyError(f"steps is {steps!r}: it must hold at least one step")
    for k, step in enumerate(steps):
        if not isinstance(step, get_args(Step)):
            raise PolicyError(f"steps[{k}] is {step!r}: it must be one of {', '.join(STEPS)}")
        _check(step, f"steps[{k}]")
        if getattr(step, "pool", None) is not None and getattr(step, "weights", "uniform") != "uniform":
            raise PolicyError(f"steps[{k}].weights is 'rate': within one pool all rates are equal")
    return tuple(steps)


def _totals() -> str:
    return ", ".join(kind for kind, step in STEPS.items() if step.total)


def _known(content: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    """Refuse keys that are not allowed, and name the nearest one that is."""
    for key in content:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, 1, 0.0)
            raise PolicyError(
                f"{where} has an unknown key {key!r}: did you mean {near[0]!r}? Known: {', '.join(allowed)}"
            )


_WHOLE = {"pool": 0, "at_most": 1, "threshold": 1, "sample": 1}  # integer fields and their least values


@cache  # a vector of envs checks the same steps a thousand times
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _check(record: Any, where: str) -> None:
    """Refuse a value that its field does not allow: choices by their annotation, numbers by their range."""
    hints = _hints(type(record))  # type: ignore[arg-type]
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{where}.{field.name}"
        choices = get_args(hints[field.name])
        if value is None and type(None) in choices:
            continue
        if field.name in _WHOLE:
            least = _WHOLE[field.name]
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
                raise PolicyError(f"{name} is {value!r}: it must be a whole number from {least}")
        elif hints[field.name] is bool:
            if not isinstance(value, bool):
                raise PolicyError(f"{name} is {value!r}: it must be true or false")
        elif field.name == "stop_at":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise PolicyError(f"{name} is {value!r}: it must be a time from 0, or nothing")
        elif value not in choices:
            raise PolicyError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")
