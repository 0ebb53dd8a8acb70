"""Large systems in the rows of `chen_ye`: mean response, tail per pool."""

from __future__ import annotations

from collections.abc import Sequence

from baselines.reproduce.common.criteria import all_hold, count_verdicts, verdict_word
from baselines.reproduce.common.heavy_traffic import REPLICATIONS, SNAPSHOTS, contains, joint_level, select
from baselines.reproduce.common.study import Row, Section, value
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.simulate import BATCHES

LEAST = 5e-4  # share of queues down to which tails are compared; rarer ones are too few in a snapshot


def large_systems(rows: Sequence[Row]) -> list[Section]:
    """Return the sections about large systems."""
    return [_response(rows), _tail(rows)]


def _large_setting(rows: Sequence[Row]) -> str:
    """Return how the rows of large systems were made."""
    selected = select(rows, experiment="large")
    ns = sorted({row["point"]["n"] for row in selected})
    runs = {(row["point"]["n"], min(row["point"]["c"], 2)): row["run"] for row in selected}
    last = runs[ns[-1], 2]
    return (
        "Half of n servers at rate 1, half at rate 2, no limits, R = 1, load "
        f"{selected[0]['point']['load']:g}; n = {', '.join(f'{n:,}' for n in ns)}; {REPLICATIONS} "
        f"replications on seed {last['seed']}, {last['customers']:,} customers in all at the largest n. The "
        f"warm-up from an empty system is 40 time units ({last['warmup']:,} customers there), several "
        "relaxation times "
        "for c from 2 on; for c = 1 it is 450, five relaxation times of M/M/1."
    )


def _response(rows: Sequence[Row]) -> Section:
    """Decide whether the mean response tends to its limit as n grows."""
    selected = select(rows, experiment="large")
    cs = sorted({row["point"]["c"] for row in selected})
    ns = sorted({row["point"]["n"] for row in selected})
    level = joint_level(len(cs))
    table, decided = [], []
    for c in cs:
        mine = {row["point"]["n"]: row for row in selected if row["point"]["c"] == c}
        largest = mine[max(mine)]
        theory = largest["extra"]["limit response"]
        decided.append(contains(value(largest, "response"), theory, level))
        cells = [plus_minus(value(mine[n], "response")) if n in mine else "" for n in ns]
        table.append([str(c), *cells, f"{theory:.6f}", verdict_word(decided[-1])])
    return Section(
        "In large systems: the mean response",
        "As n grows at a fixed load every pool has the same tail, and the mean response is the sum of u_k "
        "over k >= 1, divided by the arrival rate per server.",
        _large_setting(rows),
        ["c", *(f"E[T], time units, n = {n:,}" for n in ns), "n -> infinity", "met"],
        table,
        all_hold(decided),
        "Criterion: at the largest n of each c the interval, jointly at 95 %, holds the limit. "
        f"{count_verdicts(decided)}",
    )


def _tail(rows: Sequence[Row]) -> Section:
    """Decide whether either half of a large system has the tail of the limit."""
    selected = select(rows, experiment="large")
    largest = max(row["point"]["n"] for row in selected)
    cells = [
        (row, k)
        for row in selected
        if row["point"]["n"] == largest
        for k in range(1, row["point"]["levels"] + 1)
    ]
    level = joint_level(3 * len(cells))
    table, decided = [], []
    for row, k in cells:
        slow, fast, gap = (value(row, f"{name} u_{k}") for name in ("pool 0", "pool 1", "difference"))
        theory = row["extra"][f"limit u_{k}"]
        held = all_hold(
            [contains(slow, theory, level), contains(fast, theory, level), contains(gap, 0.0, level)]
        )
        decided.append(held if row["stable"] else None)
        numbers = [*map(plus_minus, (slow, fast, gap)), f"{theory:.6f}"]
        table.append([str(row["point"]["c"]), str(k), *numbers, verdict_word(decided[-1])])
    return Section(
        "In large systems: the same tail in every pool",
        "The share of servers with k customers or more is u_k = rho^((c^k - 1) / (c - 1)) in every pool, "
        "that of the slow servers and that of the fast ones.",
        f"As above, n = {largest:,}; {SNAPSHOTS * BATCHES} snapshots per replication. Levels down to u_k = "
        f"{LEAST:g}.",
        ["c", "k", "u_k, slow servers", "u_k, fast servers", "difference, paired", "n -> infinity", "met"],
        table,
        all_hold(decided),
        f"Criterion: the intervals, of {level:.3%} each so that they hold jointly at 95 %, hold u_k in both "
        f"pools, and 0 for the difference. {count_verdicts(decided)}",
    )
