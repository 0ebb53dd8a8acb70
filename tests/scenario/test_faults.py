"""Troubles as parts of a scenario: what is allowed, how files say it, and what is refused, in one sentence."""

from dataclasses import replace

import pytest

import baselines
from pull_env import Drain, Faults, News, Pool, Scenario, load_scenario, simulate
from pull_env.scenario.scenario import ScenarioError
from pull_env.simulation.workload import workload_for

TWO = Scenario((Pool(2, 1.0), Pool(1, 2.0, 3)), routers=2, load=0.7)
FILE = """
load = 0.7
pools = [{size = 2}, {size = 1, rate = 2.0, buffer = 3}]
routers = 2
name = "custom"
[news]
delay = 0.5
law = "exponential"
loss = 0.1
repeat = 4.0
[faults]
up = 50.0
down = 5.0
customers = "lost"
pools = [1]
drains = [{pool = 0, at = 10.0, until = 20.0}, {pool = 1, at = 5.0}]
"""
IN_FILE = replace(
    TWO,
    news=News(0.5, "exponential", 0.1, 4.0),
    faults=Faults(50.0, 5.0, "lost", pools=(1,), drains=(Drain(0, 10.0, 20.0), Drain(1, 5.0))),
)


def test_a_file_and_a_dictionary_say_the_same(tmp_path):
    path = tmp_path / "faulty.toml"
    path.write_text(FILE)
    assert load_scenario(str(path)) == IN_FILE
    assert Scenario.from_dict(IN_FILE.to_dict()) == IN_FILE
    assert IN_FILE.digest != TWO.digest


@pytest.mark.parametrize(
    ("parts", "faulty", "never_blocks"),
    [
        ({}, False, True),
        ({"news": News()}, False, True),
        ({"news": News(timeout=3.0)}, False, True),
        ({"news": News(delay=0.1)}, True, True),
        ({"news": News(loss=0.1)}, True, True),
        ({"news": News(repeat=1.0)}, True, True),
        ({"faults": Faults()}, False, True),
        ({"faults": Faults(pools=(0,), customers="lost")}, False, True),
        ({"faults": Faults(up=1.0, down=1.0)}, True, False),
        ({"faults": Faults(normal=1.0, slow=1.0)}, True, True),
        ({"faults": Faults(restart=1.0)}, True, True),
        ({"faults": Faults(drains=(Drain(0, 0.0, 1.0),))}, True, False),
    ],
)
def test_what_makes_a_scenario_faulty(parts, faulty, never_blocks):
    scenario = replace(Scenario((Pool(2),), load=0.7), **parts)
    assert (scenario.has_faults_or_delays, scenario.markov, scenario.never_blocks) == (
        faulty,
        not faulty,
        never_blocks,
    )
    assert (workload_for(scenario) is None) is not faulty


def test_inactive_faults_change_nothing():
    policy, calm = baselines.make("pull"), replace(TWO, news=News(), faults=Faults())
    assert simulate(calm, policy, 5000) == simulate(TWO, policy, 5000)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: News(delay=-1.0), "delay is -1.0: it must be a finite number of 0 or more"),
        (lambda: News(law="normal"), "law is 'normal': it must be one of constant, exponential"),
        (lambda: News(loss=1.0), "loss is 1.0: it must be a number from 0 and below 1"),
        (lambda: News(repeat=0.0), "repeat is 0.0: it must be a positive finite number"),
        (lambda: News(timeout="soon"), "timeout is 'soon': it must be a finite number of 0 or more"),
        (lambda: Faults(up=3.0), "up is 3.0 and down is None: both must be given, or neither"),
        (lambda: Faults(slow=3.0), "normal is None and slow is 3.0: both must be given, or neither"),
        (lambda: Faults(up=0.0, down=1.0), "up is 0.0: it must be a positive finite number"),
        (lambda: Faults(factor=0), "factor is 0: it must be a positive finite number"),
        (lambda: Faults(customers="die"), "customers is 'die': it must be one of wait, lost, restart"),
        (lambda: Faults(pools=(-1,)), r"pools\[0\] is -1: it must be a whole number from 0 to 2147483647"),
        (lambda: Faults(drains=(3,)), r"drains\[0\] is 3: it must be a Drain"),
        (lambda: Drain(0.5, 1.0), "pool is 0.5: it must be a whole number from 0 to 2147483647"),
        (lambda: Drain(0, 2.0, 2.0), "until is 2.0: it must be later than at, 2.0"),
        (
            lambda: Faults(drains=(Drain(0, 0.0, 5.0), Drain(1, 0.0), Drain(0, 5.0))),
            r"drains\[2\] and drains\[0\] are of pool 0: one must end before the next",
        ),
        (
            lambda: replace(TWO, faults=Faults(pools=(2,))),
            r"faults.pools\[0\] is 2: it must be a whole number from 0 to 1, the last pool",
        ),
        (
            lambda: replace(TWO, faults=Faults(drains=(Drain(7, 1.0),))),
            r"faults.drains\[0\].pool is 7: it must be a whole number from 0 to 1, the last pool",
        ),
        (lambda: replace(TWO, news={"delay": 1.0}), "news is {'delay': 1.0}: it must be a News"),
        (
            lambda: Scenario.from_dict({**TWO.to_dict(), "news": {"dealy": 1.0}}),
            r"news.dealy is not a known key: did you mean 'delay'\? It must be one of .*",
        ),
        (
            lambda: Scenario.from_dict({**TWO.to_dict(), "faults": {"drains": [{"pool": 0}]}}),
            r"faults.drains\[0\].at is missing: it must be given",
        ),
        (
            lambda: Scenario.from_dict({**TWO.to_dict(), "faults": {"up": 1.0}}),
            "faults.up is 1.0 and down is None: both must be given, or neither",
        ),
    ],
)
def test_what_is_refused(make, sentence):
    with pytest.raises(ScenarioError, match=f"^{sentence}$"):
        make()
