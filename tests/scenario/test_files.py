"""Files of scenarios: presets, TOML, paths in files, and a message for every bad file."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pull_env.scenario import files
from pull_env.scenario.arrivals import HotRouter, Modulated, Renewal
from pull_env.scenario.laws import Erlang, Lognormal, Pareto
from pull_env.scenario.scenario import Pool, Scenario, Trace, load_scenario, scenario_names, traced_names
from tests.scenario.conftest import PRESETS, as_toml, raises

POOLS = (Pool(3, rate=2.0, buffer=4), Pool(5, rate=0.5))


def test_the_presets_are_those_of_the_table() -> None:
    assert scenario_names() == tuple(sorted(PRESETS))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_has_the_numbers_of_the_table(name: str) -> None:
    assert load_scenario(name) == replace(PRESETS[name], name=name)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_says_what_it_tests(name: str) -> None:
    assert (files.PRESETS / f"{name}.toml").read_text().startswith("# ")


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


@pytest.mark.parametrize(
    "parts",
    [
        {"service": Lognormal(4), "arrivals": Modulated((1, 2), (3, 4), ((0.5, 0.5), (1, 0)))},
        {"service": Pareto(1.5), "arrivals": Renewal(Erlang(3)), "shares": HotRouter(0.4, every=10)},
        {"arrivals": Trace("/data/a.swf", "submit", "run", block=50, bad_rows="skip")},
    ],
    ids=["modulated", "renewal", "trace"],
)
def test_workloads_round_trip_through_toml(parts, tmp_path):
    scenario = Scenario(POOLS, routers=2, load=0.5, name="some", **parts)
    path = tmp_path / "some.toml"
    path.write_text(as_toml(scenario))
    assert load_scenario(str(path)) == scenario


@pytest.mark.parametrize("part", ["service = {{law = 'empirical', file = '{}', column = 's'}}",
                                  "arrivals = {{kind = 'renewal', gaps = {{law = 'empirical', file = '{}', column = 's'}}}}"])  # fmt: skip
def test_files_are_looked_for_next_to_their_scenario(part, tmp_path):
    path = tmp_path / "some.toml"
    path.write_text(f"load = 0.5\npools = [{{size = 1}}]\n{part.format('../sizes.csv')}")
    scenario = load_scenario(str(path))
    law = scenario.service or scenario.arrivals.gaps
    assert Path(law.file) == (tmp_path.parent / "sizes.csv").resolve()


def test_a_preset_for_a_trace_that_the_user_names(tmp_path, monkeypatch):
    assert traced_names() == ("llm-gateway",)
    monkeypatch.chdir(tmp_path)
    scenario = load_scenario("llm-gateway", trace="requests.csv")
    assert scenario.arrivals == Trace(str(tmp_path / "requests.csv"), "TIMESTAMP", "GeneratedTokens")
    assert (scenario.servers, scenario.routers, scenario.load, scenario.name) == (24, 4, 0.7, "llm-gateway")
    with raises(
        r"llm-gateway replays a trace that you provide: load_scenario\('llm-gateway', trace=PATH\), or .*"
    ):
        load_scenario("llm-gateway")
    with raises(r".*two-speeds\.toml: trace is 'a\.csv': it must be left out: the scenario replays none"):
        load_scenario("two-speeds", trace="a.csv")
