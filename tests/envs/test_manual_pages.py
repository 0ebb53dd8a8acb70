"""Tables in manual pages against the spaces, catalogs and names they describe."""

import inspect
import re
from itertools import product

import numpy as np
import pytest

from pull_env import Pool, Scenario
from pull_env.envs.adapters.multi_objective import MORouterEnv
from pull_env.envs.control import ControlEnv
from pull_env.envs.control_accounts import control_names
from pull_env.envs.dispatch import DispatchEnv
from pull_env.envs.router import RouterEnv
from pull_env.simulation.kernel_data.view import observation_names

POOLS = (Pool(2, 1.5), Pool(3, 0.5, buffer=4), Pool(1, 1.0))
each_size = pytest.mark.parametrize("J", [1, 2, 3])


def system(J):
    return Scenario(POOLS[:J], routers=2, load=0.7)


def section(kind, title):
    """Return the text under a heading of the manual page of an env class."""
    return inspect.getdoc(kind).split(f"## {title}\n")[1].split("\n## ")[0]


def tables(text):
    """Return the tables in a text: lists of rows, which are dicts by column heads."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE):
        head, line, *rows = [row.strip("| ").split(" | ") for row in block.splitlines()]
        assert set("".join(line)) <= set("-|"), "the second row of a table separates its head"
        assert all(len(row) == len(head) for row in rows), rows
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def value(expression, symbols):
    """Evaluate `9J + 4` and the like."""
    product_signs = re.sub(r"(\d|\))\s*([A-Za-z(])", r"\1*\2", expression)
    return eval(product_signs, {"__builtins__": {}}, symbols)


def indices(cell, symbols):
    """Yield the indices of a row, each with the values of its j, k, q or w."""
    free = re.findall(r"[jkqw]", cell)
    for values in product(*(symbols[f"range of {name}"] for name in free)):
        bound = symbols | dict(zip(free, values, strict=True))
        first, _, last = cell.partition(" ... ")
        start = value(first, bound)
        for index in range(start, value(last or first, bound) + 1):
            yield index, bound | {"offset": index - start}


def symbols_of(env):
    J, n = len(env.scenario.pools), env.scenario.servers
    ranges = {"range of j": range(J), "range of k": range(n), "range of q": (1, 2, 3), "range of w": range(4)}
    return {"J": J, "n": n, "A": len(getattr(env, "catalog", ())), **ranges}


def check_box(kind, title, space, env):
    """Compare `Box(low, high, (length,), dtype)` in a section with a space."""
    declared = re.search(r"`Box\((.+), \((.+),\), (float\d+)\)`", section(kind, title))
    bounds, length, dtype = declared.groups()
    assert (value(length, symbols_of(env)),) == space.shape
    assert dtype == space.dtype.name
    return bounds


def check_rows(rows, space, env, names=None):
    """Compare a table of entries with a space, and with the names of its entries."""
    index_head = next(iter(rows[0]))
    offset = env.local_size if "local_size" in index_head else 0
    seen = []
    for row in rows:
        for index, bound in indices(row[index_head], symbols_of(env)):
            assert space.low[offset + index] == float(row["low"])
            assert space.high[offset + index] == float(row["high"])
            if "name" in row:
                name = row["name"].replace("pool j", f"pool {bound.get('j')}")
                name = name.replace("queue q", f"queue {bound.get('q')}")
                assert row["name"].startswith("as in") or names[offset + index] == name
            seen.append(index)
    assert len(seen) == len(set(seen))
    return sorted(seen)


def check_actions(rows, env):
    """Compare a table of actions with the catalog of an env."""
    seen = []
    for row in rows:
        kind, _, _ = row["step"].partition(":")
        for index, bound in indices(row["action"], symbols_of(env)):
            step, pool = env.catalog[index], bound.get("j", bound["offset"])
            assert step.kind == kind
            assert step.pool == (pool if "pool j" in row["step"] else None)
            if kind == "probe":
                assert step.at_most == 8
                service = env.scenario.servers / env.scenario.capacity
                assert step.stop_at == (0.0, 0.5, 1.0, 2.0)[bound.get("w", 0)] * service
            seen.append(index)
    assert seen == sorted(seen) == list(range(len(env.catalog)))


@each_size
def test_actions_of_router_env(J):
    env, text = RouterEnv(system(J)), section(RouterEnv, "Action space")
    size = re.search(r"for J pools has (.+) entries", text)[1]
    assert value(size, symbols_of(env)) == env.action_space.n
    (rows,) = tables(text)
    check_actions(rows, env)


@each_size
def test_observations_of_router_env(J):
    env = RouterEnv(system(J), observation="with-state")
    local, state = tables(section(RouterEnv, "Observation space"))
    names = observation_names(env.scenario, with_state=True)
    assert check_box(RouterEnv, "Observation space", RouterEnv(system(J)).observation_space, env) == "0, 1"
    assert check_rows(local, env.observation_space, env, names) == list(range(env.local_size))
    assert check_rows(state, env.observation_space, env, names) == list(range(len(names) - env.local_size))


@each_size
def test_actions_of_control_env(J):
    env = ControlEnv(system(J))
    box, catalog = tables(section(ControlEnv, "Action space"))
    assert check_box(ControlEnv, "Action space", env.action_space, env) == "-1, 1"
    assert check_rows(box, env.action_space, env) == list(range(len(env.catalog) + 1))
    size = re.search(r"for J pools has A = (.+) steps", section(ControlEnv, "Action space"))[1]
    assert value(size, symbols_of(env)) == len(env.catalog)
    check_actions(catalog, env)


@each_size
def test_observations_of_control_env(J):
    env = ControlEnv(system(J))
    (rows,) = tables(section(ControlEnv, "Observation space"))
    names = control_names(env.scenario)
    assert check_box(ControlEnv, "Observation space", env.observation_space, env) == "0, 1"
    assert check_rows(rows, env.observation_space, env, names) == list(range(len(names)))
    assert names[: 9 * J + 4] == observation_names(env.scenario)  # what "as in Router-v0" promises


@each_size
def test_spaces_of_dispatch_env(J):
    env = DispatchEnv(system(J))
    (rows,) = tables(section(DispatchEnv, "Observation space"))
    assert check_box(DispatchEnv, "Observation space", env.observation_space, env) == "0, 1"
    assert check_rows(rows, env.observation_space, env) == list(range(4 * env.scenario.servers))
    size = re.search(r"`Discrete\((.+)\)`", section(DispatchEnv, "Action space"))[1]
    assert value(size, symbols_of(env)) == env.action_space.n


@each_size
def test_rewards_of_the_multi_objective_env(J):
    env = MORouterEnv(system(J))
    (rows,) = tables(section(MORouterEnv, "Reward"))
    assert check_box(MORouterEnv, "Reward", env.reward_space, env) == "(-inf, -inf, -1), 0"
    assert check_rows(rows, env.reward_space, env) == [0, 1, 2]
    assert np.array_equal(env.reward_space.high, np.zeros(env.reward_dim))


@pytest.mark.parametrize("kind", [RouterEnv, DispatchEnv, ControlEnv])
def test_every_argument_is_on_the_page(kind):
    listed = re.findall(r"^\* `(\w+)`:", section(kind, "Arguments"), re.MULTILINE)
    assert set(listed) == set(inspect.signature(kind).parameters)
