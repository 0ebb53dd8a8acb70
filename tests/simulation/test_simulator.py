"""Simulators refuse what they cannot run, and their copies go on."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import baselines
from pull_env import Drain, Faults, News, Pool, Scenario, simulate
from pull_env.policy.policy import PolicyError
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for

ROOT = Path(__file__).parents[2]
TWO = Scenario((Pool(2, 1.0), Pool(1, 2.0, 3)), routers=2, load=0.7)
IN_FILE = replace(
    TWO,
    news=News(0.5, "exponential", 0.1, 4.0),
    faults=Faults(50.0, 5.0, "lost", pools=(1,), drains=(Drain(0, 10.0, 20.0), Drain(1, 5.0))),
)


def test_faults_need_the_calendar():
    policy = baselines.make("pull")
    with pytest.raises(
        PolicyError, match="workload is None: custom has faults, which need the calendar clock"
    ):
        Simulator(IN_FILE, policy.steps, policy.announce)


def test_too_many_events_void_the_run():
    """Servers that fail and return all the time, whose messages never come, fill any room; the run says so."""
    scenario = replace(TWO, arrival_rate=0.01, load=None, news=News(delay=1e9), faults=Faults(0.01, 0.01))
    with pytest.raises(
        RuntimeError, match=r"events were pending on custom: news\.repeat, or a time of faults"
    ):
        simulate(scenario, baselines.make("pull"), 64, replications=1, warmup=0)


def test_a_copy_goes_on_in_another_process(tmp_path):
    """What a system with faults calls by its address is elsewhere there."""
    policy = baselines.make("pull")
    simulator = Simulator(IN_FILE, policy.steps, policy.announce, workload=workload_for(IN_FILE))
    simulator.reset(1)
    simulator.run(encode(policy.steps, IN_FILE), 100)
    path = tmp_path / "simulator.pickle"
    path.write_bytes(pickle.dumps(simulator))
    code = f"""
import pickle, baselines
from pull_env.simulation.kernel_data.step_records import encode
simulator = pickle.loads(open({str(path)!r}, 'rb').read())
simulator.run(encode(baselines.make("pull").steps, simulator.scenario), 500)
print(simulator.arrays.head["now"][0], simulator.arrays.head["lost_messages"][0])
"""
    simulator.run(encode(policy.steps, IN_FILE), 500)
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert shown.stdout.split() == [str(simulator.arrays.head[name][0]) for name in ("now", "lost_messages")]
