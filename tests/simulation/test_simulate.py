"""`simulate`: its arguments, its verdicts, and that nothing but its arguments decides the result."""

import math
import threading
import time

import numpy as np
import pytest

import baselines
from pull_env import Pool, Prices, Scenario, simulate
from pull_env.scenario.scenario import Trace
from pull_env.simulation.statistics import paired
from pull_env.simulation.workload import calendar_workload

SMALL = Scenario(
    (Pool(2, 1.0, 4), Pool(2, 2.0, 4)), routers=2, arrival_rate=4.8, prices=Prices(1.0, 0.05, 5.0)
)


@pytest.mark.parametrize("name", ["pull", "jiq", "balanced(2)", "sed", "weighted-round-robin"])
@pytest.mark.parametrize("clock", ["markov", "calendar"])
def test_the_number_of_threads_changes_nothing(name, clock):
    workload = calendar_workload(SMALL) if clock == "calendar" else None
    run = {"customers": 40_000, "seed": 3, "replications": 5, "workload": workload}
    first, second = (simulate(SMALL, baselines.make(name), workers=workers, **run) for workers in (1, 4))
    assert first == second
    assert first.wait.samples == second.wait.samples


def test_more_threads_do_not_make_more_work():
    """The processor's time, as that of the clock depends on what else runs: threads do not wait for each other."""
    seconds = {1: math.inf, 4: math.inf}
    for _ in range(4):
        for workers, least in seconds.items():
            start = time.process_time()
            simulate("two-speeds", baselines.make("pull-weighted"), 400_000, warmup=0, workers=workers)
            seconds[workers] = min(least, time.process_time() - start)
    assert seconds[4] < 1.5 * seconds[1]


def test_another_seed_gives_another_result_and_the_same_seed_the_same():
    policy = baselines.make("pull")
    results = [simulate(SMALL, policy, 20_000, seed=seed) for seed in (0, 0, 1)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_replications_are_not_alike_and_not_shared_by_neighbouring_seeds():
    policy = baselines.make("pull")
    samples = [simulate(SMALL, policy, 64_000, seed=seed).wait.samples for seed in (0, 1)]
    assert len({*samples[0], *samples[1]}) == 16


def test_customers_are_counted_over_all_replications():
    result = simulate(SMALL, baselines.make("pull"), 100_000, replications=4, warmup=500)
    assert (result.customers, result.replications, result.warmup) == (
        100_096,
        4,
        500,
    )  # 32 whole batches each


def test_a_single_replication_has_intervals_over_its_batches():
    scenario = Scenario((Pool(2, 1.0, 2), Pool(2, 2.0, 2)), routers=2, arrival_rate=4.8)
    result = simulate(scenario, baselines.make("pull"), 3_200_000, replications=1, seed=4)
    assert result.wait.count == 32
    assert abs(result.mean_number.mean - 3.758836932) < result.mean_number.half_width(0.999) < 0.02
    assert abs(result.p_block.mean - 0.172261182) < result.p_block.half_width(0.999) < 0.002


def test_common_random_numbers_narrow_a_difference():
    run = {"customers": 400_000, "seed": 5, "replications": 16}
    one, other = (
        simulate("two-speeds", baselines.make(name), **run) for name in ("balanced(2)", "balanced(3)")
    )
    difference = paired(one.wait, other.wait)
    assert difference.mean == pytest.approx(one.wait.mean - other.wait.mean)
    assert difference.error < 0.8 * math.hypot(one.wait.error, other.wait.error)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("customers", 0),
        ("customers", 2.5),
        ("seed", -1),
        ("replications", 0),
        ("warmup", -1),
        ("workers", 0),
        ("seed", True),
    ],
)
def test_a_bad_argument_is_named(field, value):
    with pytest.raises(ValueError, match=rf"^{field} is {value}: it must be a whole number from \d$"):
        simulate("small-mixed", baselines.make("pull"), **{field: value})


def trace(tmp_path, rows=2000):
    path = tmp_path / "trace.csv"
    draw = np.random.default_rng(0)
    times, sizes = np.cumsum(draw.exponential(2.0, rows)), draw.integers(1, 100, rows)
    lines = "".join(f"{t:.6f},{s}\n" for t, s in zip(times, sizes, strict=True))
    path.write_text("at,tokens\n" + lines, encoding="utf-8")
    return Scenario(
        (Pool(3, 2.0), Pool(3, 1.0)), routers=2, load=0.7, arrivals=Trace(str(path), "at", "tokens")
    )


def test_a_trace_is_replayed_whole_by_each_replication(tmp_path):
    scenario = trace(tmp_path)
    result = simulate(scenario, baselines.make("jsq"), replications=3)
    assert result.customers == 3 * 32 * (2000 // 32)
    assert result.warmup == 0
    assert result.stable
    with pytest.raises(ValueError, match=r"customers is 9000: .* has 2000, a replication may count 1984"):
        simulate(scenario, baselines.make("jsq"), 9000, replications=3)


def test_requests_of_a_trace_keep_their_times_and_sizes(tmp_path):
    """With one router and a policy without chance, replications of a trace are one and the same run."""
    path = tmp_path / "trace.csv"
    path.write_text(
        "t,s\n0,3\n1,1\n2,1\n3,3\n" + "".join(f"{4 + k},2\n" for k in range(60)), encoding="utf-8"
    )
    scenario = Scenario((Pool(1, 1.0),), arrival_rate=1.0, arrivals=Trace(str(path), "t", "s"))
    result = simulate(scenario, baselines.make("random"), replications=2)
    sizes = np.array([3, 1, 1, 3] + [2] * 60) / (128 / 64)
    clear, waits = 0.0, []
    for now, size in zip(range(64), sizes, strict=True):
        waits.append(max(clear - now, 0.0))
        clear = max(clear, now) + size
    assert result.wait.samples[0] == result.wait.samples[1]
    assert result.wait.mean == pytest.approx(np.mean(waits), rel=1e-12)


def test_an_interruption_ends_all_threads():
    class Stop(Exception):
        pass

    class Feed:
        def __init__(self, sequence):
            pass

        def draw(self, count):
            raise Stop

    before = threading.active_count()
    with pytest.raises(Stop):
        simulate(SMALL, baselines.make("pull"), 10_000_000, workload=Feed)
    assert threading.active_count() == before
