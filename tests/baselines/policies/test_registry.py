"""The table of policies: every entry is tested by being entered, and every bad name gets one sentence."""

from __future__ import annotations

import pytest

from baselines import POLICIES, Entry, make
from baselines.leaderboard.run import default_policies
from pull_env import Policy, Probe

ENTRIES = pytest.mark.parametrize("entry", POLICIES.values(), ids=list(POLICIES))


def example(entry: Entry) -> str:
    """Return a name that gives every argument the value 2."""
    arguments = ", ".join(f"{name}=2" for name in entry.arguments)
    return f"{entry.name}({arguments})" if arguments else entry.name


@ENTRIES
def test_every_entry_declares_a_policy_that_its_name_makes_again(entry: Entry) -> None:
    policy = make(example(entry))
    assert isinstance(policy, Policy)
    assert make(policy.name) == policy
    assert Policy.from_dict(policy.to_dict()) == policy


@ENTRIES
def test_every_entry_says_what_it_does_and_where_it_comes_from(entry: Entry) -> None:
    assert POLICIES[entry.name] is entry
    assert all(text.strip() == text != "" for text in (entry.rule, entry.messages, entry.reference))
    assert entry.usage.startswith(entry.name)
    assert entry.maker.__doc__


@ENTRIES
def test_every_entry_is_on_the_leaderboard(entry: Entry) -> None:
    assert any(policy.name.partition("(")[0] == entry.name for policy in default_policies())


def test_default_policies_differ() -> None:
    policies = default_policies()
    assert (
        len({policy.name for policy in policies})
        == len({policy.digest for policy in policies})
        == len(policies)
    )
    assert {"jbt(2)", "pull-min", "pull-min(2)", "balanced(2)", "probe-until-idle(8)"} <= {
        p.name for p in policies
    }


@pytest.mark.parametrize("name", ["power-of-d(3)", "power-of-d(d=3)", " power-of-d( 3 ) "])
def test_arguments_may_be_written_in_several_ways(name: str) -> None:
    assert make(name) == make("power-of-d", d=3)
    assert make(name).name == "power-of-d(3)"


def test_arguments_annotated_so_are_real_numbers() -> None:
    policy = make("probe-until(0.5, d=3)")
    assert policy.name == "probe-until(0.5, 3)"
    assert policy.steps == (Probe(weights="rate", at_most=3, stop_at=0.5),)
    assert make("probe-until(2.0)").name == "probe-until(2, 8)"
    assert (
        make("probe-until(2)").digest == make("probe-until(2.0)").digest
    )  # 2 or 2.0 in a file, all the same


def test_until_idle_is_the_case_of_no_wait() -> None:
    assert make("probe-until(0, 5)").steps == make("probe-until-idle(5)").steps


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("powr-of-d", "did you mean 'power-of-d'"),
        ("power-of-d(2, 3)", "takes at most 1 arguments"),
        ("power-of-d(c=2)", "has no argument 'c'"),
        ("power-of-d(0)", "d is 0: it must be a whole number from 1"),
        ("power-of-d(2.5)", "d is 2.5"),
        ("power-of-d(True)", "d is True"),
        ("probe-until(-1)", "theta is -1: it must be a finite number of 0 or more"),
        ("probe-until(True)", "theta is True: it must be a finite number of 0 or more"),
        ("probe-until(1e999)", "theta is inf: it must be a finite number of 0 or more"),
        ("probe-until(1, 2.5)", "d is 2.5: it must be a whole number from 1"),
        (f"probe-until(1{400 * '0'})", "it must be a finite number of 0 or more"),
        ("power-of-d(2", "arguments are written as in"),
        ("power-of-d(x)", "arguments are written as in"),
        ("jbt", "its argument r is missing"),
        ("pull(2)", "takes at most 0 arguments"),
        ("", "it must be a name such as"),
    ],
)
def test_bad_names_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(").replace("?", r"\?")):
        make(name)


def test_an_argument_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="d is given twice"):
        make("power-of-d(2)", d=2)


def test_a_name_must_be_a_text() -> None:
    with pytest.raises(ValueError, match="it must be a name"):
        make(3)  # type: ignore[arg-type]
