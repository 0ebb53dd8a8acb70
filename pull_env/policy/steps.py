"""The steps of a router as data: what it can do with a customer.

`Take`, `Recall` and `Last` cannot act without a message, a remembered server, or any announcement so far; the
others always can.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from pull_env.scenario.validation import Validator, assign

Order = Literal["random", "oldest", "fastest"]
Weights = Literal["uniform", "rate"]
Rank = Literal["queue", "delay", "queue then speed", "work"]

UNLIMITED = 2**30  # no integer is larger: what routers add to one must fit in 32 bits


class PolicyError(ValueError):
    """A policy that cannot be used: the message names field, value and remedy."""


check_policy = check = Validator(PolicyError)


@dataclass(frozen=True)
class Take:
    """Assign to a server whose pull-message this router holds; 0 messages.

    The pull-message was counted when it was sent.

    Attributes:
        pool: Take from this pool only; None: from any.
        order: `random` over the messages held, `oldest`, or `fastest`: at random from the fastest pool that
            has one.
    """

    kind: ClassVar[str] = "take"
    always_acts: ClassVar[bool] = False
    pool: int | None = None
    order: Order = "random"


@dataclass(frozen=True)
class Recall:
    """Assign to the best remembered server; 0 messages.

    Servers are remembered from probes and assignments. The best has the smallest remembered length, ties go
    to the most recent; over several pools it has the smallest (length + 1) / rate.

    Attributes:
        pool: Recall from this pool only; None: from any.
    """

    kind: ClassVar[str] = "recall"
    always_acts: ClassVar[bool] = False
    pool: int | None = None


@dataclass(frozen=True)
class Send:
    """Assign to a random server without asking; 0 messages.

    Attributes:
        pool: Uniformly within this pool; None: over all servers, by `weights`.
        weights: `uniform`, or `rate`: in proportion to the service rates.
    """

    kind: ClassVar[str] = "send"
    always_acts: ClassVar[bool] = True
    pool: int | None = None
    weights: Weights = "uniform"


@dataclass(frozen=True)
class Probe:
    """Probe random servers one by one, assign to the best; 2 messages per probe.

    Attributes:
        pool: Probe within this pool, uniformly; None: over all servers, by `weights`.
        weights: `uniform`, or `rate`: in proportion to the service rates.
        at_most: Maximum number of probes.
        stop_at: Stop at the first answer with a wait (length / rate) of at most this; None: no early stop.
        rank: The best has the smallest `queue`, `delay` ((length + 1) / rate), `queue then speed`, or
            unfinished `work`; ties go to the first probed.
        replace: Whether the same server may be probed twice for one customer.
        recall: Whether remembered servers compete with those probed, at the remembered length; one is chosen
            only if it is better, ties go to the most recent.
    """

    kind: ClassVar[str] = "probe"
    always_acts: ClassVar[bool] = True
    pool: int | None = None
    weights: Weights = "uniform"
    at_most: int = 2
    stop_at: float | None = None
    rank: Rank = "queue"
    replace: bool = False
    recall: bool = False


@dataclass(frozen=True)
class Search:
    """Probe where it is most promising until a probe is not worth its price.

    Assigns to the smallest wait (length / rate) among the servers probed, ties go to the first; 2 messages
    per probe. The router probes at random in the pool with the smallest reservation wait, and stops when an
    answer has at most that wait. The reservation wait r of a pool solves 2 x price of a message = price of a
    unit of wait x E[(r - W)+], where W, the wait of the next answer, is distributed as the last answers of
    this pool to the router (`kernels.routing.probe_answers`). The first server is drawn from all by rate, so
    that no pool is forgotten.

    Source: M. L. Weitzman, "Optimal search for the best alternative", Econometrica 47 (1979), 641-654, where
    distributions are known, and each belongs to a single alternative.

    Attributes:
        at_most: Maximum number of probes.
    """

    kind: ClassVar[str] = "search"
    always_acts: ClassVar[bool] = True
    at_most: int = 32


@dataclass(frozen=True)
class Inspect:
    """Inspect all n servers, assign to the best, ties at random; 2n messages.

    Attributes:
        rank: As for `Probe`. `work` needs the calendar clock, and takes O(n) if no server is idle; the others
            O(pools).
    """

    kind: ClassVar[str] = "inspect"
    always_acts: ClassVar[bool] = True
    rank: Rank = "queue"


@dataclass(frozen=True)
class Cycle:
    """Assign round robin, each router on its own from a random start; 0 messages.

    Attributes:
        weights: `uniform`: all servers in turn; `rate`: each in proportion to its rate, evenly in time.
    """

    kind: ClassVar[str] = "cycle"
    always_acts: ClassVar[bool] = True
    weights: Weights = "uniform"


@dataclass(frozen=True)
class Last:
    """Assign to the server that last announced itself to this router; 0 messages.

    It may be busy by now.
    """

    kind: ClassVar[str] = "last"
    always_acts: ClassVar[bool] = False


@dataclass(frozen=True)
class Lookup:
    """Inspect all n servers, assign by a table of queue lengths; 2n messages, O(n).

    Attributes:
        limits: (n,) the longest queue that the table distinguishes at each server; longer ones count as that.
        servers: The server to choose for each vector (q_1, ..., q_n) of queue lengths, with the length of
            the last server changing fastest.
        free: Whether inspecting costs no messages.
    """

    kind: ClassVar[str] = "lookup"
    always_acts: ClassVar[bool] = True
    limits: tuple[int, ...]
    servers: tuple[int, ...]
    free: bool = False

    def __post_init__(self) -> None:
        for name in ("limits", "servers"):
            numbers = check.each(f"lookup.{name}", getattr(self, name), check.count, empty=False, least=0)
            assign(self, **{name: numbers})
        size = math.prod(limit + 1 for limit in self.limits)
        if len(self.servers) != size:
            raise PolicyError(f"lookup.servers has {len(self.servers)} entries: limits imply {size}")
        if max(self.servers) >= len(self.limits):
            last = len(self.limits) - 1
            raise PolicyError(f"lookup.servers has {max(self.servers)}: limits name servers 0 to {last}")


Step = Take | Recall | Send | Probe | Search | Inspect | Cycle | Last | Lookup
STEPS: dict[str, type[Step]] = {step.kind: step for step in get_args(Step)}


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return a step as plain JSON values, its `kind` among them."""
    return {"kind": step.kind, **dataclasses.asdict(step)}


def step_from_dict(content: Step | Mapping[str, Any]) -> Step:
    """Build a step from what `step_to_dict` returns; return a step as it is.

    Raises:
        PolicyError: The kind or a key is unknown.
    """
    if isinstance(content, get_args(Step)):
        return content  # type: ignore[no-any-return]
    kind, values = check.variant("step", content, "kind", STEPS)
    return kind(**check.known_fields(kind.kind, values, kind))


def check_steps(steps: Any) -> tuple[Step, ...]:
    """Return `steps` as a tuple of valid steps.

    Raises:
        PolicyError: There is no step, or one has a value that is not allowed.
    """
    for k, step in enumerate(check.items("steps", steps, empty=False)):
        check.instance(f"steps[{k}]", step, *STEPS.values())
        check_record(step, f"steps[{k}]")
        if getattr(step, "pool", None) is not None and getattr(step, "weights", "uniform") != "uniform":
            raise PolicyError(f"steps[{k}].weights is 'rate': within one pool all rates are equal")
        if getattr(step, "recall", False) and getattr(step, "rank", None) == "work":
            raise PolicyError(f"steps[{k}].rank is 'work': a router remembers lengths, not work")
    return tuple(steps)


_LEAST = {"pool": 0, "at_most": 1, "threshold": 1, "sample": 1, "size": 1}  # of integer fields
_NON_NEGATIVE = ("stop_at", "growth")


@cache  # a vector of envs checks the same steps a thousand times
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def check_record(record: Any, where: str) -> None:
    """Refuse values that fields do not allow: choices by annotation, numbers by range."""
    hints = _hints(type(record))  # type: ignore[arg-type]
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{where}.{field.name}"
        choices = get_args(hints[field.name])
        if (value is None and type(None) in choices) or hints[field.name] == tuple[int, ...]:
            continue  # the numbers of a table check themselves
        if field.name in _LEAST:
            checked: float = check.whole(name, value, _LEAST[field.name], UNLIMITED)
        elif field.name in _NON_NEGATIVE:
            checked = check.non_negative(name, value)
        elif hints[field.name] is bool:
            check.flag(name, value)
            continue
        else:
            check.choice(name, value, choices)
            continue
        if not isinstance(value, int | float):  # numpy's numbers have no JSON
            assign(record, **{field.name: checked})
