"""A neural network that picks a step of the catalog: the best one, or a sample.

All numbers are float32, and every sum is taken in the order of its inputs without fused multiply-add, so that
the bits are the same on any machine, and in numpy. Loops over outputs are innermost, weights are stored input
by input, and all lengths are multiples of LANES (padded by 0), so that the compiler vectorises the loops.
"""

from __future__ import annotations

import math

import numpy as np

from pull_env.kernels.access import head_of, real_at
from pull_env.kernels.clock import advance
from pull_env.kernels.compiler.addresses import records
from pull_env.kernels.compiler.intrinsics import LANES, copy, load_float32, store_float32
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.envs.observe import CHAIN_STEPS, ENTRY_BYTES, flag_at, observe, view_at
from pull_env.kernels.random import HALF, bits
from pull_env.kernels.run import route
from pull_env.kernels.state import POLICY_STREAM, STEP

CHAIN_BYTES = CHAIN_STEPS * STEP.itemsize

LAYER = np.dtype(
    [
        # addresses
        ("weights", np.int64),  # (inputs, outputs) float32
        ("biases", np.int64),  # (outputs,) float32
        ("values", np.int64),  # (outputs,) float32  the output, which the next layer overwrites by its input
        # multiples of LANES
        ("inputs", np.int64),
        ("outputs", np.int64),
    ]
)
NETWORK = np.dtype(
    [
        # addresses
        ("layers", np.int64),  # (depth,) LAYER
        ("input", np.int64),  # (inputs of the first layer,) float32
        ("odds", np.int64),  # (actions,) float64  of each action when sampling, up to a factor
        # constants
        ("depth", np.int64),
        ("entries", np.int64),  # of an observation
        ("actions", np.int64),
        ("relu", np.int64),  # 1: max(x, 0) between the layers; 0: tanh
        ("sampled", np.int64),  # 1: an action is drawn with odds exp(preference); 0: the best is taken
        ("masked", np.int64),  # 1: only available actions
    ]
)
layer_at, network_at = records(LAYER), records(NETWORK)

# tanh(x) as x p(x^2) / q(x^2), error below 4e-7; beyond LARGEST it is 1 in float32.
# Source: `ptanh_float` in MathFunctionsImpl.h of Eigen 3.4.
F = np.float32
LARGEST = F(7.90531110763549805)
P0, P1 = F(4.89352455891786e-03), F(6.37261928875436e-04)
P2, P3 = F(1.48572235717979e-05), F(5.12229709037114e-08)
P4, P5, P6 = F(-8.60467152213735e-11), F(2.00018790482477e-13), F(-2.76076847742355e-16)
Q0, Q1 = F(4.89352518554385e-03), F(2.26843463243900e-03)
Q2, Q3 = F(1.18534705686654e-04), F(1.19825839466702e-06)
ZERO = F(0.0)


@entry
def rollout_network(system: int, view: int, network: int, customers: int) -> int:
    """Route `customers` customers by `network`; the next one is then current.

    Returns:
        How many were routed: fewer if customers ran out. Without a current customer it first advances to one.
    """
    head = head_of(system)
    routed = 0
    while True:
        if head.router >= 0:
            if routed == customers:
                break
            observe(system, head.router, view)
            action = pick_action(system, view, network)
            route(system, view_at(view, 0).chains + action * CHAIN_BYTES, CHAIN_STEPS)
            routed += 1
        advance(system)
        if head.router < 0:
            break
    return routed


@entry
def choose_action(system: int, view: int, network: int) -> int:
    """Return the action for `view`; a sample draws from the stream of `system`."""
    return pick_action(system, view, network)


@entry
def compute_preferences(network: int, observations: int, count: int, preferences: int) -> None:
    """Write preferences, (count, actions) float32, of observations, (count, entries)."""
    net = network_at(network, 0)
    entries, row = net.entries * ENTRY_BYTES, net.actions * ENTRY_BYTES
    for k in range(count):
        copy(net.input, observations + k * entries, entries)
        copy(preferences + k * row, forward(network), row)


@kernel
def pick_action(system: int, view: int, network: int) -> int:
    """Do what `choose_action` does."""
    net = network_at(network, 0)
    copy(net.input, view_at(view, 0).observation, net.entries * ENTRY_BYTES)
    preferences = forward(network)
    masked = net.masked != 0 and any_available(view)
    best = best_action(preferences, view, masked)
    if net.sampled:
        return draw_action(system, view, network, preferences, best, masked)
    return best


@kernel
def forward(network: int) -> int:
    """Propagate `input` through all layers; return the address of the preferences."""
    net = network_at(network, 0)
    source = net.input
    for k in range(net.depth):
        layer = layer_at(net.layers, k)
        if k > 0:
            activate(source, layer.inputs, net.relu)
        multiply_add(source, layer.inputs, layer.weights, layer.biases, layer.values, layer.outputs)
        source = layer.values
    return source


@kernel
def multiply_add(source: int, inputs: int, weights: int, biases: int, values: int, outputs: int) -> None:
    """Write biases + weights x inputs.

    LANES inputs at a time, as each pass loads and stores all outputs.
    """
    row = outputs * ENTRY_BYTES
    copy(values, biases, row)
    for k in range(0, inputs, LANES):
        a, b = load_float32(source, k), load_float32(source, k + 1)
        c, d = load_float32(source, k + 2), load_float32(source, k + 3)
        e, f = load_float32(source, k + 4), load_float32(source, k + 5)
        g, h = load_float32(source, k + 6), load_float32(source, k + 7)
        first = weights + k * row
        for out in range(outputs):
            total = load_float32(values, out) + a * load_float32(first, out)
            total += b * load_float32(first + row, out)
            total += c * load_float32(first + 2 * row, out)
            total += d * load_float32(first + 3 * row, out)
            total += e * load_float32(first + 4 * row, out)
            total += f * load_float32(first + 5 * row, out)
            total += g * load_float32(first + 6 * row, out)
            total += h * load_float32(first + 7 * row, out)
            store_float32(values, out, total)


@kernel
def activate(values: int, count: int, relu: int) -> None:
    """Replace `count` numbers by their max with 0, or by their tanh."""
    if relu:
        for k in range(count):
            store_float32(values, k, max(load_float32(values, k), ZERO))
    else:
        for k in range(count):
            x = min(max(load_float32(values, k), -LARGEST), LARGEST)
            s = x * x
            p = x * ((((((P6 * s + P5) * s + P4) * s + P3) * s + P2) * s + P1) * s + P0)
            store_float32(values, k, p / (((Q3 * s + Q2) * s + Q1) * s + Q0))


@kernel
def any_available(view: int) -> bool:
    """Return whether any action is available."""
    available = False
    for action in range(view_at(view, 0).actions):
        available |= flag_at(view_at(view, 0).mask, action).value != 0
    return available


@kernel
def allowed(view: int, action: int, masked: bool) -> bool:
    """Return whether `action` may be chosen: if `masked`, only an available one."""
    return not masked or flag_at(view_at(view, 0).mask, action).value != 0


@kernel
def best_action(preferences: int, view: int, masked: bool) -> int:
    """Return the action of highest preference; ties go to the first."""
    best = -1
    for action in range(view_at(view, 0).actions):
        better = best < 0 or load_float32(preferences, action) > load_float32(preferences, best)
        if better and allowed(view, action, masked):
            best = action
    return best


@kernel
def draw_action(system: int, view: int, network: int, preferences: int, best: int, masked: bool) -> int:
    """Draw an action with odds exp(preference), by one draw of the policy's stream."""
    odds, actions, total = network_at(network, 0).odds, view_at(view, 0).actions, 0.0
    for action in range(actions):
        weight = 0.0
        if allowed(view, action, masked):
            weight = math.exp(float(load_float32(preferences, action) - load_float32(preferences, best)))
        real_at(odds, action).value = weight
        total += weight
    remaining = total * (float(bits(system, POLICY_STREAM) >> HALF) / 2.0**32)
    for action in range(actions):
        weight = real_at(odds, action).value
        if remaining < weight:
            return action
        remaining -= weight
    return best  # only by rounding
