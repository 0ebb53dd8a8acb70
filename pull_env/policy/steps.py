"""The steps of a router: what it may do for the customer at hand, as data; and how they are checked and read.

`Take`, `Recall` and `Last` cannot act when there is no message, nothing remembered, or nobody has announced
itself yet; the others always can.
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
        recall: Whether the servers remembered from earlier customers compete with those asked, at the length
            remembered; one of them is chosen only if it is better, the freshest of equals.
    """

    kind: ClassVar[str] = "probe"
    total: ClassVar[bool] = True
    pool: int | None = None
    weights: Weights = "uniform"
    at_most: int = 2
    stop_at: float | None = None
    rank: Rank = "queue"
    replace: bool = False
    recall: bool = False


@dataclass(frozen=True)
class Search:
    """Ask servers one at a time where it promises most, until one more is not worth its price; assign to the
    least wait (length / rate) among them, the first of equals; 2 messages a server asked.

    The router asks at random in the pool of least reservation wait, and stops when an answer promises that or
    less. The reservation wait of a pool solves 2 x price of a message = price of a unit of wait x E[(itself -
    W)+], W being what the next answer would promise, by the law of the last answers of this pool to the
    router (`kernels.routing.probe_answers`). The first server is drawn from all by rate, so that no pool is
    forgotten.

    Source: M. L. Weitzman, "Optimal search for the best alternative", Econometrica 47 (1979), 641-654, where
    laws are known, and each stands for one alternative.

    Attributes:
        at_most: Ask no more servers than this.
    """

    kind: ClassVar[str] = "search"
    total: ClassVar[bool] = True
    at_most: int = 32


@dataclass(frozen=True)
class Inspect:
    """Look at all n servers and assign to the best, at random among equals; 2n messages.

    Attributes:
        rank: As for `Probe`. `work` needs the calendar clock, and costs O(n) if no server is idle; all else
            O(pools).
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


@dataclass(frozen=True)
class Last:
    """Assign to the last server that announced itself to this router, even if it is busy now; 0 messages."""

    kind: ClassVar[str] = "last"
    total: ClassVar[bool] = False


@dataclass(frozen=True)
class Lookup:
    """Look at all n servers and assign by a table of their queue lengths; 2n messages, O(n).

    Attributes:
        limits: (n,) the longest queue told apart at each server; longer ones count as that.
        servers: The server to choose, for all queue lengths (q_1, ..., q_n) in ascending order: those of the
            last server change first.
        free: Whether looking costs nothing.
    """

    kind: ClassVar[str] = "lookup"
    total: ClassVar[bool] = True
    limits: tuple[int, ...]
    servers: tuple[int, ...]
    free: bool = False

    def __post_init__(self) -> None:
        for name in ("limits", "servers"):
            numbers = check.each(f"lookup.{name}", getattr(self, name), check.count, empty=False, least=0)
            assign(self, **{name: numbers})
        size = math.prod(limit + 1 for limit in self.limits)
        if len(self.servers) != size:
            raise PolicyError(f"lookup.servers has {len(self.servers)} entries: limits ask for {size}")
        if max(self.servers) >= len(self.limits):
            last = len(self.limits) - 1
            raise PolicyError(f"lookup.servers has {max(self.servers)}: limits name servers 0 to {last}")


Step = Take | Recall | Send | Probe | Search | Inspect | Cycle | Last | Lookup
STEPS: dict[str, type[Step]] = {step.kind: step for step in get_args(Step)}


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return a step as plain JSON values, its `kind` among them."""
    return {"kind": step.kind, **dataclasses.asdict(step)}


def step_from_dict(content: Step | Mapping[str, Any]) -> Step:
    """Build a step from what `step_to_dict` gives; a step is returned as it is.

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
        PolicyError: There is none, or one has a value that is not allowed.
    """
    for k, step in enumerate(check.items("steps", steps, empty=False)):
        check.instance(f"steps[{k}]", step, *STEPS.values())
        check_record(step, f"steps[{k}]")
        if getattr(step, "pool", None) is not None and getattr(step, "weights", "uniform") != "uniform":
            raise PolicyError(f"steps[{k}].weights is 'rate': within one pool all rates are equal")
        if getattr(step, "recall", False) and getattr(step, "rank", None) == "work":
            raise PolicyError(f"steps[{k}].rank is 'work': a router remembers lengths, not work")
    return tuple(steps)


def totals() -> str:
    """Return the kinds that can always act, as text."""
    return ", ".join(kind for kind, step in STEPS.items() if step.total)


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
