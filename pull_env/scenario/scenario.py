"""The simulated system: pools of servers, routers, load and prices.

Scenarios are frozen dataclasses that check their fields.

Symbols: J pools, n servers in all, R routers. The unit of time is the user's; rates are per unit of time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pull_env.scenario.arrivals import ARRIVALS, Arrivals, Bursts, HotRouter, Trace, build_arrivals
from pull_env.scenario.faults import Faults, News, build_faults
from pull_env.scenario.files import read_scenario, scenario_names, scenario_path, traced_names
from pull_env.scenario.laws import Exponential, Law, build_law, check_law
from pull_env.scenario.validation import ScenarioError, assign
from pull_env.scenario.validation import check_scenario as check

__all__ = [
    "Pool",
    "Prices",
    "Scenario",
    "ScenarioError",
    "Trace",
    "as_scenario",
    "load_scenario",
    "scenario_names",
    "traced_names",
]

SHARES_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Pool:
    """Identical servers.

    Attributes:
        size: Number of servers.
        rate: Customers that a busy server serves per unit of time.
        buffer: Most customers at a server, including the one in service; None: no limit.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    size: int
    rate: float = 1.0
    buffer: int | None = None

    def __post_init__(self) -> None:
        check.fields(self, check.count, "size", "buffer")
        check.fields(self, check.positive, "rate")


@dataclass(frozen=True)
class Prices:
    """Prices that make up the cost per arriving customer.

    Attributes:
        wait: Price of one unit of time in queue.
        message: Price of one message.
        block: Price of one blocked customer.

    Raises:
        ScenarioError: If a price is negative or not a finite number.
    """

    wait: float = 1.0
    message: float = 0.05
    block: float = 10.0

    def __post_init__(self) -> None:
        check.fields(self, check.non_negative, "wait", "message", "block")


@dataclass(frozen=True)
class Scenario:
    """A system to simulate, with its prices.

    Fields keep the values given, so that `dataclasses.replace` works; derived quantities are properties.

    Attributes:
        pools: The J pools.
        routers: Number of routers R.
        load: Total arrival rate as a share of the capacity.
        arrival_rate: Customers per unit of time, over all routers; given if and only if `load` is not.
        shares: Share of the customers that each router gets, R numbers that sum to 1; None for equal shares.
            Or a `HotRouter`: one router gets more, and which one changes.
        prices: What waiting, messages and blocking cost.
        arrivals: The arrival process, one of `pull_env.scenario.arrivals`, scaled to the arrival rate; a
            trace brings its service requirements as well. None: Poisson.
        service: Distribution of service requirements, one of `pull_env.scenario.laws`; the service time is
            requirement / rate. None: exponential.
        news: Delay and loss of messages; None: they arrive at once.
        faults: Failures of servers and routers; None: there are none.
        name: Name of the scenario in tables and rows.
        version: Goes up whenever a number of a named scenario changes.

    Raises:
        ScenarioError: If a value is not allowed, or values do not fit together.
    """

    pools: tuple[Pool, ...]
    routers: int = 1
    load: float | None = None
    arrival_rate: float | None = None
    shares: tuple[float, ...] | HotRouter | None = None
    prices: Prices = field(default_factory=Prices)
    arrivals: Arrivals | None = None
    service: Law | None = None
    news: News | None = None
    faults: Faults | None = None
    name: str = "custom"
    version: int = 1

    def __post_init__(self) -> None:
        assign(self, pools=tuple(check.items("pools", self.pools, empty=False)))
        for index, pool in enumerate(self.pools):
            check.instance(f"pools[{index}]", pool, Pool)
        check.instance("prices", self.prices, Prices)
        check.fields(self, check.count, "routers", "version")
        check.fields(self, check.text, "name")
        self._check_rate()
        self._check_workload()
        if self.news is not None:
            check.instance("news", self.news, News)
        if self.faults is not None:
            check.instance("faults", self.faults, Faults)
            self.faults.check(len(self.pools))

    def _check_workload(self) -> None:
        if self.arrivals is not None:
            check.instance("arrivals", self.arrivals, Trace, *ARRIVALS.values())
        if isinstance(self.arrivals, Bursts):
            self.arrivals.phases(self.nominal_load)  # refuses a peak that does not fit
        if self.service is not None:
            check_law("service", self.service)
            if isinstance(self.arrivals, Trace):
                raise check.refusal("service", self.service, "left out: a trace brings its own sizes")
        if isinstance(self.shares, HotRouter):
            if self.routers < 2:
                raise check.refusal("routers", self.routers, "at least 2 for shares of a hot router")
        elif self.shares is not None:
            assign(self, shares=_shares(self.shares, self.routers))

    def _check_rate(self) -> None:
        if (self.load is None) == (self.arrival_rate is None):
            both = f"load is {self.load!r} and arrival_rate is {self.arrival_rate!r}"
            raise ScenarioError(f"{both}: exactly one of the two must be given")
        check.fields(self, check.positive, "load", "arrival_rate")
        # Each number may be finite while their product overflows, or vanishes.
        check.positive("the capacity, sum of size x rate over the pools,", self.capacity)
        check.positive("the total arrival rate, load x capacity,", self.total_arrival_rate)

    @property
    def servers(self) -> int:
        """Number of servers n, over all pools."""
        return sum(pool.size for pool in self.pools)

    @property
    def capacity(self) -> float:
        """Customers per unit of time that all servers together can serve."""
        return math.fsum(pool.size * pool.rate for pool in self.pools)  # the same in every Python

    @property
    def total_arrival_rate(self) -> float:
        """Customers that arrive per unit of time, over all routers."""
        if self.arrival_rate is not None:
            return self.arrival_rate
        assert self.load is not None
        return self.load * self.capacity

    @property
    def nominal_load(self) -> float:
        """Total arrival rate as a share of the capacity, blocked customers included."""
        return self.load if self.load is not None else self.total_arrival_rate / self.capacity

    @property
    def router_shares(self) -> tuple[float, ...]:
        """Share of the customers that each router gets in the long run, (R,) numbers."""
        return self.shares if isinstance(self.shares, tuple) else (1.0 / self.routers,) * self.routers

    @property
    def markov(self) -> bool:
        """Whether the system is a Markov chain: Poisson arrivals, exponential service.

        Shares are fixed, and there are no faults or delays. The Markov clock and most of theory need this.
        """
        poisson = self.arrivals is None and not isinstance(self.shares, HotRouter)
        return poisson and self.service in (None, Exponential()) and not self.has_faults_or_delays

    @property
    def has_faults_or_delays(self) -> bool:
        """Whether messages take time or get lost, or servers or routers fail."""
        return any(part is not None and part.active for part in (self.news, self.faults))

    @property
    def replay(self) -> Trace | None:
        """The trace that is replayed once and ends the run; None: runs have no end."""
        return self.arrivals if isinstance(self.arrivals, Trace) and self.arrivals.block is None else None

    @property
    def never_blocks(self) -> bool:
        """Whether no customer is ever blocked: no buffers, failures or drains."""
        unlimited = all(pool.buffer is None for pool in self.pools)
        return unlimited and not (self.faults and self.faults.blocks)

    @property
    def digest(self) -> str:
        """SHA-256 of the scenario as canonical JSON, in hexadecimal."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as plain JSON values; fields that are None are left out."""
        return asdict(self, dict_factory=_json_object)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scenario:
        """Return the scenario that `to_dict` or a TOML file describes.

        Args:
            data: Values by field name; pools, prices, arrivals, service, news, faults and a hot router are
                mappings as well.

        Raises:
            ScenarioError: If a key is unknown or missing, or a value is not allowed.
        """
        values = check.known_fields("scenario", data, cls, prefix="")
        pools = check.items("pools", values["pools"])
        values["pools"] = tuple(
            check.build(f"pools[{index}]", pool, Pool) for index, pool in enumerate(pools)
        )
        if "prices" in values:
            values["prices"] = check.build("prices", values["prices"], Prices)
        if values.get("arrivals") is not None:
            values["arrivals"] = build_arrivals(values["arrivals"], "arrivals")
        if values.get("service") is not None:
            values["service"] = build_law(values["service"], "service")
        if values.get("news") is not None:
            values["news"] = check.build("news", values["news"], News)
        if values.get("faults") is not None:
            values["faults"] = build_faults(values["faults"], "faults")
        if isinstance(values.get("shares"), Mapping):
            values["shares"] = check.build("shares", values["shares"], HotRouter)
        return cls(**values)


def load_scenario(name_or_path: str, trace: str | os.PathLike[str] | None = None) -> Scenario:
    """Return a preset, or the scenario in a TOML file.

    Args:
        name_or_path: Name of a preset, see `scenario_names` and `traced_names`, or path of a TOML file; a
            preset takes precedence over a file of the same name. Relative paths in a file start at its
            folder.
        trace: Path of the recorded customers of a scenario that replays a trace; overrides the path in its
            file.

    Raises:
        ScenarioError: If there is no such preset or file, or the file does not hold a valid scenario.
    """
    if trace is None and name_or_path in traced_names():
        raise ScenarioError(
            f"{name_or_path} replays a trace that you provide: load_scenario({name_or_path!r}, "
            "trace=PATH), or --trace PATH on the command line"
        )
    path = scenario_path(name_or_path)
    table = read_scenario(path, trace)
    try:
        return Scenario.from_dict(table)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


ScenarioLike = Scenario | str | os.PathLike[str] | Mapping[str, Any]


def as_scenario(source: ScenarioLike) -> Scenario:
    """Return the scenario that `source` is, names, points to, or describes.

    Raises:
        ScenarioError: If `source` is none of these, or not valid.
    """
    if isinstance(source, Scenario):
        return source
    if isinstance(source, Mapping):
        return Scenario.from_dict(source)
    if isinstance(source, str | os.PathLike):
        return load_scenario(os.fspath(source))
    raise check.refusal(
        "scenario", source, "a Scenario, a preset's name, a path to a TOML file, or a mapping"
    )


def _json_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in items if value is not None}


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _shares(value: object, routers: int) -> tuple[float, ...]:
    shares = check.each("shares", value, check.non_negative)
    if len(shares) != routers:
        raise ScenarioError(f"shares has {len(shares)} numbers: it must have {routers}, one for each router")
    total = math.fsum(shares)
    if abs(total - 1.0) > SHARES_TOLERANCE:
        raise ScenarioError(f"shares sum to {total!r}: they must sum to 1")
    return shares
