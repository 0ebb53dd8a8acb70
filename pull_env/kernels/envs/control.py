"""Routers that follow a mixture of steps for many customers, and their accounts.

An env owns a CONTROL record besides its VIEW. Symbols: R routers, A actions (steps of the catalog), L entries
that a router observes, J pools.
"""

from __future__ import annotations

import numpy as np

from pull_env.kernels.access import head_of, list_of, real_at
from pull_env.kernels.compiler.addresses import records
from pull_env.kernels.compiler.jit import entry, kernel
from pull_env.kernels.envs.observe import CHAIN_STEPS, entry_at, flag_at, observe, outcome_at, view_at
from pull_env.kernels.random import HALF, bits
from pull_env.kernels.run import observe_current, transition
from pull_env.kernels.state import POLICY_STREAM, STEP

CHAIN_BYTES = CHAIN_STEPS * STEP.itemsize

CONTROL = np.dtype(
    [
        # addresses
        ("mixtures", np.int64),  # (R, A) float64  odds of each step for each router
        ("chains", np.int64),  # (R, A, CHAIN_STEPS) STEP  what the actions mean to each router
        ("accounts", np.int64),  # (R,) ACCOUNT
        ("observation_sums", np.int64),  # (R, L + J) float64  of entries, and of pools with a message
        # constants
        ("entries", np.int64),  # L
    ],
    align=True,
)

ACCOUNT = np.dtype(  # of a router in a period
    [
        ("customers", np.int64),  # routed
        ("observations", np.int64),  # added up in `observation_sums`
        ("cost", np.float64),  # of its customers, including messages until the next arrival
        ("wait", np.float64),
        ("blocked", np.int64),
        ("messages", np.int64),
    ],
    align=True,
)

control_at, account_at = records(CONTROL), records(ACCOUNT)


@entry
def play_period(system: int, view: int, control: int, customers: int) -> int:
    """Route `customers` customers by the routers' mixtures, and add up their accounts.

    `view` must show the current customer, as it does after every step.

    Returns:
        How many were routed: fewer if customers ran out.
    """
    head, actions = head_of(system), view_at(view, 0).actions
    routed = 0
    while routed < customers and head.router >= 0:
        router = head.router
        add_observation(system, router, view, control)
        action = draw_action(system, router, view, control)
        chain = control_at(control, 0).chains + (router * actions + action) * CHAIN_BYTES
        transition(system, chain, CHAIN_STEPS, view)
        observe_current(system, view)
        add_outcome(router, view, control)
        routed += 1
    return routed


@kernel
def draw_action(system: int, router: int, view: int, control: int) -> int:
    """Draw a step of the router's mixture, among those available if there are any.

    Nothing is drawn without a choice, so that a mixture of one step equals the policy of that step.
    """
    actions = view_at(view, 0).actions
    available = total_weight(router, view, control, True) > 0.0
    remaining = total_weight(router, view, control, available)
    last, choices = -1, 0
    for action in range(actions):
        if weight_of(router, action, view, control, available) > 0.0:
            last = action
            choices += 1
    if choices > 1:
        remaining *= float(bits(system, POLICY_STREAM) >> HALF) / 2.0**32
        for action in range(last):
            weight = weight_of(router, action, view, control, available)
            if remaining < weight:
                return action
            remaining -= weight
    return last


@kernel
def total_weight(router: int, view: int, control: int, available: bool) -> float:
    """Return the weight of all, or all `available`, steps in the router's mixture."""
    total = 0.0
    for action in range(view_at(view, 0).actions):
        total += weight_of(router, action, view, control, available)
    return total


@kernel
def weight_of(router: int, action: int, view: int, control: int, available: bool) -> float:
    """Return the weight of a step; 0 if only `available` ones count and it is not."""
    if available and not flag_at(view_at(view, 0).mask, action).value:
        return 0.0
    return real_at(control_at(control, 0).mixtures, router * view_at(view, 0).actions + action).value


@kernel
def add_observation(system: int, router: int, view: int, control: int) -> None:
    """Add the observation, and pools with a message, to the sums of `router`."""
    record, J = control_at(control, 0), head_of(system).J
    first = router * (record.entries + J)
    for k in range(record.entries):
        real_at(record.observation_sums, first + k).value += entry_at(view_at(view, 0).observation, k).value
    for pool in range(J):
        total = real_at(record.observation_sums, first + record.entries + pool)
        total.value += list_of(system, router, pool).held > 0
    account_at(record.accounts, router).observations += 1


@kernel
def add_outcome(router: int, view: int, control: int) -> None:
    """Add what the last customer has cost to the account of `router`."""
    account = account_at(control_at(control, 0).accounts, router)
    outcome = outcome_at(view_at(view, 0).outcome, 0)
    account.customers += 1
    account.cost += outcome.cost
    account.wait += outcome.wait
    account.blocked += outcome.lost
    account.messages += outcome.messages


@entry
def observe_missing(system: int, view: int, control: int) -> None:
    """Add an observation for routers that have none; then observe for the current one."""
    for router in range(head_of(system).R):
        if account_at(control_at(control, 0).accounts, router).observations == 0:
            observe(system, router, view)
            add_observation(system, router, view, control)
    if head_of(system).router >= 0:
        observe(system, head_of(system).router, view)
