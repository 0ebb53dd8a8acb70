"""A network that decides in the naive twin: what a router sees, from the twin's objects, and numpy's float32."""

import math

import numpy as np

from pull_env.policy.policy import Last, Recall, Send, Take

P = (4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08)
P += (-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)
Q = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)


def decide(naive):
    """Return the steps of the action that the policy's network picks for the customer at hand."""
    network, steps = naive.policy.network, naive.policy.steps
    preferred = preferences(network, np.array(see(naive, naive.router), np.float32))
    choices = range(len(steps))
    if network.masked:
        choices = [k for k in choices if real(naive.router, steps[k])] or choices
    best = max(choices, key=lambda k: preferred[k])  # the first of equals
    if network.sampled:
        chances = [math.exp(preferred[k] - preferred[best]) for k in choices]
        left = float(np.cumsum(chances)[-1]) * (naive.policy_stream.draw()[1] / 2**32)
        for k, chance in zip(choices, chances, strict=True):
            if left < chance:
                best = k
                break
            left -= chance
    step, pool = steps[best], getattr(steps[best], "pool", None)
    return step, Send(weights="rate") if pool is None else Send(pool)


def real(router, step):
    """Return whether the step can act."""
    pools = [pool for pool in router.slots if getattr(step, "pool", None) in (None, pool.number)]
    if isinstance(step, Take):
        return any(router.slots[pool] for pool in pools)
    if isinstance(step, Recall):
        return any(router.known(pool) for pool in pools)
    return not isinstance(step, Last) or router.last is not None


def see(naive, router):
    """Return what the manual page of `RouterEnv` promises, in its order."""
    scenario, seen = naive.scenario, []
    service = scenario.servers / scenario.capacity
    fastest = max(pool.rate for pool in naive.pools)
    for pool in naive.pools:
        known = router.known(pool)
        _, queue, when = min(known, key=lambda m: (m[1], -m[2]), default=(None, math.inf, -math.inf))
        seen += [len(pool.servers) / len(naive.servers), pool.rate / fastest]
        seen.append(1.0 if pool.buffer == math.inf else pool.buffer / (1 + pool.buffer))
        seen.append(share(len(router.slots[pool]), 1.0))
        seen += [share(queue, pool.rate * service), share(naive.now - when, service / naive.tick)]
        seen += [share(router.recent["answer", pool], service), router.recent["idle", pool]]
        seen.append(share(naive.now - router.came[pool], service / naive.tick) if router.slots[pool] else 1.0)
    rate = scenario.router_shares[router.number] * (scenario.total_arrival_rate * naive.tick)
    seen.append(share(1 / rate, router.recent["gap"]) if rate else 0.5)
    message, wait = scenario.prices.message, scenario.prices.wait
    price = message / (message + 0.05 * wait * service) if wait else 1.0
    return [*seen, router.recent["empty"], price, min(scenario.nominal_load, 1.5) / 1.5]


def share(value, half):
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
