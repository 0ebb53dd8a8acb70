"""Checks of values: what passes, in which type, and the message for the rest."""

import math

import numpy as np
import pytest

from pull_env.policy.steps import PolicyError, check_policy
from pull_env.scenario.validation import ScenarioError, check_argument, check_scenario, nearest


def test_nearest_takes_no_notice_of_case():
    assert nearest("Timestamp", ["ContextTokens", "TIMESTAMP"]) == "TIMESTAMP"
    assert nearest("SIZE", ["SHAPE", "size"]) == "size"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_argument.whole("n", 2.0, 1), "n is 2.0: it must be a whole number from 1"),
        (lambda: check_argument.whole("n", True, 0, 9), "n is True: it must be a whole number from 0 to 9"),
        (lambda: check_argument.whole("n", np.int64(10), 0, 9), "n is .*10.*: it must be a whole number from 0 to 9"),
        (lambda: check_argument.number("x", 2, least=0, most=1), "x is 2: it must be a number from 0 to 1"),
        (lambda: check_argument.number("x", 1, least=0, below=1), "x is 1: it must be a number from 0 and below 1"),
        (lambda: check_argument.number("x", math.inf, above=0), "x is inf: it must be a finite number above 0"),
        (lambda: check_argument.number("x", "1"), "x is '1': it must be a finite number"),
        (lambda: check_argument.flag("on", 1), "on is 1: it must be true or false"),
        (lambda: check_argument.choice("c", "read", ("red", "blue")), "c is 'read': did you mean 'red'. It must be one of red, blue"),
        (lambda: check_argument.choice("c", 7, ("red", "blue")), "c is 7: it must be one of red, blue"),
        (lambda: check_argument.items("l", "ab"), "l is 'ab': it must be a list"),
        (lambda: check_argument.items("l", (), empty=False), "l is .*: it must be a list of at least one item"),
        (lambda: check_argument.each("l", [1, 0], check_argument.whole, least=1), r"l\[1\] is 0: it must be a whole number from 1"),
        (lambda: check_argument.distinct("l", [1, 2, 1]), "l holds 1 twice: each must differ from the others"),
        (lambda: check_argument.instance("p", 1, str, list), "p is 1: it must be a str or list"),
        (lambda: check_argument.known_keys("t", {"a": 1}, ()), "t.a is not a known key: there is none"),
        (lambda: check_argument.known_keys("t", 3, ("a", "b")), "t is 3: it must be a table with the keys a, b"),
    ],
)  # fmt: skip
def test_what_is_refused(check, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check()


def test_values_come_back_in_plain_types():
    assert type(check_argument.whole("n", np.int32(3), 0)) is int
    assert type(check_argument.positive("x", np.float32(0.5))) is float
    assert check_argument.each("l", [1, np.int64(2)], check_argument.whole, least=0) == (1, 2)
    assert check_argument.optional(check_argument.whole, "n", None, 1) is None
    assert check_argument.optional(check_argument.whole, "n", 2, 1) == 2


@pytest.mark.parametrize(
    ("validator", "error"),
    [(check_argument, ValueError), (check_scenario, ScenarioError), (check_policy, PolicyError)],
)
def test_a_validator_raises_its_own_class(validator, error):
    with pytest.raises(error) as raised:
        validator.positive("x", 0)
    assert type(raised.value) is error
