"""The sections of the page of `brightwell_luczak`, made from its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from baselines.reproduce.common.criteria import above, all_hold, falls, rises
from baselines.reproduce.common.study import Row, Section, value
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.statistics import Estimate, from_error

FEW = 0.01  # expected number of longer queues in the limit, below which none should be seen
RARELY = 0.05  # share of snapshots with a longer queue
SETTING = (
    "Equal servers of rate 1, load 1 - n^-alpha, d = floor(n^beta) servers probed without "
    "replacement (power-of-d). Starts: an empty system; long queues, made by random sending before the "
    "policy starts, until there are 1.3 times the customers of the limit. 8 replications; 2 for a million "
    "servers. "
)
MILLION = 1_000_000
AT_REST = (
    "Where k = 1 hardly any customer waits, and a million servers reach equilibrium in a few service times: "
    "they start empty, warm up for 8 of them, and 4 more count. "
)


def sections(rows: Sequence[Row]) -> list[Section]:
    """Return the page: one length, none longer, and how fast."""
    decided = [row for row in rows if _few(rows, row)]
    others = [row for row in rows if not _few(rows, row)]
    return [
        _one_length(rows),
        *([_none_longer(decided)] if decided else []),
        *([_longer_for_now(others)] if others else []),
        _time(rows),
    ]


def ladders(rows: Sequence[Row], starts: Sequence[str]) -> dict[tuple[float, float, str], list[Row]]:
    """Return the rows of some starts by alpha, beta and start, each by n."""
    groups: dict[tuple[float, float, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["point"]["n"]):
        at = row["point"]
        if at["start"] in starts:
            groups.setdefault((at["alpha"], at["beta"], at["start"]), []).append(row)
    return groups


def ratio(row: Row) -> Estimate:
    """Return the time to the stationary mean over k d^(k-1) log n.

    The time to serve the excess customers is subtracted.
    """
    met, scale = value(row, "time"), row["extra"]["time scale"]
    return from_error((met.mean - row["extra"]["excess"]) / scale, met.error / scale, met.count)


def _few(rows: Sequence[Row], row: Row) -> bool:
    """Return whether the limit has almost no longer queue at the largest n."""
    alike = [other for other in rows if _regime(other) == _regime(row)]
    return _expected(max(alike, key=lambda other: int(other["point"]["n"]))) < FEW


def _regime(row: Row) -> tuple[float, float]:
    return row["point"]["alpha"], row["point"]["beta"]


def _expected(row: Row) -> float:
    """Return the expected number of queues longer than k in the limit."""
    return float(row["point"]["n"] * row["extra"]["limit longer"])


def _place(row: Row) -> tuple[str, ...]:
    at, extra = row["point"], row["extra"]
    return (
        f"{at['alpha']:g}, {at['beta']:g}",
        f"{extra['k']:.0f}",
        f"{at['n']:,}",
        f"{extra['d']:.0f}",
        at["start"],
    )


PLACE = ("alpha, beta", "k", "n", "d", "start")


def at(row: Row, n: int, start: str) -> bool:
    """Return whether a row is of n servers and a start."""
    return bool(row["point"]["n"] == n and row["point"]["start"] == start)


def _one_length(rows: Sequence[Row]) -> Section:
    bounded = [row for row in rows if row["extra"]["bound"] > 0.0]
    at_rest = AT_REST if any(at(row, MILLION, "empty") for row in rows) else ""
    holds = [above(value(row, "share"), row["extra"]["bound"]) for row in bounded]
    grows = {
        key: _rises_in_all([value(row, "share") for row in ladder])
        for key, ladder in ladders(bounded, ("empty",)).items()
    }
    return Section(
        heading="Almost all queues have length k",
        claim="In equilibrium, with probability tending to 1, the share of queues of length exactly k = "
        "ceil(alpha / beta) is at least 1 - 2 n^(-alpha + (k-1) beta), for suitable alpha and beta.",
        setting=SETTING + "32 snapshots of all queues per replication, evenly over the counted time: as "
        "long as the warm-up, 0.3 to 2 times k d^(k-1) log n, or twice as long up to n = 3,000. The largest "
        "systems are approached from either side instead (below, above), 2 replications each: random sending "
        "up to 0.92 or 1.0 times the customers of the limit, then the policy for about d service times or "
        "more, before the counted time; the stationary mean is expected between the two. "
        f"{at_rest}Limit: the supermarket model at this load and d, u_k - u_(k+1).",
        header=(*PLACE, "load", "share of length k", "limit", "at least"),
        table=[
            (
                *_place(row),
                f"{row['scenario']['content']['load']:.5f}",
                plus_minus(value(row, "share")),
                f"{row['extra']['limit share']:.4f}",
                f"{row['extra']['bound']:.4f}" if row in bounded else "-",
            )
            for row in rows
        ],
        reproduced=all_hold([*holds, *grows.values()]),
        verdict="Criterion, where the bound is positive (elsewhere it says nothing): at every point the "
        "interval is above it, and from the smallest n of each alpha and beta to the largest the share "
        f"rises, intervals considered (empty starts). {holds.count(True)} of {len(holds)} points lie above "
        f"the bound, {holds.count(False)} below; {list(grows.values()).count(True)} of {len(grows)} shares "
        "rise.",
    )


def _rises_in_all(values: Sequence[Estimate]) -> bool | None:
    """Return whether the last interval is above the first.

    None: they overlap, or there is only one.
    """
    if len(values) < 2:
        return None
    return True if values[-1].low > values[0].high else False if values[-1].high < values[0].low else None


def _longer_table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [
        (
            *_place(row),
            plus_minus(value(row, "longer")),
            f"{row['extra']['limit longer']:.3g}",
            f"{_expected(row):.2g}",
            plus_minus(value(row, "some longer")),
            f"{row['extra']['longest']:.0f}",
        )
        for row in rows
    ]


LONGER = (*PLACE, "share longer", "limit", "limit x n", "snapshots with some", "longest")


def _none_longer(rows: Sequence[Row]) -> Section:
    largest = [ladder[-1] for ladder in ladders(rows, ("empty", "long queues")).values()]
    none = [
        True if some.high < RARELY else False if some.low > RARELY else None
        for some in (value(row, "some longer") for row in largest)
    ]
    return Section(
        heading="None is longer",
        claim="In equilibrium, with probability tending to 1, no queue is longer than k.",
        setting=SETTING + "The same snapshots, of the alpha and beta whose limit has fewer than "
        f"{FEW:g} longer queues of n at the largest n.",
        header=LONGER,
        table=_longer_table(rows),
        reproduced=all_hold(none),
        verdict=f"Criterion: at the largest n of each start fewer than {RARELY:.0%} of the snapshots have a "
        f"longer queue, interval considered. {none.count(True)} of {len(none)} cases do, {none.count(False)} "
        "have more.",
    )


def _longer_for_now(rows: Sequence[Row]) -> Section:
    falling = {
        key: falls([value(row, "longer") for row in ladder])
        for key, ladder in ladders(rows, ("empty",)).items()
    }
    needed = "; ".join(
        f"{_first_without(a, b)} at alpha {a:g}, beta {b:g}"
        for a, b in sorted({_regime(row) for row in rows})
    )
    return Section(
        heading="None is longer, where larger systems are needed to see it",
        claim="As before; for these alpha and beta n^(k beta - alpha) grows slowly, and the share of longer "
        "queues in the limit is about exp(-n^(k beta - alpha)).",
        setting=SETTING + "The same snapshots, of the other alpha and beta.",
        header=LONGER,
        table=_longer_table(rows),
        reproduced=all_hold(falling.values()),
        verdict="Criterion: from the smallest n to the largest the share of longer queues falls tenfold "
        "(empty starts; in between the limit itself may rise, where d = floor(n^beta) lags behind). "
        f"{list(falling.values()).count(True)} of {len(falling)} do, "
        f"{list(falling.values()).count(False)} rise. These sizes cannot show that none is left: in the "
        f"limit fewer than one queue of n is longer only from about these n: {needed}.",
    )


def _first_without(alpha: float, beta: float) -> str:
    """Return the power of ten above which n has less than one longer queue."""
    growth = math.ceil(alpha / beta) * beta - alpha
    exponent = next(e for e in range(1, 300) if 10 ** (e * growth) > e * math.log(10))
    return f"10^{exponent}"


def _time(rows: Sequence[Row]) -> Section:
    groups = ladders(rows, ("empty", "long queues"))
    timed = {key: [row for row in ladder if "time" in row["extra"]] for key, ladder in groups.items()}
    missing = sum(map(len, groups.values())) - sum(map(len, timed.values()))
    steps = sum(len(ladder) - 1 for ladder in timed.values() if ladder)
    level = 1 - 0.05 / max(steps, 1)  # so that all steps hold jointly at 95 %
    rising = {
        key: rises([ratio(row) for row in ladder], level) for key, ladder in timed.items() if len(ladder) > 1
    }
    table = [
        (
            *_place(row),
            plus_minus(value(row, "length")),
            plus_minus(value(row, "time")),
            f"{row['extra']['excess']:.1f}",
            f"{row['extra']['time scale']:.4g}",
            plus_minus(ratio(row)),
        )
        for ladder in timed.values()
        for row in ladder
    ]
    verdicts: list[bool | None] = [not bad for bad in rising.values()]
    agree = _starts_agree(rows)
    return Section(
        heading="The time to equilibrium",
        claim="The system mixes in O(k d^(k-1) n log n) jumps from a good state, that is in O(k d^(k-1) log "
        "n) service times, as there are about 2 n jumps in one; from bad states there are bounds as well.",
        setting=SETTING
        + "The time until the customers first meet their stationary mean, from below or above. "
        "From above, serving the excess customers takes the excess at the start over 1 - load under any "
        "policy; the ratio is that of the remaining time. It indicates the slowest part of the convergence, "
        "not the mixing time itself, which is defined by distributions and cannot be measured this way.",
        header=(*PLACE, "mean length", "time", "to work off", "k d^(k-1) log n", "ratio"),
        table=table,
        reproduced=all_hold([*verdicts, *agree, *([None] * missing)]),
        verdict="Criterion: along the sizes of each alpha, beta and start the ratio does not rise, by "
        f"intervals of {level:.2%}, so that all {steps} steps hold jointly at 95 %: the order is not "
        f"exceeded ({verdicts.count(True)} of {len(verdicts)} do not); and both "
        f"starts come to the same mean length, by intervals of 99.9 % ({agree.count(True)} of {len(agree)} "
        f"do). {missing} points did not meet their mean in the time that was watched.",
    )


def _starts_agree(rows: Sequence[Row]) -> list[bool]:
    """Return for each system whether intervals from both starts overlap."""
    by_system: dict[tuple[float, ...], list[Estimate]] = {}
    for row in rows:
        if row["point"]["start"] in ("empty", "long queues"):
            by_system.setdefault((*_regime(row), row["point"]["n"]), []).append(value(row, "length"))
    spans = [[one.interval(0.999) for one in pair] for pair in by_system.values() if len(pair) == 2]
    return [first[0] <= second[1] and second[0] <= first[1] for first, second in spans]
