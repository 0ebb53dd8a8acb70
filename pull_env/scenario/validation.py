"""Checks of values, for scenarios, policies and arguments alike.

Every error is one sentence that names the value, shows it, and says what is allowed:
`pools[1].rate is -1.0: it must be a positive finite number`. A validator raises one class of errors:
`check_scenario` raises ScenarioError, `policy.steps.check_policy` PolicyError, `check_argument` ValueError.
"""

from __future__ import annotations

import difflib
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from numbers import Integral, Real
from typing import Any, TypeVar

LARGEST_INTEGER = 2**31 - 1  # the kernels keep servers and queue lengths in int32

_Part = TypeVar("_Part")

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 100


class ScenarioError(ValueError):
    """A scenario that cannot be simulated; the message names field, value and remedy."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the name in `known` most similar to `word`, if any; ignore case."""
    by_lower_case = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), by_lower_case, 1)
    return by_lower_case[matches[0]] if matches else None


def one_of(word: object, known: Iterable[str]) -> str:
    """Return the end of an error: a suggestion if there is one, and all names."""
    names = list(known)
    if not names:
        return "there is none"
    near = nearest(word, names) if isinstance(word, str) else None
    start = "it" if near is None else f"did you mean {near!r}? It"
    return f"{start} must be {'one of ' if len(names) > 1 else ''}{', '.join(names)}"


def assign(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)  # the only way


@dataclass(frozen=True)
class Validator:
    """Checks that return the value in its plain Python type, or raise.

    Attributes:
        error: The class of the errors raised.
    """

    error: type[ValueError]

    def refusal(self, name: str, value: object, allowed: str) -> ValueError:
        """Return the error that says what `name` is, and what it must be."""
        return self.error(f"{name} is {_REPR.repr(value)}: it must be {allowed}")

    def optional(
        self, check: Callable[..., _Part], name: str, value: object, *limits: object, **bounds: object
    ) -> _Part | None:
        """Return None for None, else what `check` returns."""
        return None if value is None else check(name, value, *limits, **bounds)

    def fields(self, instance: object, check: Callable[..., object], *names: str, **bounds: object) -> None:
        """Check fields of a frozen dataclass and set them to what `check` returns.

        None stays if it is the default of the field.
        """
        defaults = {field.name: field.default for field in fields(instance)}  # type: ignore[arg-type]
        for name in names:
            value = getattr(instance, name)
            if value is not None or defaults[name] is not None:
                assign(instance, **{name: check(name, value, **bounds)})

    def whole(self, name: str, value: object, least: int, most: int | None = None) -> int:
        """Return an integer from `least` to `most`, both included."""
        if isinstance(value, Integral) and not isinstance(value, bool):
            number = int(value)
            if least <= number and (most is None or number <= most):
                return number
        raise self.refusal(
            name, value, f"a whole number from {least}" + ("" if most is None else f" to {most}")
        )

    def count(self, name: str, value: object, least: int = 1) -> int:
        """Return an integer from `least` that the kernels can hold."""
        return self.whole(name, value, least, LARGEST_INTEGER)

    def positive(self, name: str, value: object) -> float:
        """Return a positive finite number as a float."""
        number = as_number(value)
        if not 0.0 < number < math.inf:
            raise self.refusal(name, value, "a positive finite number")
        return number

    def non_negative(self, name: str, value: object) -> float:
        """Return a finite number of 0 or more as a float."""
        number = as_number(value)
        if not 0.0 <= number < math.inf:
            raise self.refusal(name, value, "a finite number of 0 or more")
        return number

    def number(
        self,
        name: str,
        value: object,
        *,
        least: float | None = None,
        above: float | None = None,
        most: float | None = None,
        below: float | None = None,
    ) -> float:
        """Return a finite number as a float; bounds `least` and `most` are included."""
        number = as_number(value)
        low = number >= least if least is not None else above is None or number > above
        high = number <= most if most is not None else below is None or number < below
        if low and high and math.isfinite(number):
            return number
        bounds = {"from": least, "above": above, "at most": most, "below": below}
        words = " and ".join(f"{word} {bound:.15g}" for word, bound in bounds.items() if bound is not None)
        kind = "a finite number" if most is below else "a number"  # without an upper bound both are None
        if least is not None:
            words = words.replace(" and at most", " to")
        raise self.refusal(name, value, f"{kind} {words}".rstrip())

    def flag(self, name: str, value: object) -> bool:
        """Return a bool."""
        if not isinstance(value, bool):
            raise self.refusal(name, value, "true or false")
        return value

    def choice(self, name: str, value: object, choices: Iterable[str]) -> str:
        """Return one of the strings `choices`; the error suggests the nearest one."""
        names = tuple(choices)
        if isinstance(value, str) and value in names:
            return value
        raise self.error(f"{name} is {_REPR.repr(value)}: {one_of(value, names)}")

    def text(self, name: str, value: object) -> str:
        """Return a string that is not empty."""
        if not isinstance(value, str) or not value:
            raise self.refusal(name, value, "a string that is not empty")
        return value

    def path(self, name: str, value: object) -> str:
        """Return the path of a file as a string."""
        return self.text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)

    def items(self, name: str, value: object, *, empty: bool = True) -> list[Any]:
        """Return a list or tuple as a list; `empty` allows one without items."""
        if not isinstance(value, list | tuple) or not (value or empty):
            raise self.refusal(name, value, "a list" if empty else "a list of at least one item")
        return list(value)

    def each(
        self, name: str, value: object, check: Callable[..., _Part], *, empty: bool = True, **bounds: object
    ) -> tuple[_Part, ...]:
        """Return a list or tuple as a tuple of what `check` returns for its items."""
        items = self.items(name, value, empty=empty)
        return tuple(check(f"{name}[{k}]", item, **bounds) for k, item in enumerate(items))

    def distinct(self, name: str, values: Sequence[object]) -> None:
        """Refuse a list that is empty or holds something twice."""
        for value in self.items(name, values, empty=False):
            if values.count(value) > 1:
                raise self.error(f"{name} holds {value} twice: each must differ from the others")

    def instance(self, name: str, value: object, *kinds: type) -> None:
        """Refuse a value that is of none of the classes `kinds`."""
        if not isinstance(value, kinds):
            raise self.refusal(name, value, f"a {' or '.join(kind.__name__ for kind in kinds)}")

    def known_keys(
        self, where: str, data: object, known: Iterable[str], prefix: str | None = None
    ) -> dict[str, Any]:
        """Return the table `data` as a dict if all its keys are in `known`.

        Errors name a key after `prefix`, which is `where` and a dot by default.
        """
        names, prefix = tuple(known), f"{where}." if prefix is None else prefix
        if not isinstance(data, Mapping):
            raise self.refusal(where, data, f"a table with the keys {', '.join(names)}")
        for key in data:
            if key not in names:
                raise self.error(f"{prefix}{key} is not a known key: {one_of(key, names)}")
        return dict(data)

    def known_fields(self, where: str, data: object, kind: type, prefix: str | None = None) -> dict[str, Any]:
        """Return the table `data` if its keys fit the fields of the dataclass `kind`."""
        declared: dict[str, Field[Any]] = {each.name: each for each in fields(kind) if each.init}
        values = self.known_keys(where, data, declared, prefix)
        for key, field in declared.items():
            if key not in values and field.default is MISSING and field.default_factory is MISSING:
                place = f"{where}." if prefix is None else prefix
                raise self.error(f"{place}{key} is missing: it must be given")
        return values

    def build(self, where: str, data: object, kind: type[_Part]) -> _Part:
        """Return the `kind` that a table describes; its errors start with `where`."""
        values = self.known_fields(where, data, kind)
        try:
            return kind(**values)
        except self.error as error:  # starts with the field's name
            raise self.error(f"{where}.{error}") from None

    def variant(
        self, where: str, data: object, key: str, kinds: Mapping[str, type[_Part]]
    ) -> tuple[type[_Part], dict[str, Any]]:
        """Return the class that the entry `key` of a table names, and other entries."""
        if not isinstance(data, Mapping):
            raise self.refusal(where, data, f"a table with the key {key}, one of {', '.join(kinds)}")
        if key not in data:
            raise self.error(f"{where}.{key} is missing: it must be one of {', '.join(kinds)}")
        kind = kinds[self.choice(f"{where}.{key}", data[key], kinds)]
        return kind, {name: value for name, value in data.items() if name != key}


def as_number(value: object) -> float:
    """Return `value` as a float; NaN, which is in no range, if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


check_scenario = Validator(ScenarioError)
check_argument = Validator(ValueError)
