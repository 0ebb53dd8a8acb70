"""The sections of the page of `stolyar`, made from its rows."""

from __future__ import annotations

from collections.abc import Sequence

from baselines.reproduce.common.criteria import all_hold, vanishing, within
from baselines.reproduce.common.study import Row, Section, read_estimate, value
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.statistics import Estimate, from_error

SYSTEMS = {
    "finite": "half of the servers at rate 1 with buffer 3, half at rate 2 with buffer 1 (no waiting room)",
    "unlimited": "half of the servers at rate 0.5, half at rate 1.5, no limits",
}
FILLED = 10  # service times of the slowest servers, after which the servers are filled
CLOSE = 0.005  # to the fluid limit
LAW_CLOSE = 0.15  # to the 1/n law, which is known numerically with about this precision
LAW_MOST = 0.1  # P(wait or block) above which the law, a limit, is not shown
FIELD_CLOSE = 0.01  # to the mean field


def sections(rows: Sequence[Row]) -> list[Section]:
    """Return the page: the theorem's claim, the rate of convergence, its limits."""
    return [
        *(_waiting_vanishes(rows, name) for name in SYSTEMS),
        _one_message(rows),
        _fluid(rows),
        _law(rows),
        _small(rows),
        _many_routers(rows),
    ]


def select_rows(rows: Sequence[Row], *experiments: str, **wanted: object) -> list[Row]:
    """Return the rows of some experiments, sorted by R and n.

    Of `wanted`, `name` is the scenario's; the others are coordinates of the point.
    """
    name = wanted.pop("name", None)
    selected = [
        row
        for row in rows
        if row["point"]["experiment"] in experiments
        and (name is None or row["scenario"]["name"] == name)
        and all(row["point"][key] == value for key, value in wanted.items())
    ]
    return sorted(selected, key=lambda row: (row["point"]["R"], row["point"]["n"]))


def scaled(estimate: Estimate, factor: float, shift: float = 0.0) -> Estimate:
    """Return `shift` + `factor` times an estimate."""
    return from_error(shift + factor * estimate.mean, abs(factor) * estimate.error, estimate.count)


def scaled_empty(row: Row) -> Estimate:
    """Return n (1 - load) P(router is empty) / (R - 1), the 1/n law's c."""
    at, content = row["point"], row["scenario"]["content"]
    return scaled(value(row, "empty"), at["n"] * (1 - content["load"]) / (at["R"] - 1))


def routers(rows: Sequence[Row]) -> list[int]:
    """Return the numbers of routers in some rows, each once."""
    return sorted({row["point"]["R"] for row in rows})


def _cell(row: Row, name: str) -> str:
    """Return a cell: `-` if unstable; for a count of 0, of how many customers."""
    selected = value(row, name)
    return f"0 of {row['run']['customers']:,}" if selected.mean == 0.0 else plus_minus(selected)


def _state(row: Row) -> str:
    """Return whether the state was stationary or began from an even split."""
    spans, transient = row["point"]["spans"], row["point"]["experiment"] == "watched"
    if not row["stable"]:
        return "unstable"
    if spans is None:
        return "stationary"
    if transient:
        return f"from an even split, after {spans:.2g} relaxation times"
    return f"stationary, {spans:,.0f} relaxation times"


def _waiting_vanishes(rows: Sequence[Row], name: str) -> Section:
    selected = select_rows(rows, "size", "watched", name=name)
    ladders = {r: _ladder(rows, name, r) for r in routers(selected)}
    verdicts = {r: vanishing([value(row, "late") for row in ladder]) for r, ladder in ladders.items()}
    ends = "; ".join(
        f"R = {r}: {_cell(ladder[0], 'late')} at n = {ladder[0]['point']['n']:,}, "
        f"{_cell(ladder[-1], 'late')} at n = {ladder[-1]['point']['n']:,}"
        for r, ladder in ladders.items()
        if ladder
    )
    return Section(
        heading=f"Waiting and blocking vanish: {name} buffers",
        claim="At a load below 1 and with R fixed, the stationary probability that a customer waits or is "
        "blocked goes to 0 as n grows (the main theorem).",
        setting=f"{SYSTEMS[name].capitalize()}; load 0.9; PULL. Stationary points: 8 replications, each "
        "after a warm-up of 200 service times of the slowest servers and five relaxation times of the split "
        "of messages over routers, 4 n (1 - load)^2 / (pi^2 load) service times, so that the customers "
        "needed grow with the square of n. The largest systems cannot be simulated so long: they were "
        f"observed from an empty system, whose messages are spread evenly, after {FILLED} service times of "
        "the slowest servers, 3 replications. The result holds for that time span only, and says nothing "
        "about the stationary state, except at R = 1, where there is nothing to split. Theory: (R - 1) / n "
        "times the limit of r P(wait or block) in the mean field at r = n / R, as r grows: the 1/n law "
        "below, which our measurements extend to unequal servers.",
        header=(
            "n",
            "R",
            "P(wait)",
            "P(block)",
            "P(wait or block)",
            "1/n law",
            "messages per customer",
            "state",
        ),
        table=[
            (
                f"{row['point']['n']:,}",
                str(row["point"]["R"]),
                _cell(row, "p_wait"),
                _cell(row, "p_block") if name == "finite" else "0",
                _cell(row, "late"),
                small_law(row) or "-",
                plus_minus(value(row, "total")),
                _state(row),
            )
            for row in selected
        ],
        reproduced=all_hold(verdicts.values()),
        verdict="Criterion, over the stationary points of each R: no interval is above that of the next "
        "smaller n, and from the smallest n to the largest P(wait or block) falls at least tenfold, "
        f"intervals considered. {ends}.{_failing(verdicts)}",
    )


def small_law(row: Row) -> str:
    """Return the 1/n law; empty with one router, or if n is too small."""
    law = row["extra"]["law late"]
    return f"{law:.3g}" if 0.0 < law < LAW_MOST else ""


def _ladder(rows: Sequence[Row], name: str, r: int) -> list[Row]:
    """Return the stable stationary rows of one R by n."""
    return [row for row in select_rows(rows, "size", name=name, R=r) if row["stable"]]


def _failing(verdicts: dict[int, bool | None]) -> str:
    """Name the R whose verdicts are not True."""
    texts = {False: "it rises", None: "undecided"}
    return "".join(f" R = {r}: {texts[v]}." for r, v in verdicts.items() if v is not True)


def _one_message(rows: Sequence[Row]) -> Section:
    table, verdicts = [], []
    for name in SYSTEMS:
        for r in routers(select_rows(rows, "size", name=name)):
            ladder = _ladder(rows, name, r)
            verdicts.append(vanishing([scaled(value(row, "total"), -1.0, 1.0) for row in ladder]))
            for row in ladder[:1] + ladder[1:][-1:]:
                cells = (_cell(row, kind) for kind in ("pull", "remove", "total"))
                table.append((name, f"{row['point']['n']:,}", str(r), *cells))
    return Section(
        heading="One message per customer",
        claim="Routers and servers exchange one message per customer in the limit.",
        setting="The stationary points above; smallest and largest stable n. A customer that neither waits "
        "nor is blocked costs one pull-message; one sent at random to an idle server, a remove-message more.",
        header=("buffers", "n", "R", "pull", "remove", "messages per customer"),
        table=table,
        reproduced=all_hold(verdicts),
        verdict="Criterion: as above, for 1 - messages per customer, as customers that wait cost "
        f"none; {verdicts.count(True)} of {len(verdicts)} meet it, {verdicts.count(False)} rise.",
    )


def _fluid(rows: Sequence[Row]) -> Section:
    table, verdicts = [], []
    for name in SYSTEMS:
        for r in routers(select_rows(rows, "watched", name=name)):
            ladder = [row for row in select_rows(rows, "size", "watched", name=name, R=r) if row["stable"]]
            for row in ladder[-4:]:
                busy = [read_estimate(part) for part in row["measures"]["busy"]]
                fluid = [row["extra"][f"fluid busy {j}"] for j in range(len(busy))]
                pairs = [
                    *zip(busy, fluid, strict=True),
                    (value(row, "response"), row["extra"]["fluid response"]),
                ]
                cells = [text for x, limit in pairs for text in (plus_minus(x), f"{limit:.6f}")]
                table.append((name, f"{row['point']['n']:,}", str(r), *cells))
                if row is ladder[-1]:
                    verdicts.append(all_hold(within(x, limit, CLOSE) for x, limit in pairs))
    return Section(
        heading="The fluid point",
        claim="The system converges to one point: every server idles for the same mean time I in any "
        "pool, x_j = beta_j / (1 + mu_j I) of the servers are busy, and the mean response is sum x_j / "
        "lambda. So waiting is optimal, response is not: fast servers idle as long as slow ones.",
        setting="The four largest stable systems above of each R. Response in time units.",
        header=("buffers", "n", "R", "busy, slow", "limit", "busy, fast", "limit", "response", "limit"),
        table=table,
        reproduced=all_hold(verdicts),
        verdict=f"Criterion: at the largest n of each R the intervals lie within {CLOSE:.1%} of the limit.",
    )


def _law(rows: Sequence[Row]) -> Section:
    selected = sorted(select_rows(rows, "law"), key=lambda row: row["scenario"]["content"]["load"])
    keys = [(row["scenario"]["content"]["load"], row["point"]["R"]) for row in selected]
    largest = dict(zip(keys, selected, strict=True))  # n ascends
    verdicts = [within(scaled_empty(row), row["extra"]["c"], LAW_CLOSE) for row in largest.values()]
    return Section(
        heading="How fast: like 1/n",
        claim="Not in the paper. P(a router is empty) is about c (R - 1) / (n (1 - load)), where c depends "
        "on the load alone. It is the limit of r (1 - load) q0 in the mean field with r = n / R servers a "
        "router, as r grows, at fixed R; known numerically to about 15 %.",
        setting="Equal servers of rate 1 without limit; PULL; 8 replications, each after five relaxation "
        "times of the split and 200 service times. Rare excursions of the split matter, so that many "
        "relaxation times are needed, which limits n.",
        header=("load", "n", "R", "relaxation times", "P(router empty)", "c measured", "c"),
        table=[
            (
                f"{row['scenario']['content']['load']:g}",
                f"{row['point']['n']:,}",
                str(row["point"]["R"]),
                f"{row['point']['spans']:,.0f}",
                _cell(row, "empty"),
                plus_minus(scaled_empty(row)),
                f"{row['extra']['c']:.4f}",
            )
            for row in selected
        ],
        reproduced=all_hold(verdicts),
        verdict=f"Criterion: at the largest n of each load and R the interval is within {LAW_CLOSE:.0%} "
        f"of c: {verdicts.count(True)} do, {verdicts.count(None)} are undecided, "
        f"{verdicts.count(False)} do not.",
    )


def _small(rows: Sequence[Row]) -> Section:
    several = [row for row in select_rows(rows, "size", name="unlimited") if row["point"]["R"] > 1]
    weighted = select_rows(rows, "fallback")
    agree = [row["stable"] == ("field late" in row["extra"]) for row in several]
    stable = [row["stable"] for row in weighted]
    unstable = [f"n = {row['point']['n']}, R = {row['point']['R']}" for row in several if not row["stable"]]
    return Section(
        heading="Where it is too small: unlimited queues may grow",
        claim="Not in the paper. Without limits, the random fallback overloads slow servers where "
        "lambda P(router empty) exceeds their rate, which at this load happens in small systems with many "
        "routers; a fallback by rate does not. The mean field at r = n / R, which has no stationary state "
        "then, says where.",
        setting=f"{SYSTEMS['unlimited'].capitalize()}; load 0.9; PULL, and PULL with a fallback by rate "
        "(pull-weighted); the test for drift of `simulate`.",
        header=("n", "R", "policy", "measured", "mean field", "P(wait)", "mean field", "response"),
        table=[
            (
                f"{row['point']['n']:,}",
                str(row["point"]["R"]),
                row["policy"]["name"],
                "stable" if row["stable"] else "unstable",
                _field(row, "stable" if "field late" in row["extra"] else "unstable"),
                _cell(row, "p_wait"),
                _field(row, f"{row['extra'].get('field p_wait', float('nan')):.5f}".replace("nan", "-")),
                _cell(row, "response"),
            )
            for row in [*several, *weighted]
        ],
        reproduced=all_hold([*agree, *stable]),
        verdict="Criterion: PULL is stable exactly where the mean field is, and with a fallback by rate at "
        f"all points measured. Unstable: {'; '.join(unstable) or 'no point'}; {agree.count(False)} of "
        f"{len(agree)} points disagree with the mean field.",
    )


def _field(row: Row, text: str) -> str:
    """Return `text` of the mean field, which covers the uniform fallback only."""
    return text if row["policy"]["name"] == "pull" else "-"


def _many_routers(rows: Sequence[Row]) -> Section:
    selected = select_rows(rows, "growing R")
    table, verdicts = [], []
    for row in sorted(selected, key=lambda row: row["scenario"]["name"]):
        cells = []
        for name in ("p_wait", "p_block", "response"):
            limit = row["extra"][f"field {name}"]
            cells += [_cell(row, name), f"{limit:.6f}"] if limit else ["0", "0"]
            if limit and row["point"]["n"] == max(r["point"]["n"] for r in selected):
                verdicts.append(within(value(row, name), limit, FIELD_CLOSE))
        table.append((row["scenario"]["name"], f"{row['point']['n']:,}", str(row["point"]["R"]), *cells))
    return Section(
        heading="If routers grow with the servers, waiting stays",
        claim="R must be fixed: with r = n / R servers per router the system has another limit, the mean "
        "field, in which customers wait (Van Houdt 2024 for equal servers).",
        setting="r = 10; half of the servers at rate 1 and half at rate 2, without limits or with buffers 3 "
        "and 1; and equal servers; 8 replications, each after 200 service times of the slowest servers, "
        "which is long for a router of ten servers.",
        header=("system", "n", "R", "P(wait)", "limit", "P(block)", "limit", "response", "limit"),
        table=table,
        reproduced=all_hold(verdicts),
        verdict=f"Criterion: at the largest n all intervals are within {FIELD_CLOSE:.0%} of the mean field.",
    )
