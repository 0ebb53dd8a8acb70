"""Delay and loss of messages; failures, slowdowns and drains of servers.

Frozen dataclasses that check their fields. Times are in the unit of the scenario; periods are exponential.
Failures and restarts depend on the seed alone, so that policies compared on one seed meet the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pull_env.scenario.validation import ScenarioError, assign
from pull_env.scenario.validation import check_scenario as check

DelayLaw = Literal["constant", "exponential"]
Fate = Literal["wait", "lost", "restart"]

TIMEOUT_DELAYS = {"constant": 2.0, "exponential": 8.0}  # default time to wait for an answer, in mean delays


@dataclass(frozen=True)
class News:
    """Delay and loss of messages between servers and routers.

    Customers travel in no time. Pull-messages, remove-messages, probes and their answers are delayed and
    may be lost. They carry no number and may overtake each other, so that a router may hold a message that
    is out of date; it finds out by the customer that it sends there. An answer gives the queue at the time
    of assignment, and the customer waits for it before joining a queue: for the sum of the answers if
    servers are probed one by one, for the latest if all are probed at once. Inspecting all servers is never
    lost, and takes two delays. A server that samples routers, to announce itself to the one that holds
    fewest messages, has done so in advance: that takes no time, and is never lost.

    Attributes:
        delay: Mean delay of a message.
        law: Distribution of the delay: `constant` or `exponential`.
        loss: Probability that a message is lost.
        repeat: Time after which a server whose message is out announces itself again to the same router,
            counted from the message's arrival, or from sending if it was lost; None: never, and an idle
            server whose message was lost waits for a customer that comes another way.
        timeout: Time that a router waits for an answer; None: two constant delays, or eight exponential ones.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    delay: float = 0.0
    law: DelayLaw = "constant"
    loss: float = 0.0
    repeat: float | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check.fields(self, check.non_negative, "delay", "timeout")
        check.fields(self, check.choice, "law", choices=get_args(DelayLaw))
        check.fields(self, check.number, "loss", least=0.0, below=1.0)
        check.fields(self, check.positive, "repeat")

    @property
    def answer_timeout(self) -> float:
        """Time that a router waits for an answer."""
        return TIMEOUT_DELAYS[self.law] * self.delay if self.timeout is None else self.timeout

    @property
    def active(self) -> bool:
        """Whether messages do not simply arrive at once."""
        return self.delay > 0 or self.loss > 0 or self.repeat is not None


@dataclass(frozen=True)
class Drain:
    """A period in which a pool accepts no customers and withdraws its messages.

    Customers that are there are still served.

    Attributes:
        pool: Number of the pool, from 0.
        at: Start of the period; 0.0: the pool is missing from the start.
        until: End of the period; None: it has no end.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    pool: int
    at: float
    until: float | None = None

    def __post_init__(self) -> None:
        check.fields(self, check.count, "pool", least=0)
        check.fields(self, check.non_negative, "at")
        check.fields(self, check.positive, "until")
        if self.until is not None and self.until <= self.at:
            raise check.refusal("until", self.until, f"later than at, {self.at}")

    def overlaps(self, other: Drain) -> bool:
        """Return whether the two periods overlap."""
        first, second = sorted((self, other), key=lambda drain: drain.at)
        return first.until is None or second.at <= first.until


@dataclass(frozen=True)
class Faults:
    """Failures of servers and routers.

    A server that is down or drained accepts nothing: customers sent there are blocked, and probes are not
    answered. It sends no message when it fails; when it returns, it announces itself if it is available.

    Attributes:
        up: Mean time until a server fails; None: never.
        down: Mean time until it is repaired; given if and only if `up` is.
        customers: What happens to customers at a server that fails: they `wait` and the service resumes, they
            are `lost` at the price of a blocked customer, or they wait and the service must `restart`.
        normal: Mean time until a server slows down; None: never.
        slow: Mean time until it recovers its speed; given if and only if `normal` is.
        factor: Of its rate while it is slow.
        restart: Mean time between restarts of a router, which loses its messages, its memory and what it
            learned from probes; None: never.
        pools: Numbers of the pools whose servers fail and slow down; None: all.
        drains: Periods in which pools are drained.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    up: float | None = None
    down: float | None = None
    customers: Fate = "wait"
    normal: float | None = None
    slow: float | None = None
    factor: float = 0.5
    restart: float | None = None
    pools: tuple[int, ...] | None = None
    drains: tuple[Drain, ...] = ()

    def __post_init__(self) -> None:
        for first, second in (("up", "down"), ("normal", "slow")):
            if (getattr(self, first) is None) != (getattr(self, second) is None):
                both = f"{first} is {getattr(self, first)!r} and {second} is {getattr(self, second)!r}"
                raise ScenarioError(f"{both}: both must be given, or neither")
        check.fields(self, check.positive, "up", "down", "normal", "slow", "restart", "factor")
        check.fields(self, check.choice, "customers", choices=get_args(Fate))
        if self.pools is not None:
            assign(self, pools=check.each("pools", self.pools, check.count, least=0))
        assign(self, drains=tuple(check.items("drains", self.drains)))
        for k, drain in enumerate(self.drains):
            check.instance(f"drains[{k}]", drain, Drain)
            for m, other in enumerate(self.drains[:k]):
                if drain.pool == other.pool and drain.overlaps(other):
                    raise ScenarioError(
                        f"drains[{k}] and drains[{m}] are of pool {drain.pool}: one must end before the next"
                    )

    @property
    def active(self) -> bool:
        """Whether anything can fail, slow down, restart or be drained."""
        return any((self.up, self.normal, self.restart, self.drains))

    @property
    def blocks(self) -> bool:
        """Whether servers accept nothing at times."""
        return self.up is not None or bool(self.drains)

    def check(self, pools: int) -> None:
        """Check the numbers of pools against the number that a scenario has.

        Raises:
            ScenarioError: There is no such pool; the message names the field.
        """
        named = [(f"faults.pools[{k}]", pool) for k, pool in enumerate(self.pools or ())]
        named += [(f"faults.drains[{k}].pool", drain.pool) for k, drain in enumerate(self.drains)]
        for name, pool in named:
            if pool >= pools:
                raise check.refusal(name, pool, f"a whole number from 0 to {pools - 1}, the last pool")


def build_faults(data: object, where: str) -> Faults:
    """Return the faults that a table describes; its drains are tables themselves.

    Raises:
        ScenarioError: If a key is unknown or missing, or a value is not allowed.
    """
    values = check.known_fields(where, data, Faults)
    drains = values.get("drains")
    if isinstance(drains, list | tuple):
        values["drains"] = tuple(
            check.build(f"{where}.drains[{k}]", each, Drain) for k, each in enumerate(drains)
        )
    return check.build(where, values, Faults)
