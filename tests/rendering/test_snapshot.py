"""What a snapshot reads from a simulator."""

import re

import numpy as np
import pytest

from pull_env import Cycle, Inspect, Policy, Probe, Send
from pull_env.envs.router import RouterEnv
from pull_env.rendering import ansi, snapshot
from tests.oracles.pictures import SMALL, simulated


def test_means_are_those_of_the_rewards():
    env = RouterEnv(SMALL)
    env.reset(seed=3)
    shown = snapshot.Snapshot(env.simulator)
    assert np.isnan([shown.wait, shown.messages, shown.cost]).all()
    assert shown.last_customer() == "no customer has arrived yet"
    assert "wait -, messages -, cost - per customer\n" in ansi(env.simulator)
    infos = [env.step(k % 18)[4] for k in range(500)]
    shown = snapshot.Snapshot(env.simulator)
    assert shown.placed == 500
    assert shown.cost == pytest.approx(np.mean([info["cost"] for info in infos]))
    assert shown.messages == pytest.approx(np.mean([info["messages"] for info in infos]))
    assert shown.wait == pytest.approx(np.mean([info["wait"] for info in infos if not info["blocked"]]))
    assert shown.time == infos[-1]["time"]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Policy("blind", (Send(),)), r"router \d probed no server, chose \d of pool \d: (wait \S+|blocked)"),
        (Policy("one", (Probe(at_most=1),)), r"router \d probed server (\d), chose \1 of .*"),
        (
            Policy("four", (Probe(at_most=4, replace=True),)),
            r"router \d probed servers \d, \d, \d, \d, chose .*",
        ),
        (Policy("many", (Probe(at_most=30, replace=True),)), r"router \d probed 30 servers, chose .*"),
        (Policy("jsq", (Inspect(),)), r"router \d inspected all servers, chose .*"),
        (Policy("turns", (Cycle(),)), r"router \d probed no server, chose .*"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_sentence_on_the_last_customer(policy, sentence):
    assert re.fullmatch(sentence, snapshot.Snapshot(simulated(SMALL, policy, 40)).last_customer())
