"""Scenarios: the presets, what follows from the fields, round trips, and one sentence for every bad value."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import re
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

from pull_env import Faults, News
from pull_env.scenario import files
from pull_env.scenario.arrivals import Batches, Bursts, HotRouter
from pull_env.scenario.laws import Pareto
from pull_env.scenario.scenario import (
    Pool,
    Prices,
    Scenario,
    ScenarioError,
    Trace,
    as_scenario,
    load_scenario,
    scenario_names,
)
from pull_env.scenario.validation import nearest

POOLS = (Pool(3, rate=2.0, buffer=4), Pool(5, rate=0.5))
NAN, INFINITY = math.nan, math.inf

PRESETS = {
    "data-center": Scenario(
        (Pool(2000, 2.5, 10), Pool(5000, 1.0, 10), Pool(3000, 0.5, 10)), routers=50, load=0.92
    ),
    "finite-buffers": Scenario((Pool(20, 2.0, 4), Pool(20, 1.0, 3), Pool(20, 0.5, 2)), routers=6, load=1.0),
    "heavy-traffic": Scenario((Pool(10, 1.5), Pool(10, 0.5)), routers=2, load=0.98),
    "homogeneous": Scenario((Pool(1000, 1.0),), routers=100, load=0.9),
    "hot-router": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=7, load=0.8, shares=(0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
    ),
    "many-pools": Scenario(
        tuple(Pool(40, rate) for rate in (3.0, 2.0, 1.0, 0.5, 0.25)), routers=10, load=0.85
    ),
    "small-mixed": Scenario(
        (Pool(2, 1.0, 4), Pool(2, 2.0, 4)), routers=2, arrival_rate=4.8, prices=Prices(block=5.0)
    ),
    "two-speeds": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.9),
    "bursty": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, arrivals=Bursts(1.5, 5.0)),
    "heavy-tailed": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, service=Pareto(1.5, bound=1000.0)
    ),
    "hot-spot-moves": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.8, shares=HotRouter(0.5, every=50.0)
    ),
    "batches": Scenario((Pool(50, 1.5), Pool(50, 0.5)), routers=10, load=0.7, arrivals=Batches(10.0)),
    "slow-news": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)),
        routers=10,
        load=0.8,
        news=News(0.2, "exponential", loss=0.02, repeat=10.0),
        prices=Prices(message=0.02),
    ),
    "failures": Scenario(
        (Pool(50, 1.5), Pool(50, 0.5)),
        routers=10,
        load=0.7,
        news=News(repeat=20.0),
        faults=Faults(200.0, 10.0, normal=100.0, slow=20.0, restart=500.0),
    ),
}


def raises(sentence: str) -> Any:
    """Expect a ScenarioError whose whole message matches `sentence`."""
    return pytest.raises(ScenarioError, match=f"^{sentence}$")


def any_type(value: Any) -> Any:
    """Hide from the type checker that `value` has the wrong type."""
    return value


# Presets


def test_the_presets_are_those_of_the_table() -> None:
    assert scenario_names() == tuple(sorted(PRESETS))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_has_the_numbers_of_the_table(name: str) -> None:
    assert load_scenario(name) == replace(PRESETS[name], name=name)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_says_what_it_tests(name: str) -> None:
    assert (files.PRESETS / f"{name}.toml").read_text().startswith("# ")


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


# Fields and what follows from them


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


def test_unlimited_only_if_no_pool_has_a_buffer() -> None:
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


# Digest


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


# Round trips

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


def spelled(value: Any) -> str:
    """Spell a value as TOML; JSON spells numbers and strings alike."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {spelled(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(spelled, value))}]"
    return json.dumps(value)


def as_toml(scenario: Scenario) -> str:
    """Spell a scenario as TOML, with its pools and prices as tables of their own."""
    content = scenario.to_dict()
    pools, prices = content.pop("pools"), content.pop("prices")
    lines = [f"{key} = {spelled(value)}" for key, value in content.items()]
    for pool in pools:
        lines += ["[[pools]]", *(f"{key} = {value}" for key, value in pool.items())]
    return "\n".join([*lines, "[prices]", *(f"{key} = {value}" for key, value in prices.items())])


@pytest.mark.parametrize(
    "scenario",
    [
        *PRESETS.values(),
        Scenario(POOLS, load=0.8, arrivals=Trace("/data/a.csv", "TIME", "Größe"), name='a "b"', version=3),
    ],
    ids=str,
)
def test_round_trip_through_toml(scenario: Scenario, tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(as_toml(scenario), encoding="utf-8")
    assert load_scenario(str(path)) == scenario


def test_load_in_toml_may_be_an_integer(tmp_path: Path) -> None:
    path = tmp_path / "whole.toml"
    path.write_text("load = 1\n[[pools]]\nsize = 2\nrate = 3")
    assert load_scenario(str(path)) == Scenario((Pool(2, 3.0),), load=1.0, name="whole")


# Files and names


def test_name_defaults_to_the_stem_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "night-shift.toml"
    path.write_text("load = 0.5\npools = [{size = 1}]")
    assert load_scenario(str(path)).name == "night-shift"
    path.write_text("name = 'day'\nload = 0.5\npools = [{size = 1}]")
    assert load_scenario(str(path)).name == "day"


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "notepad.toml"
    path.write_text("load = 0.5\r\npools = [{size = 1}]\r\n", encoding="utf-8-sig", newline="")
    assert load_scenario(str(path)).load == 0.5


@pytest.mark.parametrize("trace", ["data/a.csv", "../a.csv", "/elsewhere/a.csv"])
def test_a_trace_is_looked_for_next_to_its_file(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    content = f"load = 0.5\npools = [{{size = 1}}]\narrivals = {{trace = '{trace}', time = 't', size = 's'}}"
    (folder / "traced.toml").write_text(content)
    monkeypatch.chdir(tmp_path)
    scenario = load_scenario("scenarios/traced.toml")
    assert scenario.arrivals == Trace(os.path.normpath(folder / trace), "t", "s")


def test_a_preset_comes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("two-speeds", "no-suffix"):
        (tmp_path / name).write_text("load = 0.5\npools = [{size = 1}]")
    monkeypatch.chdir(tmp_path)
    assert load_scenario("two-speeds").servers == 100
    assert load_scenario(str(tmp_path / "two-speeds")).servers == 1
    assert load_scenario("no-suffix").servers == 1


def test_an_unknown_name_brings_the_nearest_and_all_presets() -> None:
    names = ", ".join([*sorted(PRESETS), "llm-gateway"])
    with raises(
        rf"'two_speed' is not a known scenario: did you mean 'two-speeds'\? It must be one of {names}, "
        "or a path to a TOML file"
    ):
        load_scenario("two_speed")


@pytest.mark.parametrize("path", ["absent.toml", "absent/two-speeds"])
def test_a_missing_file(path: str) -> None:
    with raises(f"{re.escape(path)} cannot be read: No such file or directory"):
        load_scenario(path)


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with raises(f"{re.escape(str(tmp_path))} cannot be read: Is a directory"):
        load_scenario(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"load = 0.5\nrouters == 3\n", r"is not valid TOML: .*at line 2, column 10\)"),
        (b"load = 0.5\nload = 0.6\n", r"is not valid TOML: .*at line 2, column 11\)"),
        (b"name = '\xff'\n", r"is not valid TOML: 'utf-8' codec can't decode byte 0xff .*"),
    ],
)
def test_invalid_toml(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with raises(f"{re.escape(str(path))} {sentence}"):
        load_scenario(str(path))


def test_a_bad_value_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("load = 0.5\npools = [{size = 1}, {size = 1, rate = -1.0}]")
    with raises(
        f"{re.escape(str(path))}: pools\\[1\\]\\.rate is -1\\.0: it must be a positive finite number"
    ):
        load_scenario(str(path))


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


def test_nearest_takes_no_notice_of_case() -> None:
    assert nearest("Timestamp", ["ContextTokens", "TIMESTAMP"]) == "TIMESTAMP"
    assert nearest("SIZE", ["SHAPE", "size"]) == "size"


# Bad values: one sentence each

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
        (
            {"arrival_rate": 4.8},
            "load is 0.9 and arrival_rate is 4.8: exactly one of the two must be given",
        ),
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
