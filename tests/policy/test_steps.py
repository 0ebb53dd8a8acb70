"""Steps as data: JSON, and a message for every bad value."""

import json
import math

import pytest

from pull_env.policy.steps import (
    STEPS,
    PolicyError,
    Probe,
    Send,
    Take,
    check_steps,
    step_from_dict,
    step_to_dict,
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (3, "step is 3: it must be a table with the key kind, one of take, .*"),
        ({}, "step.kind is missing: it must be one of take, recall, .*"),
        ({"kind": "prob"}, "step.kind is 'prob': did you mean 'probe'. It must be one of take, .*"),
        ({"kind": "probe", "atmost": 3}, "probe.atmost is not a known key: did you mean 'at_most'. It must be one of pool, .*"),
        ({"kind": "lookup", "limits": [1]}, "lookup.servers is missing: it must be given"),
        ({"kind": "lookup", "limits": "1", "servers": [0]}, "lookup.limits is '1': it must be a list of at least one item"),
        ({"kind": "lookup", "limits": [1, -1], "servers": [0]}, r"lookup.limits\[1\] is -1: it must be a whole number from 0 to .*"),
        ({"kind": "lookup", "limits": [1], "servers": [0]}, "lookup.servers has 1 entries: limits imply 2"),
        ({"kind": "lookup", "limits": [1], "servers": [0, 1]}, "lookup.servers has 1: limits name servers 0 to 0"),
    ],
)  # fmt: skip
def test_what_is_no_step(content, sentence):
    with pytest.raises(PolicyError, match=f"^{sentence}$"):
        step_from_dict(content)


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (Take(-1), r"pool is -1: it must be a whole number from 0 to 1073741824"),
        (Take(True), r"pool is True: it must be a whole number from 0 to 1073741824"),
        (Take(order="old"), "order is 'old': .*must be one of random, oldest, fastest"),
        (Probe(at_most=0), "at_most is 0: it must be a whole number from 1 to 1073741824"),
        (Probe(stop_at=math.nan), "stop_at is nan: it must be a finite number of 0 or more"),
        (Probe(rank="speed"), "rank is 'speed': it must be one of queue, delay, queue then speed, work"),
        (Probe(replace=None), "replace is None: it must be true or false"),
        (Probe(0, weights="rate"), "weights is 'rate': within one pool all rates are equal"),
        (Probe(rank="work", recall=True), "rank is 'work': a router remembers lengths, not work"),
    ],
)
def test_bad_values_of_a_step(step, sentence):
    with pytest.raises(PolicyError, match=rf"^steps\[1\]\.{sentence}$"):
        check_steps((Send(), step))


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_goes_through_json(kind):
    step = STEPS[kind]((1, 0), (0, 1)) if kind == "lookup" else STEPS[kind]()
    assert step_from_dict(json.loads(json.dumps(step_to_dict(step)))) == step
    assert step_from_dict(step) is step
    assert check_steps([step]) == (step,)
