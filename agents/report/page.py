"""The page on trained routers: a text that depends on the rows alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.general.figure import Row
from agents.report.comparison import (
    Comparison,
    at_price,
    comparisons,
    cost,
    cost_cell,
    difference,
    difference_cell,
)
from agents.report.general_page import general_section
from agents.report.tables import provenance, run_line, table, text, training_table

CHANGING = ("bursty", "hot-spot-moves", "slow-news", "failures", "hot-router")  # or misleading
FULL_INFORMATION = "in sight"  # the part of rows where routers see all queues for free
FULL_INFORMATION_POLICIES = ("jsq", "jfsq", "sed", "lwl")
CLASSICAL = ("pull", "jiq", "balanced(2)", "power-of-d(2)")
PRICES = (0.005, 0.05, 0.2, 0.5)
MOST_ABOVE, AIM = 1.0, -8.0  # % of the cost of the tuned policy

Presets = dict[str, Comparison]


def page(rows: Sequence[Row], general: Sequence[Row] = ()) -> str:
    """Return the page of these rows, and of those of the general router."""
    presets = {name: each for (name, _), each in comparisons(rows, "preset").items()}
    full_information = comparisons(rows, FULL_INFORMATION)
    by_name = presets | {name: each for (name, _), each in full_information.items()}
    parts = [
        text("head"),
        targets(presets),
        text("presets", run=run_line([row for row in rows if row["part"] != "transfer"])),
        main_table(presets),
        "## Where they lose\n",
        losses(presets),
        *(whole_table(name, comparison) for name, comparison in presets.items()),
        text("full_information_costs"),
        full_information_costs(presets),
        *full_information_section([*full_information.values()]),
        text("transfer", run=run_line([row for row in rows if row["part"] == "transfer"])),
        transfer_table(comparisons(rows, "transfer")),
        text("prices"),
        price_table(presets, comparisons(rows, "price")),
        text("training"),
        training_table(by_name),
        text("tried"),
        provenance(rows),
        general_section(general),
    ]
    return "\n".join(part for part in parts if part)


def targets(presets: Presets) -> str:
    """Return whether the aims are met, one line each, and where not."""
    gaps = {name: each.against(each.rival) for name, each in presets.items()}
    stationary = {name: gap for name, gap in gaps.items() if name not in CHANGING and gap}
    changing = {name: gap for name, gap in gaps.items() if name in CHANGING and gap}
    not_near = [name for name, gap in stationary.items() if gap.mean > MOST_ABOVE]
    not_below = [name for name, gap in changing.items() if gap.verdict != "wins"]
    far = [name for name, gap in changing.items() if gap.mean <= AIM]
    not_beaten = [
        f"`{rival}` on {name}"
        for name, each in presets.items()
        for rival in CLASSICAL
        if each.row_of(rival) and not wins(each, rival)
    ]
    from_start = {name: each.against("start") for name, each in presets.items()}
    unmoved = [name for name, gap in from_start.items() if gap is not None and gap.verdict != "wins"]
    untuned = [name for name, each in presets.items() if each.rival == "start"]
    lines = [
        f"- stationary presets, at most {MOST_ABOVE:g} % above `tuned`: "
        f"{len(stationary) - len(not_near)} of {len(stationary)}" + _not_on(not_near),
        f"- presets that change or mislead, below `tuned` with an interval that excludes zero: "
        f"{len(changing) - len(not_below)} of {len(changing)}"
        + _not_on(not_below)
        + f"; by {-AIM:g} % or more: {len(far)}",
        f"- cheaper than {', '.join(f'`{name}`' for name in CLASSICAL)}, by intervals that exclude zero: "
        + ("not " + ", ".join(not_beaten) if not_beaten else "everywhere"),
        *([text("not_below_start", names=", ".join(unmoved)).rstrip()] if unmoved else []),
        *([text("not_tuned", names=", ".join(untuned)).rstrip()] if untuned else []),
    ]
    return "\n".join(lines) + "\n"


def wins(comparison: Comparison, rival: str) -> bool:
    """Return whether the router is cheaper than a rival, or the rival is unstable."""
    other = comparison.row_of(rival)
    if other is None or not comparison.learned["stable"]:
        return False
    gap = difference(comparison.learned, other)
    return gap is None or gap.verdict == "wins"


def _not_on(names: Sequence[str]) -> str:
    return f" (not on {', '.join(names)})" if names else ""


def main_table(presets: Presets) -> str:
    """Return the costs of routers on their presets, and the main differences."""
    rivals = ("tuned", "start", *CLASSICAL)
    body = []
    for name, each in presets.items():
        cells = [difference_cell(each.learned, each.row_of(rival)) for rival in rivals]
        best = best_baseline_cell(each)
        body.append([f"`{name}`", cost_cell(each.learned), cells[0], cells[1], best, *cells[2:]])
    head = ["preset", "learned", "vs. `tuned`", "vs. its start", "vs. the best baseline"]
    return table([*head, *(f"vs. `{rival}`" for rival in CLASSICAL)], body)


def best_baseline_cell(comparison: Comparison) -> str:
    """Return the difference to the best baseline, and its name, as a cell of a table."""
    best = comparison.best_baseline
    return f"{difference_cell(comparison.learned, best)} `{best['policy']['name']}`"


def losses(presets: Presets) -> str:
    """Return a line for each preset where something is cheaper, by an interval."""
    lines = []
    for name, each in presets.items():
        others = [row for row in each.rows if row["role"] != "learned"]
        gaps = [(row, difference(each.learned, row)) for row in others]
        lost = [f"`{label(row)}` {gap}" for row, gap in gaps if gap and gap.verdict == "loses"]
        if lost:
            lines.append(f"- `{name}`: costs more than {', '.join(lost)}")
    return (
        "\n".join(lines or ["Nowhere, by an interval that excludes zero, to any policy of the tables."])
        + "\n"
    )


def full_information_costs(presets: Presets) -> str:
    """Return the costs of the router, its rival, and the best policy that sees all."""
    body = []
    for name, each in presets.items():
        known = [each.row_of(policy) for policy in FULL_INFORMATION_POLICIES]
        free = [at_price(row, 0.0) for row in known if row is not None and row["stable"]]
        if free:
            least = min(free, key=lambda row: sum(row["samples"]["cost"]))
            rival = each.row_of(each.rival)
            costs = [cost_cell(each.learned), "-" if rival is None else cost_cell(rival)]
            body.append([f"`{name}`", *costs, f"{cost_cell(least)} `{label(least)}`"])
    return table(["preset", "learned", "`tuned`, or the start", "full information for free"], body)


def full_information_section(routers: Sequence[Comparison]) -> list[str]:
    """Return the section on routers with full information; nothing if there are none."""
    body = []
    for each in routers:
        preset = each.learned["scenario"]["name"]
        best = next(row for row in each.rows if row["role"] == "optimum")
        for row in sorted(each.rows, key=lambda row: sum(at_price(row, 0.0)["samples"]["cost"])):
            free, exact = at_price(row, 0.0), ["-", "-"]
            if "exact" in row:
                above = 100 * (row["exact"] / best["exact"] - 1)
                exact = [f"{row['exact']:.5f}", f"{above:+.2f} %"]
            gap = "" if row is best else str(difference(free, at_price(best, 0.0)))
            body.append([f"`{preset}`", f"`{label(row)}`", *exact, cost_cell(free), gap])
    head = ["preset", "policy", "exact cost", "above the optimum", "simulated cost", "vs. the optimum"]
    return [text("full_information"), table(head, body)] if routers else []


def label(row: Row) -> str:
    """Return the name of a row's policy in tables."""
    return str(row["policy"]["name"] if row["role"] == "baseline" else row["role"])


def whole_table(name: str, comparison: Comparison) -> str:
    """Return the table of all policies on a preset, the cheapest first."""

    def order(row: Row) -> float:
        value = cost(row)
        return math.inf if value is None else value.mean

    body = []
    for row in sorted(comparison.rows, key=order):
        own = row is comparison.learned
        gap = None if own else difference(comparison.learned, row)
        verdict = "" if own else "wins" if gap is None else gap.verdict
        waits, messages = (row["measures"][kind] for kind in ("wait", "messages"))
        means = ["-", "-"]
        if row["stable"]:
            means = [f"{waits['mean']:.3f}", f"{messages['total']['mean']:.2f}"]
        title = f"**{label(row)}**" if own else f"`{label(row)}`"
        cell = "" if own else difference_cell(comparison.learned, row)
        body.append([title, cost_cell(row), *means, cell, verdict])
    head = ["policy", "cost", "wait", "messages", "learned vs. it", "learned"]
    title = f"<details><summary><code>{name}</code>: all policies</summary>"
    return f"{title}\n\n{table(head, body)}\n</details>\n"


def transfer_table(transfers: dict[tuple[str, str], Comparison]) -> str:
    """Return the costs of routers on systems that they were not trained on."""
    body, rivals = [], []
    for (name, system), each in transfers.items():
        others = [row for row in each.rows if row["role"] == "baseline"]
        rivals = [row["policy"]["name"] for row in others]
        cells = [difference_cell(each.learned, row) for row in (each.row_of(each.rival), *others)]
        body.append([f"`{name}`", system, cost_cell(each.learned), *cells])
    head = ["trained on", "scored at", "learned", "vs. `tuned`, or its start"]
    return table([*head, *(f"vs. `{rival}`" for rival in rivals)], body)


def price_table(presets: Presets, simulated: dict[tuple[str, str], Comparison]) -> str:
    """Return differences to rival and best baseline, over prices of a message."""
    body = []
    for name, each in presets.items():
        priced = []
        for price in PRICES:
            there = simulated.get((name, price_name(price)))
            priced.append(each.at_price(price, () if there is None else there.rows))
        cells = [difference_cell(at.learned, at.row_of(each.rival)) for at in priced]
        body.append([f"`{name}`", f"`{each.rival}`", *cells])
        body.append(["", "best baseline", *(best_baseline_cell(at) for at in priced)])
    return table(["preset", "learned vs.", *(f"price {price:g}" for price in PRICES)], body)


def price_name(price: float) -> str:
    """Return the name in rows of a system with another price of a message."""
    return f"price {price:g}"
