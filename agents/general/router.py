"""The general router: one set of weights for all systems.

It has two parts, which share their weights over pools, so that it takes any number of pools:

- the planner sees the features of a scenario, with an encoder per pool and a mean over the pools, and
  predicts how much more each of the `plans` costs than the best; servers follow the protocol of the best;
- the player sees what a router sees when a customer arrives, likewise, and adds to the preferences given by
  the plans: the router follows the plan unless its observation suggests otherwise.

For a scenario both are written out as the network of a policy (`pull_env.Network`): what is constant there
becomes biases, and what pools share is repeated. `python -m agents general --scenario NAME --out FILE.toml`
writes the policy.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import tyro

from agents.general.plans import LAST_STEPS, PROTOCOLS, protocol, steps_of_all, steps_of_pool
from agents.search.initial_networks import CONSTANT_ENTRIES
from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Network, Policy, save_policy
from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.scenario import Scenario, load_scenario
from pull_env.simulation.kernel_data.view import POOL_NAMES, ROUTER_NAMES

Floats = npt.NDArray[np.float64]

GENERAL = Path(__file__).parents[1] / "zoo" / "trained" / "general" / "weights.safetensors"
POOL_ENTRIES, SEEN = len(POOL_NAMES), (*POOL_NAMES, *ROUTER_NAMES)  # of an observation, with one pool
VARYING = tuple(name for name in SEEN if name not in CONSTANT_ENTRIES)
SYSTEM, POOL = 14, 3  # features of a system, and of a pool
ENCODED, PLANNED = 32, 64  # hidden units of the planner
UNITS = len(VARYING)  # hidden units of the player, per pool
SCALES = 4  # features of a system, the first ones, that the player's preferences depend on
ALL, EACH = 7, 5  # steps over all servers, and steps of a pool
RECALL = 1  # index of that step among those of a pool
TAKE = 0.5  # preference for a message of the fastest pool
TAKE_SLOWER = 0.05  # decrease of that preference for a pool e times slower
SLOWER = 0.25  # the same, for other steps of a pool
REMEMBERED = -0.3  # preference for a recall before training
MOST_BEHIND = 0.6  # no plan starts farther behind the best

SHAPES = {
    "planner.encoder": (ENCODED, POOL + SYSTEM + 1),
    "planner.hidden": (PLANNED, ENCODED + SYSTEM + 1),
    "planner.excess": (len(PROTOCOLS) * LAST_STEPS, PLANNED + 1),
    "player.encoder": (UNITS, len(SEEN) + 1),
    "player.all": (ALL, UNITS + SCALES + 1),
    "player.each": (EACH, 2 * UNITS + SCALES + 1),
}


@dataclass(frozen=True)
class Args:
    """For which system to write the policy of the general router."""

    scenario: str
    """A preset's name, or the path of a TOML file."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """A new TOML file; the weights are written beside it."""
    router: Annotated[Path, tyro.conf.arg(metavar="FILE")] = GENERAL
    """Weights, as `python -m agents generalise` writes them."""


def run(args: Args) -> int:
    """Write the policy for a scenario, and return the exit status.

    Raises:
        ValueError: There is no such scenario or router, or the file exists already.
    """
    policy = load(args.router).on(load_scenario(args.scenario))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    save_policy(policy, args.out)
    print("Written:", args.out)
    print(f"python -m pull_env simulate {args.scenario} {args.out}")
    return 0


@dataclass(frozen=True, eq=False)
class GeneralRouter:
    """The weights of a general router.

    Attributes:
        weights: By the names in SHAPES; the last column of each holds the biases.
    """

    weights: Mapping[str, Floats]

    @property
    def digest(self) -> str:
        """The sha256 of the weights, as they are saved, in hexadecimal."""
        parts = (np.asarray(self.weights[name], "<f4").tobytes() for name in SHAPES)
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def excess(self, scenario: Scenario) -> Floats:
        """Return by how much more each plan is predicted to cost than the best.

        Returns:
            A share of the cost for each protocol and last step, (len(PROTOCOLS), LAST_STEPS).
        """
        system, pools = features(scenario)
        inputs = np.column_stack([pools, np.tile(system, (len(pools), 1))])
        encoded = np.tanh(affine(self.weights["planner.encoder"], inputs))
        pooled = pool_shares(scenario) @ encoded
        hidden = np.tanh(affine(self.weights["planner.hidden"], np.concatenate([pooled, system])))
        return affine(self.weights["planner.excess"], hidden).reshape(len(PROTOCOLS), LAST_STEPS)

    def on(self, scenario: Scenario) -> Policy:
        """Return the policy for a scenario."""
        excess = self.excess(scenario)
        chosen = int(np.argmin(excess.min(axis=1)))
        steps = steps_of_all(scenario)
        for pool in range(len(scenario.pools)):
            steps += steps_of_pool(scenario, pool)
        layers: Any = self._layers(scenario, excess[chosen])
        network = Network(layers, masked=True)
        return Policy("general", steps, protocol(list(PROTOCOLS)[chosen], scenario), network=network)

    def _layers(self, scenario: Scenario, excess: Floats) -> tuple[tuple[Floats, Floats], ...]:
        """Return the layers of the player: a block for each pool, then the steps."""
        J, sizes = len(scenario.pools), pool_shares(scenario)
        encoder, every, each = (self.weights[f"player.{part}"] for part in ("encoder", "all", "each"))
        first = np.zeros((J, UNITS, J * POOL_ENTRIES + len(ROUTER_NAMES)))
        for j in range(J):
            first[j, :, j * POOL_ENTRIES : (j + 1) * POOL_ENTRIES] = encoder[:, :POOL_ENTRIES]
            first[j, :, J * POOL_ENTRIES :] = encoder[:, POOL_ENTRIES:-1]
        scales = features(scenario)[0][:SCALES]
        second = np.zeros((ALL + J * EACH, J, UNITS))
        second[:ALL] = sizes[:, None] * every[:, None, :UNITS]
        second[ALL:] = np.tile(sizes[:, None] * each[:, None, UNITS : 2 * UNITS], (J, 1, 1))
        for j in range(J):
            second[ALL + j * EACH : ALL + (j + 1) * EACH, j] += each[:, :UNITS]
        biases = plan_preferences(scenario, excess)
        added = affine(every[:, UNITS:], scales), np.tile(affine(each[:, 2 * UNITS :], scales), J)
        biases += np.concatenate(added)
        return (
            (first.reshape(J * UNITS, -1), np.tile(encoder[:, -1], J)),
            (second.reshape(len(biases), -1), biases),
        )


def affine(weights: Floats, inputs: Floats) -> Floats:
    """Return weights x inputs + the last column."""
    result: Floats = inputs @ weights[:, :-1].T + weights[:, -1]
    return result


def pool_shares(scenario: Scenario) -> Floats:
    """Return the share of the servers in each pool, (J,)."""
    return np.array([pool.size / scenario.servers for pool in scenario.pools])


def plan_preferences(scenario: Scenario, excess: Floats) -> Floats:
    """Return a router's preferences by the plans alone, (ALL + J EACH,).

    Messages come first, the fastest pool's before others; then the last step of the best plan, with others
    as far behind as they cost more.
    """
    planned = np.maximum(excess.min() - excess, -MOST_BEHIND)
    rates = np.array([pool.rate for pool in scenario.pools])
    slowness = np.log(rates / rates.max())
    each = np.add.outer(SLOWER * slowness, np.concatenate([[0.0, REMEMBERED], planned[ALL:]]))
    each[:, 0] = TAKE + TAKE_SLOWER * slowness
    return np.concatenate([planned[:ALL], each.ravel()])


def features(scenario: Scenario) -> tuple[Floats, Floats]:
    """Return the features of a system, (SYSTEM,), and of its pools, (J, POOL).

    Times are in mean service times.
    """
    service = mean_service_time(scenario)
    servers, routers = math.log(scenario.servers), math.log(scenario.routers)
    prices = scenario.prices
    price = prices.message / max(prices.wait * service, 1e-12)
    system = [
        math.log(max(price, 1e-4)) / 2 + 1.5,
        -math.log(max(1 - scenario.nominal_load, 1e-3)) / 2 - 0.5,
        (servers - routers) / 2 - 1.5,
        routers / 2 - 1,
        servers / 4 - 1.3,
        float(scenario.routers == 1),
        *changes(scenario, service),
    ]
    pools = [
        (
            math.log(pool.rate * service),
            pool.size / scenario.servers,
            0.0 if pool.buffer is None else 1 / pool.buffer,
        )
        for pool in scenario.pools
    ]
    return np.array(system), np.array(pools)


def changes(scenario: Scenario, service: float) -> tuple[float, ...]:
    """Return the features of how a system changes over time; all 0 if it does not."""
    arrivals, shares, faults, news = scenario.arrivals, scenario.shares, scenario.faults, scenario.news
    bursts, hot, failures, messages = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)
    if isinstance(arrivals, Bursts):
        bursts = arrivals.peak, math.log1p(arrivals.length / service) / 2
    if isinstance(shares, HotRouter):
        hot = shares.share, math.log1p(shares.every / service) / 4
    elif shares is not None:
        hot = max(shares) - 1 / scenario.routers, 0.0
    if faults is not None:
        failures = 10 * time_share(faults.down, faults.up), 5 * time_share(faults.slow, faults.normal)
    if news is not None:
        messages = math.log1p(10 * news.delay / service), 10 * news.loss
    return *bursts, *hot, *failures, *messages


def time_share(time: float | None, other: float | None) -> float:
    """Return the share of `time` in `time` + `other`; 0 if one is not given."""
    return 0.0 if time is None or other is None else time / (time + other)


def starting_weights(seed: int) -> dict[str, Floats]:
    """Return weights with a random planner and a player that adds nothing."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(0, 1 / math.sqrt(shape[1]), shape) for name, shape in SHAPES.items()}
    for name in ("player.encoder", "player.all", "player.each"):
        weights[name][:] = 0.0
    weights["player.encoder"][:, -1] = -1.0  # a unit for each entry that varies: tanh(2 entry - 1)
    weights["player.encoder"][np.arange(UNITS), [SEEN.index(name) for name in VARYING]] = 2.0
    # Recall a short wait that was learned a short time ago, if the price of a message is high:
    wait, age = (VARYING.index(f"remembered {name}") for name in ("wait", "age"))
    weights["player.each"][RECALL, [wait, age, 2 * UNITS]] = -0.5, -0.3, 0.25
    return weights


def save(router: GeneralRouter, path: Path) -> None:
    """Write the weights as safetensors."""
    from safetensors.numpy import save_file

    save_file({name: part.astype(np.float32) for name, part in router.weights.items()}, path)


def load(path: Path = GENERAL) -> GeneralRouter:
    """Read the weights that `save` wrote; by default those of the committed router.

    Raises:
        ValueError: The file is missing, or holds something else.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        parts: dict[str, Any] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as the weights of a general router: {error}") from None
    if {name: part.shape for name, part in parts.items()} != SHAPES:
        raise ValueError(f"{path} holds {', '.join(parts)}: it must hold {', '.join(SHAPES)} in their shapes")
    return GeneralRouter({name: part.astype(np.float64) for name, part in parts.items()})
