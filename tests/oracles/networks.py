"""Networks for tests, with numbers at random."""

import itertools

import numpy as np

from pull_env.policy.catalog import default_catalog
from pull_env.policy.policy import Announce, Network, Policy
from pull_env.simulation.kernel_data.view import local_size


def network(*sizes, seed=0, scale=3.0, **options):
    """Return a random network; a large scale makes its choices vary with its input."""
    rng = np.random.default_rng(seed)
    layers = []
    for k, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        weights = rng.normal(0, scale / np.sqrt(inputs), (outputs, inputs))
        middle = 0.0 if k else 0.4  # entries of an observation lie around that
        layers.append((weights, rng.normal(0, 0.1, outputs) - middle * weights.sum(axis=1)))
    return Network(tuple(layers), **options)


def follow(scenario, *hidden, catalog=None, announce=Announce(), seed=0, **options):  # noqa: B008  frozen
    """Return a policy that follows a random network with `hidden` units a layer."""
    steps = catalog or default_catalog(scenario)
    return Policy(
        "network",
        steps,
        announce,
        network=network(local_size(scenario), *hidden, len(steps), seed=seed, **options),
    )
