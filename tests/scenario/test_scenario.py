"""Scenarios: what follows from the fields, round trips, and a message for every bad value."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pull_env.scenario.arrivals import Batches, HotRouter
from pull_env.scenario.laws import Erlang, Exponential
from pull_env.scenario.scenario import Pool, Prices, Scenario, Trace, as_scenario, load_scenario
from tests.scenario.conftest import any_type, as_toml, raises

POOLS = (Pool(3, rate=2.0, buffer=4), Pool(5, rate=0.5))


NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "servers", "capacity", "arrival_rate", "never_blocks"),
    [
        ("data-center", 10_000, 11_500.0, 10_580.0, False),
        ("finite-buffers", 60, 70.0, 70.0, False),
        ("heavy-traffic", 20, 20.0, 19.6, True),
        ("homogeneous", 1000, 1000.0, 900.0, True),
        ("hot-router", 100, 100.0, 80.0, True),
        ("many-pools", 200, 270.0, 229.5, True),
        ("small-mixed", 4, 6.0, 4.8, False),
        ("two-speeds", 100, 100.0, 90.0, True),
    ],
)
def test_what_follows_from_a_preset(
    name: str, servers: int, capacity: float, arrival_rate: float, never_blocks: bool
) -> None:
    scenario = load_scenario(name)
    assert scenario.servers == servers
    assert scenario.capacity == pytest.approx(capacity, rel=1e-14)
    assert scenario.total_arrival_rate == pytest.approx(arrival_rate, rel=1e-14)
    assert scenario.never_blocks is never_blocks
    assert math.fsum(scenario.router_shares) == pytest.approx(1.0, abs=1e-14)


def test_defaults() -> None:
    scenario = Scenario((Pool(1),), load=0.5)
    assert scenario.pools == (Pool(size=1, rate=1.0, buffer=None),)
    assert scenario.prices == Prices(wait=1.0, message=0.05, block=10.0)
    assert (scenario.routers, scenario.name, scenario.version) == (1, "custom", 1)
    assert (scenario.shares, scenario.arrivals, scenario.arrival_rate) == (None, None, None)


def test_load_gives_the_arrival_rate() -> None:
    scenario = Scenario(POOLS, load=0.8)
    assert scenario.capacity == 8.5
    assert scenario.total_arrival_rate == 0.8 * 8.5
    assert scenario.nominal_load == 0.8


def test_arrival_rate_gives_the_load() -> None:
    scenario = Scenario(POOLS, arrival_rate=4.25)
    assert scenario.total_arrival_rate == 4.25
    assert scenario.nominal_load == 0.5


def test_fields_stay_as_given_so_that_replace_works() -> None:
    scenario = Scenario(POOLS, load=0.8)
    assert scenario.arrival_rate is None
    more = replace(scenario, pools=(*POOLS, Pool(1, rate=1.5)))
    assert more.total_arrival_rate == 0.8 * 10.0
    assert replace(scenario, load=None, arrival_rate=2.0).total_arrival_rate == 2.0


def test_router_shares_are_equal_unless_given() -> None:
    assert Scenario(POOLS, routers=4, load=0.8).router_shares == (0.25, 0.25, 0.25, 0.25)
    assert Scenario(POOLS, routers=2, load=0.8, shares=(0.75, 0.25)).router_shares == (0.75, 0.25)


def test_never_blocks_only_if_no_pool_has_a_buffer() -> None:
    assert not Scenario(POOLS, load=0.8).never_blocks
    assert Scenario(POOLS[1:], load=0.8).never_blocks


def test_lists_become_tuples_and_integers_floats() -> None:
    scenario = Scenario(
        [Pool(np.int64(2), rate=3)],  # type: ignore[arg-type]
        routers=2,
        load=1,
        shares=[1, Fraction(0)],  # type: ignore[arg-type]
        prices=Prices(wait=2, message=0, block=np.float32(0.5)),  # type: ignore[arg-type]
    )
    assert scenario.pools == (Pool(2, rate=3.0),)
    assert scenario.shares == (1.0, 0.0)
    numbers = (
        scenario.pools[0].rate,
        scenario.load,
        *scenario.router_shares,
        *vars(scenario.prices).values(),
    )
    assert [type(number) for number in numbers] == [float] * 7
    assert type(scenario.pools[0].size) is int
    assert (
        scenario.digest == Scenario((Pool(2, 3.0),), 2, 1.0, None, (1.0, 0.0), Prices(2.0, 0.0, 0.5)).digest
    )


def test_scenarios_are_frozen_hashable_and_picklable() -> None:
    scenario = load_scenario("hot-router")
    with pytest.raises(FrozenInstanceError):
        scenario.routers = 3  # type: ignore[misc]
    assert {scenario: 1}[load_scenario("hot-router")] == 1
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_shares_may_miss_one_by_rounding_only() -> None:
    assert Scenario(POOLS, routers=3, load=0.8, shares=(1 / 3, 1 / 3, 1 / 3 + 9e-10)).shares is not None
    with raises(r"shares sum to 1\.00000000\d+: they must sum to 1"):
        Scenario(POOLS, routers=3, load=0.8, shares=(1 / 3, 1 / 3, 1 / 3 + 2e-9))


def test_a_trace_path_may_be_a_path_object() -> None:
    assert Trace(Path("a.csv"), "t", "s").trace == "a.csv"  # type: ignore[arg-type]


def test_digest_is_the_hash_of_canonical_json() -> None:
    scenario = Scenario((Pool(1),), load=0.5)
    canonical = (
        '{"load":0.5,"name":"custom","pools":[{"rate":1.0,"size":1}],'
        '"prices":{"block":10.0,"message":0.05,"wait":1.0},"routers":1,"version":1}'
    )
    assert json.loads(canonical) == scenario.to_dict()
    assert scenario.digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_digest_tells_scenarios_apart() -> None:
    scenario = Scenario(POOLS, routers=2, load=0.8)
    others = [
        replace(scenario, version=2),
        replace(scenario, name="other"),
        replace(scenario, shares=(0.5, 0.5)),
        replace(scenario, prices=Prices(block=9.0)),
        replace(scenario, pools=POOLS[::-1]),
        replace(scenario, load=None, arrival_rate=6.8),
    ]
    assert len({other.digest for other in [scenario, *others]}) == 7
    assert replace(scenario).digest == scenario.digest


counts = st.integers(1, 2**31 - 1)


positives = st.floats(1e-3, 1e3)


pool_values = st.builds(Pool, counts, positives, st.none() | counts)


price_values = st.builds(Prices, *[st.floats(0, 1e6)] * 3)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)


trace_values = st.builds(Trace, texts, texts, texts)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    routers = draw(st.integers(1, 5))
    parts = draw(st.none() | st.lists(st.floats(0.01, 1), min_size=routers, max_size=routers))
    by_load = draw(st.booleans())
    return Scenario(
        pools=tuple(draw(st.lists(pool_values, min_size=1, max_size=4))),
        routers=routers,
        load=draw(positives) if by_load else None,
        arrival_rate=None if by_load else draw(positives),
        shares=parts and tuple(part / math.fsum(parts) for part in parts),  # type: ignore[arg-type]
        prices=draw(price_values),
        arrivals=draw(st.none() | trace_values),
        name=draw(texts),
        version=draw(counts),
    )


@given(scenarios())
def test_round_trip_through_dict_and_json(scenario: Scenario) -> None:
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    through_json = json.loads(json.dumps(scenario.to_dict(), allow_nan=False))
    assert through_json == scenario.to_dict()
    assert Scenario.from_dict(through_json).digest == scenario.digest


def test_as_scenario_takes_what_an_environment_is_given(tmp_path: Path) -> None:
    scenario = load_scenario("two-speeds")
    path = tmp_path / "two-speeds.toml"
    path.write_text(as_toml(scenario))
    assert as_scenario(scenario) is scenario
    for source in ("two-speeds", str(path), path, scenario.to_dict()):
        assert as_scenario(source) == scenario


@pytest.mark.parametrize("source", [3, None, [Pool(1)]])
def test_as_scenario_refuses_the_rest(source: Any) -> None:
    with raises(
        r"scenario is .*: it must be a Scenario, a preset's name, a path to a TOML file, or a mapping"
    ):
        as_scenario(source)


POSITIVE = "it must be a positive finite number"


NOT_NEGATIVE = "it must be a finite number of 0 or more"


COUNT = "it must be a whole number from 1 to 2147483647"


TEXT = "it must be a string that is not empty"


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        *[
            (lambda rate=rate: Pool(1, rate=rate), f"rate is {shown}: {POSITIVE}")
            for rate, shown in [
                (-1.0, "-1.0"),
                (0, "0"),
                (NAN, "nan"),
                (INFINITY, "inf"),
                (True, "True"),
                ("2", "'2'"),
                (None, "None"),
                (1j, "1j"),
                (10**400, "1000.*"),
            ]
        ],
        *[
            (lambda size=size: Pool(size), f"size is {shown}: {COUNT}")
            for size, shown in [
                (0, "0"),
                (-3, "-3"),
                (2.0, "2.0"),
                (True, "True"),
                ("2", "'2'"),
                (2**31, "2147483648"),
                (None, "None"),
            ]
        ],
        (lambda: Pool(1, buffer=0), f"buffer is 0: {COUNT}"),
        (lambda: Pool(1, buffer=any_type(2.5)), f"buffer is 2.5: {COUNT}"),
        (lambda: Pool(1, buffer=any_type(INFINITY)), f"buffer is inf: {COUNT}"),
        (lambda: Prices(wait=-1.0), f"wait is -1.0: {NOT_NEGATIVE}"),
        (lambda: Prices(message=-0.05), f"message is -0.05: {NOT_NEGATIVE}"),
        (lambda: Prices(block=NAN), f"block is nan: {NOT_NEGATIVE}"),
        (lambda: Prices(block=INFINITY), f"block is inf: {NOT_NEGATIVE}"),
        (lambda: Prices(block=False), f"block is False: {NOT_NEGATIVE}"),
        (lambda: Trace("", "t", "s"), f"trace is '': {TEXT}"),
        (lambda: Trace("a.csv", any_type(3), "s"), f"time is 3: {TEXT}"),
        (lambda: Trace("a.csv", "t", any_type(None)), f"size is None: {TEXT}"),
    ],
)
def test_bad_values_of_a_part(build: Callable[[], object], sentence: str) -> None:
    with raises(sentence):
        build()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"pools": ()}, r"pools is \(\): it must be a list of at least one item"),
        ({"pools": 3}, "pools is 3: it must be a list of at least one item"),
        ({"pools": "two"}, "pools is 'two': it must be a list of at least one item"),
        ({"pools": [Pool(1), "two"]}, r"pools\[1\] is 'two': it must be a Pool"),
        ({"routers": 0}, f"routers is 0: {COUNT}"),
        ({"routers": 1.0}, f"routers is 1.0: {COUNT}"),
        ({"version": 0}, f"version is 0: {COUNT}"),
        ({"name": ""}, f"name is '': {TEXT}"),
        ({"name": 3}, f"name is 3: {TEXT}"),
        ({"load": 0.0}, f"load is 0.0: {POSITIVE}"),
        ({"load": -0.9}, f"load is -0.9: {POSITIVE}"),
        ({"load": NAN}, f"load is nan: {POSITIVE}"),
        ({"load": "0.9"}, f"load is '0.9': {POSITIVE}"),
        ({"load": None, "arrival_rate": INFINITY}, f"arrival_rate is inf: {POSITIVE}"),
        ({"load": None, "arrival_rate": True}, f"arrival_rate is True: {POSITIVE}"),
        ({"arrival_rate": 4.8}, "load is 0.9 and arrival_rate is 4.8: exactly one of the two must be given"),
        ({"load": None}, "load is None and arrival_rate is None: exactly one of the two must be given"),
        ({"shares": 0.5}, "shares is 0.5: it must be a list"),
        ({"shares": "1"}, "shares is '1': it must be a list"),
        ({"shares": (1.0,)}, "shares has 1 numbers: it must have 2, one for each router"),
        ({"shares": (0.5, 0.25, 0.25)}, "shares has 3 numbers: it must have 2, one for each router"),
        ({"shares": (1.5, -0.5)}, rf"shares\[1\] is -0.5: {NOT_NEGATIVE}"),
        ({"shares": (NAN, 1.0)}, rf"shares\[0\] is nan: {NOT_NEGATIVE}"),
        ({"shares": (0.5, "0.5")}, rf"shares\[1\] is '0.5': {NOT_NEGATIVE}"),
        ({"shares": (0.5, 0.25)}, "shares sum to 0.75: they must sum to 1"),
        ({"prices": {"wait": 1.0}}, r"prices is \{'wait': 1.0\}: it must be a Prices"),
        ({"prices": None}, "prices is None: it must be a Prices"),
        ({"arrivals": "a.csv"}, "arrivals is 'a.csv': it must be a Trace or Batches or .* or Renewal"),
        ({"pools": [Pool(9, 1e308)]}, f"the capacity, sum of size x rate over the pools, is inf: {POSITIVE}"),
        (
            {"pools": [Pool(1, 1e-300)], "load": 1e-300},
            f"the total arrival rate, load x capacity, is 0.0: {POSITIVE}",
        ),
    ],
)
def test_bad_values_of_a_scenario(values: dict[str, Any], sentence: str) -> None:
    with raises(sentence):
        Scenario(**{"pools": POOLS, "routers": 2, "load": 0.9, **values})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"pools": 3}, "pools is 3: it must be a list"),
        ({"pools": []}, r"pools is \(\): it must be a list of at least one item"),
        ({"pools": ["fast"]}, r"pools\[0\] is 'fast': it must be a table with the keys size, rate, buffer"),
        ({"pools": [{"rate": 1.0}]}, r"pools\[0\]\.size is missing: it must be given"),
        ({"pools": [{"size": 1}, {"size": 1, "rate": -1.0}]}, rf"pools\[1\]\.rate is -1\.0: {POSITIVE}"),
        ({"pools": [{"size": 0}]}, rf"pools\[0\]\.size is 0: {COUNT}"),
        ({"pools": [{"size": 1, "buffer": 0}]}, rf"pools\[0\]\.buffer is 0: {COUNT}"),
        (
            {"pools": [{"size": 1, "raet": 1.0}]},
            r"pools\[0\]\.raet is not a known key: did you mean 'rate'\? It must be one of size, rate, buffer",
        ),
        ({"prices": 3}, "prices is 3: it must be a table with the keys wait, message, block"),
        ({"prices": {"wait": -1}}, rf"prices\.wait is -1: {NOT_NEGATIVE}"),
        (
            {"prices": {"messages": 1}},
            r"prices\.messages is not a known key: did you mean 'message'\? It must be one of wait, message, block",
        ),
        (
            {"arrivals": "a.csv"},
            "arrivals is 'a.csv': it must be a table with the keys trace, time, size, block, bad_rows",
        ),
        ({"arrivals": {"trace": "a", "time": "t"}}, r"arrivals\.size is missing: it must be given"),
        ({"arrivals": {"trace": "a", "time": "t", "size": 3}}, rf"arrivals\.size is 3: {TEXT}"),
        (
            {"arrivals": {"trace": "a", "time": "t", "siez": "s"}},
            r"arrivals\.siez is not a known key: did you mean 'size'\? It must be one of trace, time, size, block, bad_rows",
        ),
        (
            {"Arrival-Rate": 1.0},
            r"Arrival-Rate is not a known key: did you mean 'arrival_rate'\? It must be one of pools, routers, load, "
            "arrival_rate, shares, prices, arrivals, service, news, faults, name, version",
        ),
        ({3: 1.0}, "3 is not a known key: it must be one of pools, .*"),
        ({"routers": -1}, f"routers is -1: {COUNT}"),
    ],
)
def test_bad_values_of_a_mapping(content: dict[Any, Any], sentence: str) -> None:
    with raises(sentence):
        Scenario.from_dict({"pools": [{"size": 1}], "load": 0.9, **content})


def test_a_mapping_without_pools() -> None:
    with raises("pools is missing: it must be given"):
        Scenario.from_dict({"load": 0.9})


def test_a_scenario_is_not_made_of_a_list() -> None:
    with raises(r"scenario is \[\]: it must be a table with the keys pools, routers, .*, name, version"):
        Scenario.from_dict([])  # type: ignore[arg-type]


def test_from_dict_leaves_its_argument_alone() -> None:
    content = {"pools": [{"size": 1}], "load": 0.9, "prices": {"wait": 2.0}}
    before = json.dumps(content)
    Scenario.from_dict(content)
    assert json.dumps(content) == before


def test_the_module_loads_without_the_heavy_libraries() -> None:
    code = (
        "import sys\n"
        "from pull_env.scenario.scenario import load_scenario\n"
        "assert load_scenario('two-speeds').servers == 100\n"
        "heavy = {'scipy', 'numba', 'torch', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_parts_that_are_none_do_not_change_the_digest():
    assert not {"service", "arrivals", "shares"} & set(Scenario(POOLS, load=0.5).to_dict())
    trace = Scenario(POOLS, load=0.5, arrivals=Trace("a.csv", "t", "s")).to_dict()
    assert trace["arrivals"] == {"trace": "a.csv", "time": "t", "size": "s"}


def test_which_scenarios_are_markov():
    plain = Scenario(POOLS, routers=2, load=0.5, shares=(0.9, 0.1))
    assert plain.markov
    assert replace(plain, service=Exponential()).markov
    for parts in ({"service": Erlang(2)}, {"arrivals": Batches(2)}, {"shares": HotRouter(0.5, 1.0)}):
        assert not replace(plain, **parts).markov
    assert replace(plain, shares=HotRouter(0.9, 1.0)).router_shares == (0.5, 0.5)


def test_which_scenarios_end():
    trace = Trace("a.csv", "t", "s")
    assert Scenario(POOLS, load=0.5, arrivals=trace).replay == trace
    assert Scenario(POOLS, load=0.5, arrivals=replace(trace, block=9)).replay is None
    assert Scenario(POOLS, load=0.5, arrivals=Batches(2)).replay is None
