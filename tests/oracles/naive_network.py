"""A network in the naive twin: observations from its objects, and numpy's float32."""

import math

import numpy as np

from pull_env.policy.policy import Last, Recall, Send, Take

P = (4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08)
P += (-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)
Q = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)


def decide(naive):
    """Return the steps of the action that the policy's network picks."""
    network, steps = naive.policy.network, naive.policy.steps
    preference = preferences(network, np.array(observe(naive, naive.router), np.float32))
    choices = range(len(steps))
    if network.masked:
        choices = [k for k in choices if available(naive.router, steps[k])] or choices
    best = max(choices, key=lambda k: preference[k])  # ties go to the first
    if network.sampled:
        odds = [math.exp(preference[k] - preference[best]) for k in choices]
        remaining = float(np.cumsum(odds)[-1]) * (naive.policy_stream.draw()[1] / 2**32)
        for k, weight in zip(choices, odds, strict=True):
            if remaining < weight:
                best = k
                break
            remaining -= weight
    step, pool = steps[best], getattr(steps[best], "pool", None)
    return step, Send(weights="rate") if pool is None else Send(pool)


def available(router, step):
    """Return whether the step can act."""
    pools = [pool for pool in router.slots if getattr(step, "pool", None) in (None, pool.number)]
    if isinstance(step, Take):
        return any(router.slots[pool] for pool in pools)
    if isinstance(step, Recall):
        return any(router.known(pool) for pool in pools)
    return not isinstance(step, Last) or router.last is not None


def observe(naive, router):
    """Return the observation that the manual page of `RouterEnv` promises."""
    scenario, entries = naive.scenario, []
    service = scenario.servers / scenario.capacity
    fastest = max(pool.rate for pool in naive.pools)
    for pool in naive.pools:
        known = router.known(pool)
        _, queue, time = min(known, key=lambda m: (m[1], -m[2]), default=(None, math.inf, -math.inf))
        entries += [len(pool.servers) / len(naive.servers), pool.rate / fastest]
        entries.append(1.0 if pool.buffer == math.inf else pool.buffer / (1 + pool.buffer))
        entries.append(saturate(len(router.slots[pool]), 1.0))
        entries += [
            saturate(queue, pool.rate * service),
            saturate(naive.now - time, service / naive.time_step),
        ]
        entries += [saturate(router.recent["answer", pool], service), router.recent["idle", pool]]
        entries.append(
            saturate(naive.now - router.mean_received[pool], service / naive.time_step)
            if router.slots[pool]
            else 1.0
        )
    rate = scenario.router_shares[router.number] * (scenario.total_arrival_rate * naive.time_step)
    entries.append(saturate(1 / rate, router.recent["gap"]) if rate else 0.5)
    message, wait = scenario.prices.message, scenario.prices.wait
    price = message / (message + 0.05 * wait * service) if wait else 1.0
    return [*entries, router.recent["empty"], price, min(scenario.nominal_load, 1.5) / 1.5]


def saturate(value, half):
    return 1.0 - half / (half + value)


def preferences(network, values):
    """Return the outputs, every sum in the order of its terms."""
    for k, (weights, biases) in enumerate(network.layers):
        values, inputs = biases.copy(), activate(network, values) if k else values
        for value, column in zip(inputs, weights.T, strict=True):
            values += value * column
    return values


def activate(network, values):
    if network.activation == "relu":
        return np.maximum(values, np.float32(0))
    x = np.clip(values, np.float32(-7.90531110763549805), np.float32(7.90531110763549805))
    return x * horner(P, x * x) / horner(Q, x * x)


def horner(coefficients, s):
    total = np.full_like(s, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * s + np.float32(coefficient)
    return total
