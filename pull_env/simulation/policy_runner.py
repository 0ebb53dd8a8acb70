"""A simulator whose routers all follow one policy."""

from __future__ import annotations

from pull_env.kernels import state
from pull_env.kernels.network import rollout_network
from pull_env.policy.policy import Policy, PolicyError, Recall
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.kernel_data.customers import Workload
from pull_env.simulation.kernel_data.step_records import encode
from pull_env.simulation.kernel_data.view import RouterObservation, local_size
from pull_env.simulation.simulator import Simulator
from pull_env.simulation.workload import workload_for


class PolicyRunner:
    """Runs a system under a policy, a chain of steps or a network; `reset` starts it.

    Attributes:
        simulator: The state of the system.
    """

    def __init__(self, scenario: Scenario, policy: Policy, workload: Workload | None = None) -> None:
        """Allocate a simulator for the policy.

        Args:
            scenario: The system.
            policy: The policy of all routers.
            workload: Feeds of the calendar clock; None: what the scenario and the policy need.

        Raises:
            PolicyError: The policy does not fit the scenario.
        """
        check_fit(policy, scenario)
        workload = workload or workload_for(scenario, policy.steps)
        steps, extra_flags = policy.steps, 0
        if policy.network is not None:  # it observes the memory, and recent answers
            steps, extra_flags = (*steps, Recall()), state.KEEP_OBSERVATION | state.KEEP_MEMORY
        self.simulator = Simulator(
            scenario, steps, policy.announce, memory=policy.memory, extra_flags=extra_flags, workload=workload
        )
        self._chain = encode(policy.steps, scenario)
        self._network = None if policy.network is None else CompiledNetwork(policy.network)
        if self._network is not None:
            time_step = float(self.simulator.arrays.head["time_step"][0])
            self._observed = RouterObservation(scenario, policy.steps, time_step, with_state=False)

    def reset(self, seed: int, episode: int = 0) -> None:
        """Restart from an empty system, on the streams of `seed` and `episode`."""
        self.simulator.reset(seed, episode)

    def run(self, customers: int) -> int:
        """Route `customers` customers; return how many: fewer if a trace ended."""
        if self._network is None:
            return self.simulator.run(self._chain, customers)
        view, network = self._observed.address, self._network.address
        return self.simulator.run_by(
            lambda system, block: rollout_network(system, view, network, block), customers
        )


def check_fit(policy: Policy, scenario: Scenario) -> None:
    """Refuse a policy that does not fit a scenario.

    Raises:
        PolicyError: A step names a pool that the scenario does not have, or a table or a network is for
            another system.
    """
    encode(policy.steps, scenario)
    if policy.network is not None and policy.network.sizes[0] != local_size(scenario):
        raise PolicyError(
            f"network takes {policy.network.sizes[0]} entries: on {scenario.name}, of {len(scenario.pools)} "
            f"pools, a router sees {local_size(scenario)}; "
            "it fits scenarios with as many pools as it was made for"
        )
