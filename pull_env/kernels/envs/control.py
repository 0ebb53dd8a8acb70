"""Routers that play a mixture of steps for many customers, and what each of them saw and paid meanwhile.

An env owns a CONTROL record besides its VIEW. Symbols: R routers, A actions (steps of the catalog), L entries
that a router sees, J pools.
"""

from __future__ import annotations

import numpy as np

from pull_env.kernels.compiler.jit import entry, kernel, records
from pull_env.kernels.envs.observe import CHAIN_STEPS, entry_at, flag_at, observe, outcome_at, view_at
from pull_env.kernels.random import HALF, bits
from pull_env.kernels.run import observe_current, transition
from pull_env.kernels.state import POLICY_STREAM, STEP, head_of, list_of, real_at

CHAIN_BYTES = CHAIN_STEPS * STEP.itemsize

CONTROL = np.dtype(
    [
        # addresses
        ("mixtures", np.int64),  # (R, A) float64  how likely each router picks each step, up to a factor
        ("chains", np.int64),  # (R, A, CHAIN_STEPS) STEP  what the actions mean to each router
        ("accounts", np.int64),  # (R,) ACCOUNT
        (
            "observation_sums",
            np.int64,
        ),  # (R, L + J) float64  sums of what its customers found: entries, pools with a message
        # constants
        ("entries", np.int64),  # L
    ],
    align=True,
)

ACCOUNT = np.dtype(
    [
        ("customers", np.int64),  # that the router placed in the period
        ("observations", np.int64),  # rows added up in `seen`
        ("cost", np.float64),  # of its customers, messages until the next arrival included
        ("wait", np.float64),
        ("blocked", np.int64),
        ("messages", np.int64),
    ],
    align=True,
)

control_at, account_at = records(CONTROL), records(ACCOUNT)


@entry
def play_period(system: int, view: int, control: int, customers: int) -> int:
    """Let the routers place `customers` customers by their mixtures, and add up what they saw and paid.

    `view` must show the customer at hand, as it does after every step.

    Returns:
        How many were placed: fewer where customers came to an end.
    """
    head, actions = head_of(system), view_at(view, 0).actions
    placed = 0
    while placed < customers and head.router >= 0:
        router = head.router
        add_observation(system, router, view, control)
        action = draw_action(system, router, view, control)
        chain = control_at(control, 0).chains + (router * actions + action) * CHAIN_BYTES
        transition(system, chain, CHAIN_STEPS, view)
        observe_current(system, view)
        add_outcome(router, view, control)
        placed += 1
    return placed


@kernel
def draw_action(system: int, router: int, view: int, control: int) -> int:
    """Draw a step of the router's mixture among those that can act now; if none can, among all.

    Nothing is drawn where there is no choice, so that a mixture of one step runs as the policy of that step.
    """
    actions = view_at(view, 0).actions
    real = total_weight(router, view, control, True) > 0.0
    left = total_weight(router, view, control, real)
    last, choices = -1, 0
    for action in range(actions):
        if weight_of(router, action, view, control, real) > 0.0:
            last = action
            choices += 1
    if choices > 1:
        left *= float(bits(system, POLICY_STREAM) >> HALF) / 2.0**32
        for action in range(last):
            weight = weight_of(router, action, view, control, real)
            if left < weight:
                return action
            left -= weight
    return last


@kernel
def total_weight(router: int, view: int, control: int, real: bool) -> float:
    """Return the weight of all steps, or of the `real` ones only, in the router's mixture."""
    total = 0.0
    for action in range(view_at(view, 0).actions):
        total += weight_of(router, action, view, control, real)
    return total


@kernel
def weight_of(router: int, action: int, view: int, control: int, real: bool) -> float:
    """Return the weight of a step; 0 if only `real` ones count and it cannot act now."""
    if real and not flag_at(view_at(view, 0).mask, action).value:
        return 0.0
    return real_at(control_at(control, 0).mixtures, router * view_at(view, 0).actions + action).value


@kernel
def add_observation(system: int, router: int, view: int, control: int) -> None:
    """Add what `view` shows, and from which pools `router` holds a message, to the row of `router`."""
    books, J = control_at(control, 0), head_of(system).J
    first = router * (books.entries + J)
    for k in range(books.entries):
        real_at(books.observation_sums, first + k).value += entry_at(view_at(view, 0).observation, k).value
    for pool in range(J):
        real_at(books.observation_sums, first + books.entries + pool).value += (
            list_of(system, router, pool).held > 0
        )
    account_at(books.accounts, router).observations += 1


@kernel
def add_outcome(router: int, view: int, control: int) -> None:
    """Add what the customer just placed has cost to the account of `router`."""
    account, outcome = (
        account_at(control_at(control, 0).accounts, router),
        outcome_at(view_at(view, 0).outcome, 0),
    )
    account.customers += 1
    account.cost += outcome.cost
    account.wait += outcome.wait
    account.blocked += outcome.lost
    account.messages += outcome.messages


@entry
def observe_missing(system: int, view: int, control: int) -> None:
    """Note what every router sees now that has seen nothing yet; then show the customer at hand again."""
    for router in range(head_of(system).R):
        if account_at(control_at(control, 0).accounts, router).observations == 0:
            observe(system, router, view)
            add_observation(system, router, view, control)
    if head_of(system).router >= 0:
        observe(system, head_of(system).router, view)
