"""The trained routers: what lies on the shelf, that one is trained again to the bit, and the page of scores."""

import dataclasses
import json
import subprocess
import sys

import pytest

from agents.__main__ import main
from agents.report import run as report
from agents.report.comparison import Contest, at_price, difference
from agents.report.page import page
from agents.training.action_set import with_takes_by_pool
from agents.training.commands import repeatable
from agents.zoo import registry as shelf
from agents.zoo import retrain as reproduce
from agents.zoo.registry import MOST_BYTES, SHELF, load_trained, trained_names
from pull_env.policy.policy import Announce, Policy, Send, Take, save_policy
from pull_env.reporting.rows import read_rows
from pull_env.simulation.policy_runner import check_fit
from pull_env.simulation.simulate import simulate

SEARCH = [
    "--scenario",
    "small-mixed",
    "--generations",
    "2",
    "--every",
    "1",
    "--population",
    "6",
    "--customers",
    "2000",
    "--warmup",
    "100",
    "--replications",
    "2",
    "--validation-customers",
    "4000",
    "--validation-warmup",
    "100",
    "--score-customers",
    "0",
    "--seed",
    "3",
]
LEARN = """--scenario small-mixed --algo maskable-ppo --steps 300 --envs 2 --n-steps 75 --evaluations 1
    --evaluation-customers 2000 --score-customers 0"""
DISPATCH = "--steps 300 --envs 2 --n-steps 75 --evaluations 1 --score-customers 0"


@pytest.fixture
def own_shelf(monkeypatch, tmp_path):
    """A shelf with one router, trained for a moment; returns the folder of its search."""
    monkeypatch.setattr(shelf, "SHELF", tmp_path / "shelf")
    start = shelf.SHELF / "mine" / "start.toml"
    start.parent.mkdir(parents=True)
    save_policy(Policy("start", (Take(order="fastest"), Send(weights="rate")), Announce()), start)
    words = ["search", *SEARCH, "--start", str(start), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "agents", *words])
    assert main(words) == 0
    shelf.put(tmp_path / "run", "mine")
    return tmp_path / "run"


@pytest.mark.parametrize("name", trained_names())
def test_each_trained_router_is_whole(name):
    trained = load_trained(name)
    policy, start, told = trained.policy, trained.start, trained.training
    check_fit(policy, trained.scenario)
    assert shelf.digest(policy) == told["weights_sha256"]
    assert trained.scenario.digest == told["scenario"]["sha256"]
    assert sum(path.stat().st_size for path in (SHELF / name).iterdir()) < MOST_BYTES
    curve = [json.loads(line) for line in (SHELF / name / "curve.jsonl").read_text().splitlines()]
    assert curve[-1]["generation"] == told["generations"] if "generations" in told else told["customers"]
    if not trained.in_sight:
        assert policy.network.training_seed == told["seed"]
    if start is not None:
        assert (policy.announce, policy.memory) == (start.announce, start.memory)
        own = with_takes_by_pool(start.steps, trained.scenario)
        assert policy.steps[: len(own)] == own
    result = simulate(trained.scenario, trained.policy, 2_000, warmup=100, replications=2)
    assert result.customers >= 2_000


def test_a_router_is_trained_again_to_the_bit(own_shelf, tmp_path, capfd):
    trained = load_trained("mine")
    assert trained.training["command"].endswith("--generations 2")
    args = reproduce.Args("mine", tmp_path / "again", check=True)
    assert reproduce.run(args) == 0, capfd.readouterr()
    assert "as in training.json" in capfd.readouterr().out
    other = {**trained.training, "weights_sha256": "0" * 64}
    assert not reproduce.same("mine", other, tmp_path / "again")
    with pytest.raises(ValueError, match="it exists already"):
        reproduce.run(args)


@pytest.mark.parametrize("verb", ["train", "dispatch"])
def test_what_gradients_trained_is_trained_again_to_the_bit(verb, monkeypatch, tmp_path, capfd):
    """In processes of their own, as anybody would."""
    monkeypatch.setattr(shelf, "SHELF", tmp_path / "shelf")
    words = {"train": LEARN, "dispatch": DISPATCH}[verb].split()
    command = [sys.executable, "-m", "agents", verb, *words, "--out", str(tmp_path / "run")]
    assert subprocess.run(command, cwd=reproduce.ROOT, check=False).returncode == 0
    shelf.put(tmp_path / "run", "mine")
    trained = load_trained("mine")
    assert trained.in_sight == (verb == "dispatch")
    assert trained.training["customers"] == 300
    assert "--out" not in trained.training["command"]
    assert reproduce.run(reproduce.Args("mine", tmp_path / "again", check=True)) == 0
    assert "as in training.json" in capfd.readouterr().out


def test_a_command_is_told_generations_in_place_of_minutes():
    command = "python -m agents search --minutes 4 --seed 2 --workers 1 --out 'runs/a b'"
    assert repeatable(command, 7) == "python -m agents search --seed 2 --generations 7"


def test_what_is_there_is_never_overwritten(own_shelf):
    with pytest.raises(ValueError, match="there already"):
        shelf.put(own_shelf, "mine")
    with pytest.raises(ValueError, match="must be the folder of a run"):
        shelf.put(own_shelf / "nothing", "other")
    with pytest.raises(ValueError, match="it must be one of mine"):
        load_trained("yours")


def test_scores_and_page(own_shelf, call, tmp_path):
    """Rows are measured once; the page shows the router's differences as the rows have them."""
    words = ["--quick", "--out", str(tmp_path / "scores")]
    assert call("report", *words)[0] == 0
    rows = read_rows(tmp_path / "scores" / "rows.jsonl")
    text = (tmp_path / "scores" / "README.md").read_text(encoding="utf-8")
    assert text == page(rows)
    contest = Contest(tuple(row for row in rows if row["part"] == "preset"))
    gap = difference(contest.learned, contest.named("pull"))
    assert f"| {gap} |" in text
    before = (tmp_path / "scores" / "rows.jsonl").read_bytes()
    assert call("report", *words)[0] == 0
    assert (tmp_path / "scores" / "rows.jsonl").read_bytes() == before
    assert call("report", "--page", *words)[0] == 0
    check_prices(contest, tmp_path)


def check_prices(contest, tmp_path):
    """The cost at another price is what a run at that price measures."""
    row = contest.named("balanced(2)")
    trained = load_trained("mine")
    dear = dataclasses.replace(
        trained.scenario, prices=dataclasses.replace(trained.scenario.prices, message=0.5)
    )
    task = report.Task("preset", "", "baseline", trained, dear, report.baselines.make("balanced(2)"))
    args = dataclasses.replace(report.Args(), customers=20_000, replications=4, warmup=500, quick=True)
    found = report.measure(args, task, "none")["samples"]["cost"]
    assert at_price(row, 0.5)["samples"]["cost"] == pytest.approx(found, rel=1e-12)


def test_a_difference_and_its_verdict():
    def row(costs, stable=True):
        return {"samples": {"cost": costs}, "stable": stable}

    better = difference(row([0.8, 1.9, 2.7]), row([1.0, 2.1, 2.9]))
    assert better.mean == pytest.approx(-10)
    assert better.verdict == "wins"
    assert difference(row([1.0, 2.0]), row([1.1, 1.8])).verdict == "equal"
    assert difference(row([1.2, 2.1, 3.2]), row([1.0, 2.0, 3.0])).verdict == "loses"
    assert difference(row([1.0], False), row([1.0])) is None


def test_the_page_is_what_the_rows_give():
    rows, text = report.HERE / "results" / report.ROWS, report.HERE / report.PAGE
    exam = report.HERE / "results" / report.EXAM
    assert text.read_text(encoding="utf-8") == page(read_rows(rows), read_rows(exam))
