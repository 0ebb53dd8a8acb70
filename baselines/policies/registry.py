"""The table of named policies, which tests, leaderboard and README iterate over."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pull_env.policy.policy import Policy, PolicyError
from pull_env.scenario.validation import check_argument, one_of

Maker = Callable[..., Policy]


@dataclass(frozen=True)
class Entry:
    """A named policy.

    Attributes:
        name: Its id.
        rule: How it routes a customer, in one line.
        messages: Messages per customer, in one line.
        reference: Its source.
        maker: Returns the policy; takes whole numbers, and real ones for arguments annotated as `float`.
    """

    name: str
    rule: str
    messages: str
    reference: str
    maker: Maker

    @property
    def arguments(self) -> dict[str, inspect.Parameter]:
        """The parameters of the maker, by name."""
        return dict(inspect.signature(self.maker, eval_str=True).parameters)

    @property
    def usage(self) -> str:
        """The name with its arguments and their defaults."""
        words = [
            k if p.default in (p.empty, None) else f"{k}={format_number(p.default)}"
            for k, p in self.arguments.items()
        ]
        return f"{self.name}({', '.join(words)})" if words else self.name


POLICIES: dict[str, Entry] = {}


def policy(name: str, *, rule: str, messages: str, reference: str) -> Callable[[Maker], Maker]:
    """Register a function that returns a policy under a name of the table."""

    def register(maker: Maker) -> Maker:
        POLICIES[name] = Entry(name, rule, messages, reference, maker)
        return maker

    return register


def make(name: str, **arguments: float) -> Policy:
    """Return a policy by name, with its arguments in the name or beside it.

    `make("power-of-d", d=2)`, `make("power-of-d(2)")` and `make("power-of-d(d=2)")` are the same.

    Args:
        name: An id of the table, with or without arguments in parentheses.
        **arguments: Numbers, by name.

    Raises:
        ValueError: The name or an argument is unknown, or a value is not allowed.

    >>> make("jbt(3)").announce.threshold
    3
    """
    base, given = _parse(name)
    if base not in POLICIES:
        raise ValueError(f"policy is {name!r}: {one_of(base, POLICIES)}")
    entry = POLICIES[base]
    names = list(entry.arguments)
    if len(given) > len(names):
        raise ValueError(f"policy is {name!r}: it takes at most {len(names)} arguments: {entry.usage}")
    values = {key if isinstance(key, str) else names[key]: value for key, value in given.items()}
    for key, value in arguments.items():
        if key in values:
            raise ValueError(f"policy is {name!r}: its argument {key} is given twice")
        values[key] = value
    for key, value in values.items():
        if key not in names:
            raise ValueError(f"policy is {name!r}: it has no argument {key!r}, known: {entry.usage}")
        values[key] = _number(value, entry.arguments[key], base)
    missing = [key for key, p in entry.arguments.items() if p.default is p.empty and key not in values]
    if missing:
        raise ValueError(f"policy is {name!r}: its argument {missing[0]} is missing: {entry.usage}")
    try:
        policy = entry.maker(**values)
    except PolicyError as error:
        raise ValueError(f"policy is {name!r}: {error}") from None
    numbers = [values.get(key, p.default) for key, p in entry.arguments.items()]
    while numbers and numbers[-1] is None:  # omitted by default
        numbers.pop()
    full_name = f"{base}({', '.join(map(format_number, numbers))})" if numbers else base
    return dataclasses.replace(policy, name=full_name)


def format_number(value: float | None) -> str:
    """Return a number as in names of policies: whole numbers without decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any, argument: inspect.Parameter, base: str) -> float:
    """Return an argument as the int or float that its annotation asks for."""
    name = f"{base}: {argument.name}"
    if argument.annotation is float:
        return check_argument.non_negative(name, value)
    return check_argument.whole(name, value, 1)


def _parse(text: str) -> tuple[str, dict[Any, Any]]:
    """Split `name(2, d=3)` into the name and its arguments, by position or by name."""
    if not isinstance(text, str) or not text.strip():
        raise check_argument.refusal("policy", text, "a name such as 'power-of-d(2)'")
    base, bracket, rest = text.strip().partition("(")
    if not bracket:
        return base, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call):
            raise SyntaxError
        given: dict[Any, Any] = {k: ast.literal_eval(value) for k, value in enumerate(call.args)}
        given.update({word.arg: ast.literal_eval(word.value) for word in call.keywords})
    except (SyntaxError, ValueError):
        raise ValueError(f"policy is {text!r}: arguments are written as in 'power-of-d(2)'") from None
    return base.strip(), given
