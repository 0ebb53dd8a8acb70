"""The sections of the page of `chen_ye`, made from its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from baselines.reproduce.chen_ye.large import large_systems
from baselines.reproduce.common.criteria import above, all_hold, count_verdicts, rises, verdict_word, within
from baselines.reproduce.common.heavy_traffic import (
    FIT,
    METHOD,
    REPLICATIONS,
    SNAPSHOTS,
    TOLERANCE,
    exact_section,
    extrapolate,
    is_one,
    joint_level,
    select,
)
from baselines.reproduce.common.study import Row, Section, value
from pull_env.reporting.describe import plus_minus, pools_line
from pull_env.scenario.scenario import Scenario
from pull_env.simulation.simulate import BATCHES
from pull_env.simulation.statistics import Estimate, from_error

EVEN = 0.01  # tolerance around 1 for the interval of a fitted share
FALL = 0.5  # least measured power of 1 - rho, as a share of that in theory

Key = tuple[int, int]  # K and c


def sections(rows: Sequence[Row]) -> list[Section]:
    """Return the page."""
    near_one = [_exact(rows), _optimal(rows), _pools(rows), _queues(rows)]
    if all("work spread" in row["extra"] for row in select(rows, experiment="heavy")):
        near_one.append(_work(rows))  # rows of version 0.1.0 do not have it
    return [*near_one, *large_systems(rows)]


def heavy(rows: Sequence[Row], k: int, c: int) -> list[Row]:
    """Return the rows of K servers and c draws, by load."""
    return select(rows, experiment="heavy", K=k, c=c)


def systems(rows: Sequence[Row], least: int) -> list[Key]:
    """Return K and c of the rows near load 1, with c from `least`."""
    points = [row["point"] for row in select(rows, experiment="heavy")]
    return sorted({(point["K"], point["c"]) for point in points if point["c"] >= least})


def limits(rows: Sequence[Row], name: str) -> dict[Key, Estimate]:
    """Return a measure extrapolated to rho = 1, for every c from 2."""
    return {
        (k, c): extrapolate([(row["point"]["load"], None, value(row, name)) for row in heavy(rows, k, c)])
        for k, c in systems(rows, 2)
    }


def _setting(rows: Sequence[Row]) -> str:
    """Return how the rows near load 1 were made."""
    selected = select(rows, experiment="heavy")
    loads = sorted({row["point"]["load"] for row in selected})
    run = selected[-1]["run"]
    blind = max(row["point"]["load"] for row in selected if row["point"]["c"] == 1)
    scenarios = {row["point"]["K"]: Scenario.from_dict(row["scenario"]["content"]) for row in selected}
    said = "; ".join(f"K = {k}: {pools_line(scenarios[k])}" for k in sorted(scenarios))
    return (
        f"{said}; no limits, R = 1. Loads {', '.join(f'{load:g}' for load in loads)}, each on its own seed; "
        f"c = 1 up to {blind:g}. {REPLICATIONS} replications; at load {loads[-1]:g} {run['customers']:,} "
        f"customers in all, and a warm-up of {run['warmup']:,} in each. A warm-up is ten relaxation times "
        "of a pooled server, rho / (1 - sqrt rho)^2 customers each, for c from 2 on, and five of the "
        f"slowest server for c = 1, whose queues are independent. {METHOD}"
    )


def _by_load(
    rows: Sequence[Row], name: str, last: Mapping[Key, Sequence[str]], *names: str
) -> tuple[list[str], list[list[str]]]:
    """Return header and cells: a measure by load, and a last column `last`."""
    loads = sorted({row["point"]["load"] for row in select(rows, experiment="heavy")})
    table = []
    for (k, c), said in last.items():
        cells = {row["point"]["load"]: plus_minus(value(row, name)) for row in heavy(rows, k, c)}
        table.append([str(k), str(c), *(cells.get(load, "") for load in loads), *said])
    return ["K", "c", *(f"rho = {load:g}" for load in loads), *names], table


def _exact(rows: Sequence[Row]) -> Section:
    """Compare with exact values."""
    return exact_section(
        select(rows, experiment="heavy"),
        {"K": "K", "c": "c", "load": "load"},
        "c = 1 makes K queues M/M/1 of load rho: (1 - rho) E[N] = K rho. At K = 2 the Markov chain can be "
        "solved, as far as its states allow.",
        _setting(rows),
    )


def _optimal(rows: Sequence[Row]) -> Section:
    """Decide whether every c from 2 on has the limit 1."""
    fits = limits(rows, "scaled")
    level = joint_level(len(fits))
    decided = {key: is_one(mine, level) for key, mine in fits.items()}
    last = {key: (plus_minus(mine), "1", verdict_word(decided[key])) for key, mine in fits.items()}
    header, table = _by_load(rows, "scaled", last, "limit, fitted", "limit, theory", "met")
    return Section(
        "The limit is 1 for every c from 2 on",
        "(1 - rho) E[N] -> 1 for every c >= 2, which is the limit of all servers pooled into one: it does "
        "not depend on c. What c changes is how fast it is approached.",
        f"As above. {FIT}",
        header,
        table,
        all_hold(decided.values()),
        f"Criterion: the interval of the fitted limit, jointly at 95 %, is within {TOLERANCE} of 1; one "
        "above speaks against the claim; a wider one, or one below 1, which no policy reaches, is undecided. "
        f"{count_verdicts(list(decided.values()))}",
    )


def _pools(rows: Sequence[Row]) -> Section:
    """Decide whether slow and fast servers hold as many customers in the limit."""
    fits = limits(rows, "pool 0")
    level = joint_level(len(fits))
    decided = {key: within(_widened(mine, level), 1.0, EVEN) for key, mine in fits.items()}
    last = {key: (plus_minus(mine), "1", verdict_word(decided[key])) for key, mine in fits.items()}
    header, table = _by_load(rows, "pool 0", last, "limit, fitted", "limit, theory", "met")
    return Section(
        "Slow and fast servers hold as many customers",
        "Every queue has the mean E[N] / K in the limit, that of a slow server as well as that of a fast "
        "one.",
        "As above; averages over time. In the table: mean customers at a slow server, in units of E[N] / "
        f"K. {FIT}",
        header,
        table,
        all_hold(decided.values()),
        f"Criterion: the interval of the fitted limit, jointly at 95 %, is within {EVEN} of 1; one "
        "outside speaks against the claim; one that crosses an end is undecided. "
        f"{count_verdicts(list(decided.values()))}",
    )


def _widened(mine: Estimate, level: float) -> Estimate:
    """Return the estimate with its interval of another level."""
    low, high = mine.interval(level)
    return replace(mine, low=low, high=high)


def exponent(rows: Sequence[Row], name: str, k: int, c: int) -> Estimate:
    """Return the power of 1 - rho by which a spread falls at the highest loads."""
    before, last = heavy(rows, k, c)[-2:]
    a, b = value(before, name), value(last, name)
    step = math.log((1 - before["point"]["load"]) / (1 - last["point"]["load"]))
    error = math.hypot(a.error / a.mean, b.error / b.mean) / step
    return from_error(math.log(a.mean / b.mean) / step, error, REPLICATIONS)


def _queues(rows: Sequence[Row]) -> Section:
    """Decide whether the queues are equal at every instant, relative to their mean."""
    return _spread(
        rows,
        "spread",
        1.0,
        "At every instant all queues are as long",
        "In the limit all queues are equal at all times. Their differences stay bounded while their mean "
        "grows, so that the ratio vanishes like 1 - rho. With c = 1 it does not.",
        f"As above; {SNAPSHOTS * BATCHES} snapshots of the queues per replication, before arrivals, which "
        "see time averages. In the table: E[longest - shortest queue] in units of E[N] / K",
    )


def _work(rows: Sequence[Row]) -> Section:
    """Decide whether the work is equal at every instant, relative to its mean."""
    return _spread(
        rows,
        "work spread",
        0.5,
        "At every instant the work is spread evenly",
        "In the limit all servers have as much work before them at all times. Equal queues of E[N] / K "
        "customers differ in work by chance, by the square root of their length; so the ratio vanishes too, "
        "but like (1 - rho)^(1/2). With c = 1 it does not.",
        "As above, the same snapshots. The work of a server is what its customers require until they leave, "
        "in mean requirements: given a queue it is a sum of exponential variables, sampled as such. In the "
        "table: E[most - least work] in units of E[N] / K, which is the mean work in the limit",
    )


def _spread(rows: Sequence[Row], name: str, theory: float, heading: str, claim: str, setting: str) -> Section:
    """Decide whether a spread vanishes, relative to the mean, by a power of 1 - rho."""
    fits = {(k, c): exponent(rows, name, k, c) for k, c in systems(rows, 1)}
    level = joint_level(sum(c > 1 for _, c in fits))
    decided = {}
    for (k, c), power in fits.items():
        if c > 1:
            risen = rises([value(row, name) for row in heavy(rows, k, c)])
            decided[k, c] = False if risen else above(_widened(power, level), FALL * theory)
    last = {
        key: (
            plus_minus(mine),
            "0" if key[1] == 1 else f"{theory:g}",
            verdict_word(decided[key]) if key in decided else "",
        )
        for key, mine in fits.items()
    }
    header, table = _by_load(rows, name, last, "power, last step", "power, theory", "met")
    return Section(
        heading,
        claim,
        f"{setting}, and the power of 1 - rho by which it falls between the two highest loads.",
        header,
        table,
        all_hold(decided.values()),
        "Criterion: for c from 2 on the ratio rises nowhere, and the interval of the power, jointly at 95 "
        f"%, is above {FALL * theory:g}; one below speaks against the claim. "
        f"{count_verdicts(list(decided.values()))}",
    )
