"""Systems for the tests of pictures, and how they are simulated."""

import re

from pull_env import Announce, Policy, Pool, Prices, Probe, Scenario, Take, as_scenario
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.simulator import Simulator

LARGE = Scenario((Pool(6_000, 1.25), Pool(4_000, 0.6, buffer=5)), routers=500, load=0.95, name="large")
SMALL = Scenario(
    (Pool(3, 1.5), Pool(2, 0.5, buffer=4)), routers=2, load=1.2, prices=Prices(block=3.0), name="Small 1"
)
TAKE_OR_PROBE = Policy("take or probe", (Take(), Probe(at_most=3, stop_at=0.0)), Announce())
SYSTEMS = {
    "ten": Scenario((Pool(10),), load=0.8),
    "small": SMALL,
    "large": LARGE,
    "forty pools": Scenario(tuple(Pool(3, 1 + k / 10) for k in range(40)), routers=30, load=0.8),
    "skewed": Scenario((Pool(1), Pool(99_999, 0.1)), routers=241, load=0.5),
    **{name: as_scenario(name) for name in ("two-speeds", "homogeneous", "many-pools", "data-center")},
}


def simulated(scenario, policy, customers, *, seed=0, workload=None):
    scenario = as_scenario(scenario)
    simulator = Simulator(scenario, policy.steps, policy.announce, workload=workload)
    simulator.reset(seed)
    simulator.run(encode(policy.steps, scenario), customers)
    return simulator


def table_rows(text, first):
    """The cells of the lines of the table whose first heading is `first`."""
    lines = text.split(f"\n {first} ")[1].splitlines()[2:]
    return [re.split(r"  +", line.strip()) for line in lines[: lines.index("") if "" in lines else None]]
