"""What a real system does to messages and servers: news takes time or gets lost, servers fail or slow down.

Frozen values that check themselves. Times are in the unit of the scenario; periods are exponential. When
servers fail and routers restart depends on the seed alone, so that policies compared on one seed meet the
same failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pull_env.scenario.validation import ScenarioError, assign
from pull_env.scenario.validation import check_scenario as check

Law = Literal["constant", "exponential"]
Fate = Literal["wait", "lost", "restart"]

TIMEOUT_DELAYS = {"constant": 2.0, "exponential": 8.0}  # default time to wait for an answer, in mean delays


@dataclass(frozen=True)
class News:
    """How messages travel between servers and routers. A customer travels in no time.

    Pull-messages, remove-messages, and both ways of a probe take time and may get lost; they carry no number,
    and may overtake each other, so that a router may hold a message that does not stand any more. It learns
    so by the customer that it sends there. An answer says what is true when the customer is placed, and the
    customer has waited for it before it joins a queue: for the sum of the answers where they are asked one by
    one, for the latest where all are asked at once. A look at all servers is never lost, and takes two
    delays. A server that samples routers, to announce itself to the one that holds fewest messages, has done
    so ahead of time: that takes no time, and is never lost.

    Attributes:
        delay: Mean time that a message takes.
        law: Of that time: `constant` or `exponential`.
        loss: Probability that a message gets lost.
        repeat: Time after which a server that is still announced announces itself again to the same router,
            counted from when its message came, or was sent if it got lost; None: it never does, and an idle
            server whose message got lost waits for a customer that comes another way.
        timeout: Time for which a router waits for an answer; None: two delays, eight exponential ones.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    delay: float = 0.0
    law: Law = "constant"
    loss: float = 0.0
    repeat: float | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check.fields(self, check.non_negative, "delay", "timeout")
        check.fields(self, check.choice, "law", choices=get_args(Law))
        check.fields(self, check.number, "loss", least=0.0, below=1.0)
        check.fields(self, check.positive, "repeat")

    @property
    def answer_timeout(self) -> float:
        """Time for which a router waits for an answer."""
        return TIMEOUT_DELAYS[self.law] * self.delay if self.timeout is None else self.timeout

    @property
    def active(self) -> bool:
        """Whether anything is different from messages that come at once."""
        return self.delay > 0 or self.loss > 0 or self.repeat is not None


@dataclass(frozen=True)
class Drain:
    """A pool that accepts nothing for a while; its customers are served, and its messages are withdrawn.

    Attributes:
        pool: Its number, from 0.
        at: When it is drained; 0.0: it is not there from the start.
        until: When it is added again; None: never.

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
        """Return whether both are in force at some time."""
        first, second = sorted((self, other), key=lambda drain: drain.at)
        return first.until is None or second.at <= first.until


@dataclass(frozen=True)
class Faults:
    """How servers and routers fail. A server that is down or drained accepts nothing: who is sent there is
    blocked, and a probe is not answered. It tells nobody when it fails; when it returns it announces itself
    if it is available.

    Attributes:
        up: Mean time until a server fails; None: none does.
        down: Mean time until it returns; given where `up` is.
        customers: What becomes of those at a server that fails: they `wait` and the service goes on from
            where it was, they are `lost` at the price of a blocked customer, or they wait and the service
            must `restart` from its beginning.
        normal: Mean time until a server slows down; None: none does.
        slow: Mean time until it is as fast as before; given where `normal` is.
        factor: Of its rate while it is slow.
        restart: Mean time between two restarts of a router, which forgets its messages, its memory and what
            probes taught it; None: none restarts.
        pools: Numbers of the pools whose servers fail and slow down; None: all.
        drains: Pools that are drained and added at set times.

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
        """Whether there are times at which a server accepts nothing."""
        return self.up is not None or bool(self.drains)

    def check(self, pools: int) -> None:
        """Refuse numbers of pools that a scenario of `pools` does not have.

        Raises:
            ScenarioError: The message names the field.
        """
        named = [(f"faults.pools[{k}]", pool) for k, pool in enumerate(self.pools or ())]
        named += [(f"faults.drains[{k}].pool", drain.pool) for k, drain in enumerate(self.drains)]
        for name, pool in named:
            if pool >= pools:
                raise check.refusal(name, pool, f"a whole number from 0 to {pools - 1}, the last pool")


def faults_of(data: object, where: str) -> Faults:
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
