"""The page on trained routers, agents/README.md: a text that depends on the rows alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.report.comparison import Contest, Row, at_price, cell, compared, contests, cost, difference
from agents.report.general_page import general_section
from agents.report.notes import (
    FLOOR_NOTE,
    HEAD,
    MAIN_NOTE,
    PRICE_NOTE,
    SIGHT_NOTE,
    TRAINING_NOTE,
    TRANSFER_NOTE,
    TRIED_NOTE,
    UNMOVED,
    UNTUNED,
)
from agents.report.tables import provenance, run_line, table, training_table

CHANGING = ("bursty", "hot-spot-moves", "slow-news", "failures", "hot-router")  # or misleading
IN_SIGHT = "in sight"  # the part of rows where routers see all queues for nothing
ALL_IN_SIGHT = ("jsq", "jfsq", "sed", "lwl")
CLASSICAL = ("pull", "jiq", "balanced(2)", "power-of-d(2)")
PRICES = (0.005, 0.05, 0.2, 0.5)
MOST_ABOVE, AIM = 1.0, -8.0  # % of the cost of the tuned policy


def page(rows: Sequence[Row], general: Sequence[Row] = ()) -> str:
    """Return the page that rows give, those of the exam of the general router among them."""
    presets = {name: contest for (name, _), contest in contests(rows, "preset").items()}
    parts = [
        HEAD,
        targets(presets),
        "## Each on its preset\n\n"
        + MAIN_NOTE.format(run=run_line([found for found in rows if found["part"] != "transfer"])),
        main_table(presets),
        "## Where they lose\n",
        losses(presets),
        *(whole_table(name, contest) for name, contest in presets.items()),
        "## What is left\n\n" + FLOOR_NOTE,
        floor_table(presets),
        *in_sight([*contests(rows, IN_SIGHT).values()]),
        "## Transfer\n\n" + TRANSFER_NOTE.format(run=run_line([r for r in rows if r["part"] == "transfer"])),
        transfer_table(contests(rows, "transfer")),
        "## Prices\n\n" + PRICE_NOTE,
        price_table(presets, contests(rows, "price")),
        "## How they were trained\n\n" + TRAINING_NOTE,
        training_table(presets | {name: contest for (name, _), contest in contests(rows, IN_SIGHT).items()}),
        "## What was tried besides\n\n" + TRIED_NOTE,
        provenance(rows),
        general_section(general),
    ]
    return "\n".join(part for part in parts if part)


def targets(presets: dict[str, Contest]) -> str:
    """Return whether the aims are met, one line each, with how far those are that are not."""
    rivals = {name: "tuned" if contest.named("tuned") else "start" for name, contest in presets.items()}
    gaps = {name: contest.against(rivals[name]) for name, contest in presets.items()}
    still = {name: gap for name, gap in gaps.items() if name not in CHANGING and gap}
    moving = {name: gap for name, gap in gaps.items() if name in CHANGING and gap}
    near = [name for name, gap in still.items() if gap.mean <= MOST_ABOVE]
    below = [name for name, gap in moving.items() if gap.verdict == "wins"]
    far = [name for name, gap in moving.items() if gap.mean <= AIM]
    beaten = [
        (name, rival)
        for name, contest in presets.items()
        for rival in CLASSICAL
        if contest.named(rival) and not wins(contest, rival)
    ]
    began = {name: contest.against("start") for name, contest in presets.items()}
    unmoved = [name for name, gap in began.items() if gap is not None and gap.verdict != "wins"]
    untuned = [name for name, rival in rivals.items() if rival == "start"]
    lines = [
        f"- stationary presets, at most {MOST_ABOVE:g} % above `tuned`: {len(near)} of {len(still)}"
        + _listed([name for name in still if name not in near], "not on "),
        f"- presets that change or mislead, below `tuned` with an interval that excludes zero: "
        f"{len(below)} of {len(moving)}"
        + _listed([name for name in moving if name not in below], "not on ")
        + f"; by {-AIM:g} % or more: {len(far)}",
        f"- cheaper than {', '.join(f'`{name}`' for name in CLASSICAL)}, by intervals that exclude zero: "
        + ("everywhere" if not beaten else "not " + ", ".join(f"`{r}` on {n}" for n, r in beaten)),
        *([UNMOVED.format(names=", ".join(unmoved))] if unmoved else []),
        *([UNTUNED.format(names=", ".join(untuned))] if untuned else []),
    ]
    return "\n".join(lines) + "\n"


def wins(contest: Contest, rival: str) -> bool:
    """Return whether the router is cheaper than a rival, or stable where the rival is not."""
    other = contest.named(rival)
    if other is None or not contest.learned["stable"]:
        return False
    gap = difference(contest.learned, other)
    return gap is None or gap.verdict == "wins"


def _listed(names: Sequence[str], before: str) -> str:
    return f" ({before}{', '.join(names)})" if names else ""


def main_table(presets: dict[str, Contest]) -> str:
    """Return the table of all presets: what the router costs, and its differences to the main rivals."""
    rivals = ("tuned", "start", *CLASSICAL)
    body = []
    for name, contest in presets.items():
        best = contest.best_baseline
        cells = [compared(contest.learned, contest.named(rival)) for rival in rivals]
        against = f"{compared(contest.learned, best)} `{best['policy']['name']}`"
        body.append([f"`{name}`", cell(contest.learned), cells[0], cells[1], against, *cells[2:]])
    head = ["preset", "learned", "to `tuned`", "to its start", "to the best baseline"]
    return table([*head, *(f"to `{rival}`" for rival in CLASSICAL)], body)


def losses(presets: dict[str, Contest]) -> str:
    """Return a line for each preset where something is cheaper than the router, by an interval."""
    lines = []
    for name, contest in presets.items():
        others = [found for found in contest.rows if found["role"] != "learned"]
        gaps = [(found, difference(contest.learned, found)) for found in others]
        lost = [f"`{named(found)}` {gap}" for found, gap in gaps if gap and gap.verdict == "loses"]
        if lost:
            lines.append(f"- `{name}`: dearer than {', '.join(lost)}")
    return (
        "\n".join(lines or ["Nowhere, by an interval that excludes zero, to any policy of the tables."])
        + "\n"
    )


def floor_table(presets: dict[str, Contest]) -> str:
    """Return how far the router and its rival are above one that sees everything for nothing."""
    body = []
    for name, contest in presets.items():
        known = [contest.named(policy) for policy in ALL_IN_SIGHT]
        free = [at_price(found, 0.0) for found in known if found is not None and found["stable"]]
        if free:
            least = min(free, key=lambda found: sum(found["samples"]["cost"]))
            rival = contest.named("tuned") or contest.named("start")
            above = [cell(contest.learned), "-" if rival is None else cell(rival)]
            body.append([f"`{name}`", *above, f"{cell(least)} `{named(least)}`"])
    return table(["preset", "learned", "`tuned`, or the start", "all queues in sight, for nothing"], body)


def in_sight(found: Sequence[Contest]) -> list[str]:
    """Return the section on routers that see all queues, beside the optimum; nothing if there are none."""
    body = []
    for contest in found:
        best = next(row for row in contest.rows if row["role"] == "optimum")
        for row in sorted(contest.rows, key=lambda row: sum(at_price(row, 0.0)["samples"]["cost"])):
            free = at_price(row, 0.0)
            told = ["-", "-"]
            if "exact" in row:
                above = 100 * (row["exact"] / best["exact"] - 1)
                told = [f"{row['exact']:.5f}", f"{above:+.2f} %"]
            gap = "" if row is best else str(difference(free, at_price(best, 0.0)))
            preset = contest.learned["scenario"]["name"]
            body.append([f"`{preset}`", f"`{named(row)}`", *told, cell(free), gap])
    head = ["preset", "policy", "exact cost", "above the optimum", "simulated cost", "to the optimum"]
    return ["## All queues in sight\n\n" + SIGHT_NOTE, table(head, body)] if found else []


def named(found: Row) -> str:
    """Return what a table calls a row's policy."""
    return str(found["policy"]["name"] if found["role"] == "baseline" else found["role"])


def whole_table(name: str, contest: Contest) -> str:
    """Return the table of all policies on a preset, the cheapest first, unstable ones last."""

    def place(found: Row) -> float:
        value = cost(found)
        return math.inf if value is None else value.mean

    body = []
    for found in sorted(contest.rows, key=place):
        own = found is contest.learned
        gap = None if own else difference(contest.learned, found)
        verdict = "" if own else "wins" if gap is None else gap.verdict
        waits, messages = (found["measures"][kind] for kind in ("wait", "messages"))
        told = ["-", "-"]
        if found["stable"]:
            told = [f"{waits['mean']:.3f}", f"{messages['total']['mean']:.2f}"]
        title = f"**{named(found)}**" if own else f"`{named(found)}`"
        body.append([title, cell(found), *told, "" if own else compared(contest.learned, found), verdict])
    head = ["policy", "cost", "wait", "messages", "learned to it", "learned"]
    return (
        f"<details><summary><code>{name}</code>: all policies</summary>\n\n{table(head, body)}\n</details>\n"
    )


def transfer_table(found: dict[tuple[str, str], Contest]) -> str:
    """Return how routers do on systems that they were not trained on."""
    body = []
    for (name, system), contest in found.items():
        cells = [compared(contest.learned, contest.named("tuned") or contest.named("start"))]
        others = [row for row in contest.rows if row["role"] == "baseline"]
        cells += [compared(contest.learned, row) for row in others]
        body.append([f"`{name}`", system, cell(contest.learned), *cells])
    rivals = [row["policy"]["name"] for row in others] if found else []
    head = ["trained on", "scored at", "learned", "to `tuned`, or its start"]
    return table([*head, *(f"to `{rival}`" for rival in rivals)], body)


def price_table(presets: dict[str, Contest], simulated: dict[tuple[str, str], Contest]) -> str:
    """Return the differences to `tuned`, or the start, and to the best baseline over prices of a message."""
    body = []
    for name, contest in presets.items():
        there = [simulated.get((name, price_name(price))) for price in PRICES]
        priced = [
            contest.priced(price, () if found is None else found.rows)
            for price, found in zip(PRICES, there, strict=True)
        ]
        rival = "tuned" if contest.named("tuned") else "start"
        body.append([f"`{name}`", f"`{rival}`", *(compared(c.learned, c.named(rival)) for c in priced)])
        best = [(c, c.best_baseline) for c in priced]
        cells = [f"{compared(c.learned, b)} `{b['policy']['name']}`" for c, b in best]
        body.append(["", "best baseline", *cells])
    return table(["preset", "learned to", *(f"price {price:g}" for price in PRICES)], body)


def price_name(price: float) -> str:
    """Return what rows call a system with another price of a message."""
    return f"price {price:g}"
