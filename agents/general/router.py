"""The general router: one set of weights for all systems, made into a policy for the system at hand.

It has two parts, which share their weights over pools, so that the number of pools does not matter:

- the planner sees what a scenario declares, with an encoder per pool and a mean over the pools, and tells by
  how much each of the `plans` is dearer than the best; the best one's protocol is what servers follow;
- the player sees what a router sees at a customer, likewise, and adds to the preferences that follow from
  the plans: so it does what is planned, unless what it sees speaks against it.

For a scenario both are written out as one network of a policy (`pull_env.Network`): what is constant there
becomes biases, and what pools share is repeated. The simulator then plays it as any other:
`python -m agents general --scenario NAME --out FILE.toml` writes it down.
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

from agents.general.plans import LASTS, PROTOCOLS, protocol, steps_of_all, steps_of_pool
from pull_env.kernels.envs.observe import POOL_CONSTANTS, POOL_ENTRIES, ROUTER_ENTRIES
from pull_env.policy.catalog import mean_service_time
from pull_env.policy.policy import Network, Policy, save_policy
from pull_env.scenario.arrivals import Bursts, HotRouter
from pull_env.scenario.scenario import Scenario, load_scenario

Floats = npt.NDArray[np.float64]

GENERAL = Path(__file__).parents[1] / "zoo" / "trained" / "general" / "weights.safetensors"
SYSTEM, POOL = 14, 3  # entries of what is declared of a system, and of a pool
ENCODED, PLANNED = 32, 64  # units of the planner
UNITS = 8  # of the player, a pool
SCALES = 4  # entries of what is declared of a system, the first ones, that move the player's preferences
ALL, EACH = 7, 5  # steps that mean all servers, and steps of a pool
RECALL = 1  # number of that step of a pool
TAKEN = 0.5  # what a message is preferred by
ORDER = 0.05  # what that of a pool e times slower than the fastest is preferred less by
SLOWER = 0.25  # the same, of other steps of a pool
RECALLED = -0.3  # preference for what is remembered, before anything is learned
FARTHEST = 0.6  # no plan starts farther behind the best

SHAPES = {
    "planner.encoder": (ENCODED, POOL + SYSTEM + 1),
    "planner.hidden": (PLANNED, ENCODED + SYSTEM + 1),
    "planner.excess": (len(PROTOCOLS) * LASTS, PLANNED + 1),
    "player.encoder": (UNITS, POOL_ENTRIES + ROUTER_ENTRIES + 1),
    "player.all": (ALL, UNITS + SCALES + 1),
    "player.each": (EACH, 2 * UNITS + SCALES + 1),
}


@dataclass(frozen=True, eq=False)
class General:
    """The weights of a general router.

    Attributes:
        weights: By the names of SHAPES; the last column of each is added as it is.
    """

    weights: Mapping[str, Floats]

    @property
    def digest(self) -> str:
        """The sha256 of the weights, as they are saved, in hexadecimal."""
        parts = (np.asarray(self.weights[name], "<f4").tobytes() for name in SHAPES)
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def excess(self, scenario: Scenario) -> Floats:
        """Return by how much of its cost each plan is thought to be dearer than the best.

        Returns:
            A number for each protocol and last step, (len(PROTOCOLS), LASTS).
        """
        system, pools = declared(scenario)
        seen = np.column_stack([pools, np.tile(system, (len(pools), 1))])
        encoded = np.tanh(affine(self.weights["planner.encoder"], seen))
        pooled = shares(scenario) @ encoded
        hidden = np.tanh(affine(self.weights["planner.hidden"], np.concatenate([pooled, system])))
        return affine(self.weights["planner.excess"], hidden).reshape(len(PROTOCOLS), LASTS)

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
        """Return the layers of the player for a scenario: a block for each pool, then the steps."""
        J, parts, sizes = len(scenario.pools), self.weights, shares(scenario)
        encoder = parts["player.encoder"]
        first = np.zeros((J, UNITS, J * POOL_ENTRIES + ROUTER_ENTRIES))
        for j in range(J):
            first[j, :, j * POOL_ENTRIES : (j + 1) * POOL_ENTRIES] = encoder[:, :POOL_ENTRIES]
            first[j, :, J * POOL_ENTRIES :] = encoder[:, POOL_ENTRIES : POOL_ENTRIES + ROUTER_ENTRIES]
        every, each, scales = parts["player.all"], parts["player.each"], declared(scenario)[0][:SCALES]
        second = np.zeros((ALL + J * EACH, J, UNITS))
        second[:ALL] = sizes[:, None] * every[:, None, :UNITS]
        second[ALL:] = np.tile(sizes[:, None] * each[:, None, UNITS : 2 * UNITS], (J, 1, 1))
        for j in range(J):
            second[ALL + j * EACH : ALL + (j + 1) * EACH, j] += each[:, :UNITS]
        biases = preferences(scenario, excess)
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


def shares(scenario: Scenario) -> Floats:
    """Return the share of the servers that each pool has, (J,)."""
    return np.array([pool.size / scenario.servers for pool in scenario.pools])


def preferences(scenario: Scenario, excess: Floats) -> Floats:
    """Return what a router prefers by the plan alone, (ALL + J EACH,).

    Messages come first, the fastest pool's before others; then the plan's last step, the others as far
    behind as they are dearer.
    """
    planned = np.maximum(excess.min() - excess, -FARTHEST)
    rates = np.array([pool.rate for pool in scenario.pools])
    slowness = np.log(rates / rates.max())
    each = np.add.outer(SLOWER * slowness, np.concatenate([[0.0, RECALLED], planned[ALL:]]))
    each[:, 0] = TAKEN + ORDER * slowness
    return np.concatenate([planned[:ALL], each.ravel()])


def declared(scenario: Scenario) -> tuple[Floats, Floats]:
    """Return what a scenario declares, (SYSTEM,) of the system and (J, POOL) of its pools; times are in mean
    service times.
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


def changes(scenario: Scenario, service: float) -> list[float]:
    """Return what a scenario declares of how it changes over time; all 0 where it does not."""
    told = [0.0] * (SYSTEM - 6)
    arrivals, hot, faults, news = scenario.arrivals, scenario.shares, scenario.faults, scenario.news
    if isinstance(arrivals, Bursts):
        told[:2] = arrivals.peak, math.log1p(arrivals.length / service) / 2
    if isinstance(hot, HotRouter):
        told[2:4] = hot.share, math.log1p(hot.every / service) / 4
    elif hot is not None:
        told[2] = max(hot) - 1 / scenario.routers
    if faults is not None:
        told[4] = 10 * share(faults.down, faults.up)
        told[5] = 5 * share(faults.slow, faults.normal)
    if news is not None:
        told[6:] = math.log1p(10 * news.delay / service), 10 * news.loss
    return told


def share(time: float | None, other: float | None) -> float:
    """Return which share of all time is `time`, where it takes turns with `other`; 0 where there is none."""
    return 0.0 if time is None or other is None else time / (time + other)


def starting_weights(seed: int) -> dict[str, Floats]:
    """Return weights of which the player adds nothing yet to the plan, and the planner is at random."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(0, 1 / math.sqrt(shape[1]), shape) for name, shape in SHAPES.items()}
    for name in ("player.encoder", "player.all", "player.each"):
        weights[name][:] = 0.0
    weights["player.encoder"][:, -1] = -1.0  # a unit for each entry that changes: tanh(2 entry - 1)
    weights["player.encoder"][np.arange(UNITS), POOL_CONSTANTS + np.arange(UNITS)] = 2.0
    # A short wait that was heard of a short time ago, if the price of asking is high:
    weights["player.each"][RECALL, [1, 2, 2 * UNITS]] = -0.5, -0.3, 0.25
    return weights


def save(general: General, path: Path) -> None:
    """Write the weights as safetensors."""
    from safetensors.numpy import save_file

    save_file({name: part.astype(np.float32) for name, part in general.weights.items()}, path)


def load(path: Path = GENERAL) -> General:
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
    return General({name: part.astype(np.float64) for name, part in parts.items()})


@dataclass(frozen=True)
class Args:
    """For which system to write down what the general router does."""

    scenario: str
    """A preset's name, or the path of a TOML file."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """A new TOML file, beside which the weights are written."""
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
