"""Networks as data: what is refused, files of TOML and safetensors, and rows."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

import pull_env
from pull_env.policy.policy import Network, PolicyError, load_policy, save_policy
from pull_env.reporting.rows import row
from pull_env.scenario.scenario import load_scenario
from tests.oracles.networks import follow, network

SMALL = load_scenario("small-mixed")


def layer(outputs, inputs):
    return np.ones((outputs, inputs)), np.zeros(outputs)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"layers": ()}, "layers is empty"),
        ({"layers": (1,)}, r"layers\[0\] is no pair"),
        ({"layers": (layer(2, 3), layer(4, 3))}, r"layers\[1\] takes 3 inputs: the layer before gives 2"),
        ({"layers": ((np.ones((2, 3)), np.ones(3)),)}, r"weights \(2, 3\) and biases \(3,\): they must be"),
        ({"layers": ((np.ones((0, 3)), np.ones(0)),)}, "sizes must be from 1 to 65536"),
        ({"layers": ((np.full((2, 3), np.nan), np.ones(2)),)}, "not finite"),
        ({"layers": (("a", "b"),)}, "not made of numbers"),
        ({"activation": "sigmoid"}, "activation is 'sigmoid': it must be one of tanh, relu"),
        ({"sampled": 1}, "sampled is 1: it must be true or false"),
        ({"training_seed": -1}, "training_seed is -1: it must be a whole number from 0"),
    ],
)
def test_what_cannot_be_is_refused(fields, sentence):
    with pytest.raises(PolicyError, match=sentence):
        Network(**{"layers": (layer(2, 3),), **fields})


def test_a_network_is_a_value():
    one, other = network(4, 3, 2), network(4, 3, 2)
    assert one == other
    assert hash(one) == hash(other)
    assert one.sizes == (4, 3, 2)
    assert one != dataclasses.replace(one, sampled=True)
    assert one != network(4, 3, 2, seed=1)
    assert one.digest == dataclasses.replace(one, sampled=True).digest  # the sha256 of the weights alone
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ValueError, match="read-only"):
        one.layers[0][0][0, 0] = 1


def test_files_that_are_refused(tmp_path):
    from safetensors.numpy import save_file

    path, weights = tmp_path / "mine.toml", tmp_path / "mine.safetensors"
    save_policy(follow(SMALL, 8), path)
    text, good = path.read_text(encoding="utf-8"), weights.read_bytes()

    def refused(sentence, old="", new=""):
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        with pytest.raises(PolicyError, match=sentence):
            load_policy(path)

    refused(
        "network.weights is '../mine.safetensors': it must be the name of a file beside", "mine.", "../mine."
    )
    refused("'other.safetensors': it cannot be read", "mine.", "other.")
    refused(r"network\.sampld is not a known key: did you mean 'sampled'\?", "sampled", "sampld")
    refused("network is 1: it must be a table", text, "network = 1\n")
    parts = {"0.weight": np.ones((18, 22), np.float32), "0.bias": np.zeros(18, np.float32)}
    for sentence, content in {
        r"network.sha256 is .*: the weights in 'mine.safetensors' have": parts,
        "it must hold 0.weight, 0.bias and so on, not a": {"a": np.ones(3)},
        "must hold": {},
        "0.bias is float64: it must be float32": {**parts, "0.bias": np.zeros(18)},
    }.items():
        save_file(content, weights)
        refused(sentence)
    for content in (b"", good[:-1], b"\xff" * 100, b"PK\x03\x04" + good):
        weights.write_bytes(content)
        refused("cannot be read as safetensors")


def test_rows_tell_the_network():
    policy = follow(SMALL, 8, training_seed=7)
    result = pull_env.simulate(SMALL, policy, 2000, warmup=10, replications=2)
    content = row(SMALL, policy, result, command="python")["policy"]
    assert content["network"] == {"sha256": policy.network.digest, "training_seed": 7}
    assert content["content"]["network"]["sizes"] == [22, 8, 18]
    assert json.loads(json.dumps(content)) == content
