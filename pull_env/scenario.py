"""What is simulated: pools of servers, routers, load and prices, as frozen values that check themselves.

Symbols: J pools, n servers in all, R routers. The unit of time is the user's; rates are per unit of time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import reprlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from difflib import SequenceMatcher
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = Path(__file__).with_name("scenarios")
LARGEST_INTEGER = 2**31 - 1  # the kernels keep servers and queue lengths in int32
SHARES_TOLERANCE = 1e-9

_Part = TypeVar("_Part")


class ScenarioError(ValueError):
    """A scenario that cannot be simulated; one sentence names the field, its value, and what is allowed."""


@dataclass(frozen=True)
class Pool:
    """Servers that are alike.

    Attributes:
        size: Number of servers.
        rate: Customers that a busy server serves per unit of time.
        buffer: Most customers a server holds, the one in service included; None for no limit.

    Raises:
        ScenarioError: If a value is not allowed.
    """

    size: int
    rate: float = 1.0
    buffer: int | None = None

    def __post_init__(self) -> None:
        _assign(self, size=_count("size", self.size), rate=_positive("rate", self.rate))
        if self.buffer is not None:
            _assign(self, buffer=_count("buffer", self.buffer))


@dataclass(frozen=True)
class Prices:
    """What the cost per arriving customer adds up.

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
        _assign(self, wait=_not_negative("wait", self.wait), message=_not_negative("message", self.message))
        _assign(self, block=_not_negative("block", self.block))


@dataclass(frozen=True)
class Trace:
    """A CSV file of recorded customers, and its columns to use; `pull_env.trace` reads it.

    Attributes:
        trace: Path of the file.
        time: Name of the column with the arrival times.
        size: Name of the column with the work that each customer brings.

    Raises:
        ScenarioError: If a value is not a string or is empty.
    """

    trace: str
    time: str
    size: str

    def __post_init__(self) -> None:
        path = os.fspath(self.trace) if isinstance(self.trace, os.PathLike) else self.trace
        _assign(
            self, trace=_text("trace", path), time=_text("time", self.time), size=_text("size", self.size)
        )


@dataclass(frozen=True)
class Scenario:
    """A system to simulate, with its prices.

    Fields stay as they were given, so that `dataclasses.replace` works; what follows from them is a property.

    Attributes:
        pools: The J pools.
        routers: Number of routers R.
        load: Total arrival rate as a share of the capacity.
        arrival_rate: Customers per unit of time, over all routers; given exactly where `load` is not.
        shares: Share of the customers that each router gets, R numbers that sum to 1; None for equal shares.
        prices: What waiting, messages and blocking cost.
        arrivals: Recorded arrival times and sizes, scaled to the arrival rate; None for Poisson arrivals.
        name: Name of the scenario in tables and rows.
        version: Goes up whenever a number of a named scenario changes.

    Raises:
        ScenarioError: If a value is not allowed, or values do not fit together.
    """

    pools: tuple[Pool, ...]
    routers: int = 1
    load: float | None = None
    arrival_rate: float | None = None
    shares: tuple[float, ...] | None = None
    prices: Prices = field(default_factory=Prices)
    arrivals: Trace | None = None
    name: str = "custom"
    version: int = 1

    def __post_init__(self) -> None:
        _assign(self, pools=tuple(_listed("pools", self.pools)))
        if not self.pools:
            raise _refusal("pools", self.pools, "a list of at least one pool")
        for index, pool in enumerate(self.pools):
            _expect(f"pools[{index}]", pool, Pool)
        _expect("prices", self.prices, Prices)
        if self.arrivals is not None:
            _expect("arrivals", self.arrivals, Trace)
        _assign(self, routers=_count("routers", self.routers), version=_count("version", self.version))
        _assign(self, name=_text("name", self.name))
        self._settle_rate()
        if self.shares is not None:
            _assign(self, shares=_shares(self.shares, self.routers))

    def _settle_rate(self) -> None:
        if (self.load is None) == (self.arrival_rate is None):
            both = f"load is {self.load!r} and arrival_rate is {self.arrival_rate!r}"
            raise ScenarioError(f"{both}: exactly one of the two must be given")
        if self.load is not None:
            _assign(self, load=_positive("load", self.load))
        else:
            _assign(self, arrival_rate=_positive("arrival_rate", self.arrival_rate))
        # Each number may be finite while their product overflows, or vanishes.
        _positive("the capacity, sum of size x rate over the pools,", self.capacity)
        _positive("the total arrival rate, load x capacity,", self.total_arrival_rate)

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
        """Share of the customers that each router gets, (R,) numbers."""
        return self.shares if self.shares is not None else (1.0 / self.routers,) * self.routers

    @property
    def unlimited(self) -> bool:
        """Whether no server has a limit, so that no customer is ever blocked."""
        return all(pool.buffer is None for pool in self.pools)

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the scenario as canonical JSON: equal scenarios have equal digests."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as plain JSON values; fields that are None are left out."""
        return asdict(self, dict_factory=_json_object)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scenario:
        """Return the scenario that `to_dict` or a TOML file describes.

        Args:
            data: Values by field name; pools, prices and arrivals are mappings themselves.

        Raises:
            ScenarioError: If a key is unknown or missing, or a value is not allowed.
        """
        values = _known_fields(cls, data, "scenario")
        pools = _listed("pools", values["pools"])
        values["pools"] = tuple(_build(Pool, pool, f"pools[{index}]") for index, pool in enumerate(pools))
        if "prices" in values:
            values["prices"] = _build(Prices, values["prices"], "prices")
        if values.get("arrivals") is not None:
            values["arrivals"] = _build(Trace, values["arrivals"], "arrivals")
        return cls(**values)


def scenario_names() -> tuple[str, ...]:
    """Return the names of the presets, in alphabetical order."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.toml")))


def load_scenario(name_or_path: str) -> Scenario:
    """Return a preset, or the scenario in a TOML file.

    Args:
        name_or_path: Name of a preset, see `scenario_names`, or path of a TOML file; a preset comes before a
            file of the same name. The file's own relative path to a trace starts at the file's folder.

    Raises:
        ScenarioError: If there is no such preset or file, or the file does not hold a valid scenario.
    """
    names = scenario_names()
    if name_or_path in names:
        return _load_file(PRESETS / f"{name_or_path}.toml")
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1 or path.is_file():
        return _load_file(path)
    raise ScenarioError(
        f"{name_or_path!r} is not a known scenario: the nearest is {nearest(name_or_path, names)!r}, "
        f"the presets are {', '.join(names)}, and a path to a TOML file is allowed too"
    )


def as_scenario(source: Scenario | str | os.PathLike[str] | Mapping[str, Any]) -> Scenario:
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
    raise _refusal("scenario", source, "a Scenario, a preset's name, a path to a TOML file, or a mapping")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the word in `known` (not empty) that is most like `word`, upper and lower case being alike."""
    return max(known, key=lambda name: SequenceMatcher(None, word.lower(), name.lower()).ratio())


def _load_file(path: Path) -> Scenario:
    try:
        data = tomllib.loads(path.read_text("utf-8-sig"))
        scenario = Scenario.from_dict({"name": path.stem, **data})
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not valid TOML: {error}") from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None
    if scenario.arrivals is None:
        return scenario
    trace = (path.parent / scenario.arrivals.trace).resolve()
    return replace(scenario, arrivals=replace(scenario.arrivals, trace=str(trace)))


def _json_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in items if value is not None
    }


def _build(kind: type[_Part], data: object, where: str) -> _Part:
    values = _known_fields(kind, data, where, prefix=f"{where}.")
    try:
        return kind(**values)
    except ScenarioError as error:  # starts with the field's name, to which the part of the scenario is added
        raise ScenarioError(f"{where}.{error}") from None


def _known_fields(kind: type, data: object, where: str, prefix: str = "") -> dict[str, Any]:
    known = {declared.name: declared for declared in fields(kind)}
    if not isinstance(data, Mapping):
        raise _refusal(where, data, f"a table with the keys {', '.join(known)}")
    for key in data:
        if key not in known:
            near = nearest(str(key), known)
            raise ScenarioError(
                f"{prefix}{key} is not a known key: the nearest is {near!r}, of {', '.join(known)}"
            )
    for key, declared in known.items():
        required = declared.default is MISSING and declared.default_factory is MISSING
        if required and key not in data:
            raise ScenarioError(f"{prefix}{key} is missing: it must be given")
    return dict(data)


def _assign(instance: Pool | Prices | Trace | Scenario, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)  # the only way to set a field of a frozen dataclass


def _refusal(name: str, value: object, allowed: str) -> ScenarioError:
    return ScenarioError(f"{name} is {reprlib.repr(value)}: it must be {allowed}")


def _expect(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise _refusal(name, value, f"a {kind.__name__}")


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _refusal(name, value, "a list")
    return list(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _refusal(name, value, "a string that is not empty")
    return value


def _count(name: str, value: object) -> int:
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else 0
    if not 1 <= number <= LARGEST_INTEGER:
        raise _refusal(name, value, f"an integer from 1 to {LARGEST_INTEGER}")
    return number


def _positive(name: str, value: object) -> float:
    number = _number(value)
    if not 0.0 < number < math.inf:
        raise _refusal(name, value, "a positive finite number")
    return number


def _not_negative(name: str, value: object) -> float:
    number = _number(value)
    if not 0.0 <= number < math.inf:
        raise _refusal(name, value, "a finite number of 0 or more")
    return number


def _number(value: object) -> float:
    """Return `value` as a float; NaN, which lies in no range, for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _shares(value: object, routers: int) -> tuple[float, ...]:
    listed = _listed("shares", value)
    shares = tuple(_not_negative(f"shares[{index}]", share) for index, share in enumerate(listed))
    if len(shares) != routers:
        raise ScenarioError(f"shares has {len(shares)} numbers: it must have {routers}, one for each router")
    total = math.fsum(shares)
    if abs(total - 1.0) > SHARES_TOLERANCE:
        raise ScenarioError(f"shares sum to {total!r}: they must sum to 1")
    return shares
