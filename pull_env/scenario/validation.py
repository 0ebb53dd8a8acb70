"""How the parts of a scenario check their fields, and are built from tables: one sentence for a refusal."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from difflib import SequenceMatcher
from numbers import Integral, Real
from typing import Any, TypeVar

LARGEST_INTEGER = 2**31 - 1  # the kernels keep servers and queue lengths in int32

_Part = TypeVar("_Part")


class ScenarioError(ValueError):
    """A scenario that cannot be simulated; one sentence names the field, its value, and what is allowed."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the word in `known` (not empty) that is most like `word`, upper and lower case being alike."""
    return max(known, key=lambda name: SequenceMatcher(None, word.lower(), name.lower()).ratio())


def build(kind: type[_Part], data: object, where: str) -> _Part:
    """Return the part of a scenario that a table describes; errors say that it stands at `where`."""
    values = known_fields(kind, data, where, prefix=f"{where}.")
    try:
        return kind(**values)
    except ScenarioError as error:  # starts with the field's name, to which the part of the scenario is added
        raise ScenarioError(f"{where}.{error}") from None


def choose(kinds: Mapping[str, type[_Part]], data: object, where: str, key: str) -> tuple[type[_Part], Any]:
    """Return which of `kinds` a table names by its entry `key`, and the table without it."""
    if not isinstance(data, Mapping):
        raise refusal(where, data, f"a table with the key {key}, one of {', '.join(kinds)}")
    if key not in data:
        raise ScenarioError(f"{where}.{key} is missing: it must be one of {', '.join(kinds)}")
    named = data[key]
    if named not in tuple(kinds):
        near = nearest(str(named), kinds)
        raise ScenarioError(f"{where}.{key} is {named!r}: the nearest is {near!r}, of {', '.join(kinds)}")
    return kinds[named], {name: value for name, value in data.items() if name != key}


def known_fields(kind: type, data: object, where: str, prefix: str = "") -> dict[str, Any]:
    """Return the table `data`, if its keys are fields of `kind`, and all that must be given are there."""
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind) if each.init}
    if not isinstance(data, Mapping):
        raise refusal(where, data, f"a table with the keys {', '.join(known)}")
    for key in data:
        if key not in known:
            if not known:
                raise ScenarioError(f"{prefix}{key} is not a known key: there is none")
            near = nearest(str(key), known)
            raise ScenarioError(
                f"{prefix}{key} is not a known key: the nearest is {near!r}, of {', '.join(known)}"
            )
    for key, declared in known.items():
        required = declared.default is MISSING and declared.default_factory is MISSING
        if required and key not in data:
            raise ScenarioError(f"{prefix}{key} is missing: it must be given")
    return dict(data)


def assign(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)  # the only way


def refusal(name: str, value: object, allowed: str) -> ScenarioError:
    """Return the error that says what `name` is, and what it must be."""
    return ScenarioError(f"{name} is {reprlib.repr(value)}: it must be {allowed}")


def expect(name: str, value: object, *kinds: type) -> None:
    """Refuse a value that is of none of the classes `kinds`."""
    if not isinstance(value, kinds):
        raise refusal(name, value, f"a {' or '.join(kind.__name__ for kind in kinds)}")


def listed(name: str, value: object) -> list[Any]:
    """Return a list or tuple as a list."""
    if not isinstance(value, list | tuple):
        raise refusal(name, value, "a list")
    return list(value)


def text(name: str, value: object) -> str:
    """Return a string, if it is not empty."""
    if not isinstance(value, str) or not value:
        raise refusal(name, value, "a string that is not empty")
    return value


def path(name: str, value: object) -> str:
    """Return the path of a file as a string."""
    return text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def count(name: str, value: object) -> int:
    """Return an integer from 1."""
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else 0
    if not 1 <= found <= LARGEST_INTEGER:
        raise refusal(name, value, f"an integer from 1 to {LARGEST_INTEGER}")
    return found


def positive(name: str, value: object) -> float:
    """Return a positive finite number as a float."""
    found = number(value)
    if not 0.0 < found < math.inf:
        raise refusal(name, value, "a positive finite number")
    return found


def not_negative(name: str, value: object) -> float:
    """Return a finite number of 0 or more as a float."""
    found = number(value)
    if not 0.0 <= found < math.inf:
        raise refusal(name, value, "a finite number of 0 or more")
    return found


def above(name: str, value: object, least: float) -> float:
    """Return a finite number above `least` as a float."""
    found = number(value)
    if not least < found < math.inf:
        raise refusal(name, value, f"a finite number above {least:g}")
    return found


def number(value: object) -> float:
    """Return `value` as a float; NaN, which lies in no range, for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
