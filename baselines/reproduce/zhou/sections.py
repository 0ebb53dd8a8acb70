"""The sections of the page of `zhou`, made from its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from baselines.reproduce.common.criteria import all_hold, verdict_word
from baselines.reproduce.common.heavy_traffic import (
    FIT,
    METHOD,
    REPLICATIONS,
    TOLERANCE,
    contains,
    exact_section,
    extrapolate,
    is_one,
    joint_level,
    select,
)
from baselines.reproduce.common.study import Row, Section, value
from pull_env.reporting.describe import plus_minus
from pull_env.simulation.statistics import Estimate

CONSTANT = {"r = 2": 2, "r = 4": 4, "r = 8": 8}
GROWING = ("r = 1.5 log x", "r = x^0.5")  # in terms of which E[N] grows
POLYNOMIAL = ("r = x^0.5", "r = x", "r = x^1.5")
Key = tuple[int, str]  # n and rule
Limits = Mapping[Key, Estimate]

GROWS = "Where r grows, the last term is c r (1 - rho) instead, as all queues are filled up to about r."
CRITERION = (
    f"Criterion: optimal if the interval of the fitted limit, jointly at 95 %, is within {TOLERANCE} of 1; "
    "not optimal if it is above; else undecided: it is wider, or below 1, which no policy reaches, so that "
    "the curve does not fit."
)


def sections(rows: Sequence[Row]) -> list[Section]:
    """Return the page."""
    return [_exact(rows), _idle_queue(rows), _constant(rows), _logarithmic(rows), _polynomial(rows)]


def layer_limit(servers: int, threshold: int) -> float:
    """Return the limit of (1 - rho) E[N] at a constant threshold.

    The limit of JIQ, r = 1, is the paper's; the others are derived here.

    While queue i is below r and the others are long, it gets all n customers per service time: it holds k < r
    in proportion to n^k. So of b = 1 + n + ... + n^(r-1) time units in which the others miss their arrivals
    it idles in one. In the diffusion limit its idling thus pushes queue i by (n - 1) b and the others by -b
    each, beside the idle service itself; that Q1^2 and Q1 Q2 have no drift gives n (1 + b) / (1 + n b).
    r = 1 gives 2n / (n + 1).
    """
    b = sum(servers**k for k in range(threshold))
    return float(servers * (1 + b) / (1 + servers * b))


def sizes(rows: Sequence[Row]) -> list[int]:
    """Return each n."""
    return sorted({row["point"]["n"] for row in rows})


def limits(rows: Sequence[Row], rules: Sequence[str]) -> dict[Key, Estimate]:
    """Return (1 - rho) E[N] of rules at each n, extrapolated to rho = 1."""
    fits = {}
    for n in sizes(rows):
        for rule in rules:
            of_rule = select(rows, n=n, rule=rule)
            y = [row["point"]["threshold"] if rule in GROWING else None for row in of_rule]
            loads = [row["point"]["load"] for row in of_rule]
            fits[n, rule] = extrapolate(
                [(a, b, value(c, "scaled")) for a, b, c in zip(loads, y, of_rule, strict=True)]
            )
    return fits


def _setting(rows: Sequence[Row]) -> str:
    """Return how the rows were made."""
    loads = sorted({row["point"]["load"] for row in rows})
    last = select(rows, load=loads[-1])[0]["run"]
    return (
        f"n = {', '.join(map(str, sizes(rows)))} servers of rate 1 without limits, R = 1 router; loads "
        f"{', '.join(f'{load:g}' for load in loads)}, each on its own seed. {REPLICATIONS} replications; at "
        f"load {loads[-1]:g} {last['customers']:,} customers in all, and a warm-up of {last['warmup']:,} in "
        "each. A warm-up is ten relaxation times of a pooled server, rho / (1 - sqrt rho)^2 customers "
        "each; where queues are nearly independent (random, r = x and above) it is five times those "
        f"of a single server, n times longer. {METHOD} x = 1 / (1 - rho)."
    )


def _exact(rows: Sequence[Row]) -> Section:
    """Compare with exact values."""
    return exact_section(
        rows,
        {"n": "n", "policy": "rule", "load": "load"},
        "At n = 2 JIQ has E[N] = 2 rho (1 + rho) / ((1 - rho) (1 + 2 rho)), and the Markov chain of the "
        "others can be solved as far as its states allow; random routing makes n queues M/M/1.",
        _setting(rows),
    )


def _by_load(
    rows: Sequence[Row], fits: Limits, theory: Callable[[int, str], str]
) -> tuple[list[str], list[list[str]]]:
    """Return header and cells: (1 - rho) E[N] by load, its limit, theory."""
    loads = sorted({row["point"]["load"] for row in rows})
    table = []
    for (n, rule), fitted in fits.items():
        cells = {
            row["point"]["load"]: plus_minus(value(row, "scaled")) for row in select(rows, n=n, rule=rule)
        }
        table.append(
            [str(n), rule, *(cells.get(load, "") for load in loads), plus_minus(fitted), theory(n, rule)]
        )
    return ["n", "policy", *(f"rho = {load:g}" for load in loads), "limit, fitted", "limit, theory"], table


def _idle_queue(rows: Sequence[Row]) -> Section:
    """Decide whether JIQ lies strictly between the optimum and random routing."""
    fits = limits(rows, ["JIQ"])
    level = joint_level(len(fits))
    header, table = _by_load(rows, fits, lambda n, _: f"{layer_limit(n, 1):.6f}")
    met = all_hold(contains(mine, layer_limit(n, 1), level) for (n, _), mine in fits.items())
    apart = [_strictly_between(mine, n, level) for (n, _), mine in fits.items()]
    return Section(
        "JIQ lies strictly between the optimum and random routing",
        "(1 - rho) E[N] of JIQ has a limit above 1 and below n: with equal servers and exponential service "
        "it is 2n / (n + 1).",
        f"As above. {FIT}",
        header,
        table,
        all_hold([met, *apart]),
        "Criterion: the intervals of the fitted limits, jointly at 95 %, hold 2n / (n + 1) "
        f"({verdict_word(met)}), and lie above 1 and below n ({', '.join(map(verdict_word, apart))}).",
    )


def _strictly_between(mine: Estimate, n: int, level: float) -> bool | None:
    """Return whether an interval is between 1 and n; None: it crosses an end."""
    low, high = mine.interval(level)
    return True if low > 1 and high < n else False if high < 1 or low > n else None


def _constant(rows: Sequence[Row]) -> Section:
    """Decide whether constant thresholds miss the optimum."""
    fits = limits(rows, list(CONSTANT))
    level = joint_level(len(fits))
    derived = {(n, rule): layer_limit(n, CONSTANT[rule]) for n, rule in fits}
    header, table = _by_load(rows, fits, lambda n, rule: f"{derived[n, rule]:.6f}")
    ends = {key: mine.interval(level) for key, mine in fits.items()}
    above = [key for key, (low, _) in ends.items() if low > 1]
    against = [key for key, (_, high) in ends.items() if high < derived[key]]
    left = [key for key in ends if key not in above and key not in against]
    agree = [contains(mine, derived[key], level) for key, mine in fits.items()]
    gaps = [abs(mine.mean - derived[key]) for key, mine in fits.items() if math.isfinite(mine.mean)]
    everywhere = {n for n, _ in above} == set(sizes(rows))
    return Section(
        "No constant threshold is optimal",
        "For every constant r the limit of (1 - rho) E[N] is above 1. How far is not in the paper, but "
        "derived here, without proof: it is n (1 + b) / (1 + n b) with b = 1 + n + ... + n^(r-1), so that "
        "the excess falls like n^-r.",
        f"As above. {FIT}",
        header,
        table,
        False if against else True if everywhere else None,
        "Criterion: the intervals of the fitted limits, jointly at 95 %. At each n one must lie above 1, "
        f"and none below the derived limit. Above 1, so not optimal: {_listed(above)}. Below the derived "
        f"limit: {_listed(against)}. Undecided, as the excess is too small for these runs or nothing is "
        f"claimed: {_listed(left)}. {agree.count(True)} of {len(agree)} hold the derived limit; the largest "
        f"distance of a fitted limit from it is {max(gaps, default=math.nan):.3f}.",
    )


def _listed(keys: Sequence[Key]) -> str:
    """Return points in words."""
    return ", ".join(f"{rule} at n = {n}" for n, rule in keys) or "none"


def _decisions(fits: Limits, decided: Mapping[Key, bool | None]) -> str:
    """Return decisions in words, each with its number."""
    words = {True: "optimal", False: "not optimal", None: "undecided"}
    return "; ".join(
        f"{rule} at n = {n}: {plus_minus(fits[n, rule])}, {words[x]}" for (n, rule), x in decided.items()
    )


def _logarithmic(rows: Sequence[Row]) -> Section:
    """Decide whether a logarithmic threshold is optimal."""
    fits = limits(rows, ["JSQ", "r = 1.5 log x"])
    header, table = _by_load(rows, fits, lambda n, rule: "1")
    decided = {key: is_one(mine, joint_level(len(fits))) for key, mine in fits.items()}
    return Section(
        "A logarithmic threshold is optimal",
        "(1 - rho) E[N] -> 1 where r grows like the logarithm of the mean number of customers; so it does "
        "for JSQ.",
        "As above; r = ceil(1.5 log x): as 1.5 > 1 / log n, what a constant r would lose vanishes faster "
        f"than 1 - rho. {FIT} {GROWS}",
        header,
        table,
        all_hold(decided.values()),
        f"{CRITERION} {_decisions(fits, decided)}.",
    )


def _polynomial(rows: Sequence[Row]) -> Section:
    """Decide whether thresholds that grow like E[N], or faster, are too large."""
    fits = limits(rows, [*POLYNOMIAL, "random"])
    level = joint_level(len(fits))
    header, table = _by_load(rows, fits, lambda n, rule: str(n) if rule in ("r = x^1.5", "random") else "")
    decided = {(n, rule): is_one(mine, level) for (n, rule), mine in fits.items() if rule in POLYNOMIAL}
    large = [None if x is None else not x for (_, rule), x in decided.items() if rule != "r = x^0.5"]
    highest = max(row["point"]["load"] for row in rows if row["point"]["rule"] == "random")
    alike = all_hold(contains(mine, n, level) for (n, rule), mine in fits.items() if rule == "r = x^1.5")
    return Section(
        "A threshold that grows like a polynomial is too large",
        "The threshold must grow slower than a polynomial of the mean number of customers. Where it "
        "outgrows that number nearly all servers are below it, and routing is random.",
        "As above, r = ceil(x^a) with a = 1/2, 1 and 3/2; the last and random routing up to load "
        f"{highest:g}, as their queues relax slowly. {FIT} {GROWS}",
        header,
        table,
        all_hold(large),
        f"{CRITERION} {_decisions(fits, decided)}. The claim is tested where r grows like the number of "
        "customers or faster, a = 1 and a = 3/2. Whether a = 3/2 has the limit n of random routing: "
        f"{verdict_word(alike)}. No verdict depends on a = 1/2: it adds about n r (1 - rho), of order (1 - "
        "rho)^(1/2), which must vanish, but slowly.",
    )
