"""The section on the general router: a text that depends on the rows alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agents.general.benchmark import PART
from agents.general.figure import Row
from agents.report.comparison import cost_cell, difference_cell
from agents.report.tables import number_range, provenance, table, text
from pull_env.simulation.statistics import Estimate, estimate

MOST_ABOVE, LEAST_BELOW = 3.0, -15.0  # % of the cost of tuned policies, and of the best single policy
RIVALS = ("tuned", "single", "pandora", "pull-weighted", "balanced(2)", "probe-until-idle(8)")
CHANGES = {"arrivals": "bursts", "shares": "hot router", "faults": "failures", "news": "slow news"}

System = dict[str, Row]  # the rows of a system, by role


def general_section(rows: Sequence[Row]) -> str:
    """Return the section; nothing if there are no rows of a general router."""
    systems = by_system(rows, PART)
    if not any("general" in system for system in systems):
        return ""
    picking = {row["scenario"]["sha256"] for row in rows if row["part"] == "picking"}
    single = systems[0]["single"]["policy"]["name"]
    measured = [row for system in systems for row in system.values()]
    customers, replications = (
        number_range({row["run"][name] for row in measured}) for name in ("customers", "replications")
    )
    parts = [
        text("general", count=len(systems), single=single, picking=len(picking)),
        verdicts(systems, single),
        means_table(systems),
        text("general_systems", replications=replications, run=customers),
        systems_table(systems),
        "On the presets, none of which it was trained on:\n",
        presets_table(by_system(rows, "preset")),
        text("general_prices"),
        text("general_tried"),
        provenance(measured),
    ]
    return "\n".join(part for part in parts if part)


def by_system(rows: Sequence[Row], part: str) -> list[System]:
    """Return the rows of a part by role, for each system."""
    systems: dict[str, System] = {}
    for row in rows:
        if row["part"] == part:
            systems.setdefault(row["scenario"]["sha256"], {})[row["role"]] = row
    return list(systems.values())


def stable(systems: Sequence[System], rival: str) -> list[System]:
    """Return the systems on which both the general router and a rival are stable."""
    return [system for system in systems if system["general"]["stable"] and system[rival]["stable"]]


def mean_difference(systems: Sequence[System], rival: str) -> Estimate:
    """Return the mean over systems of the difference to a rival's cost, in %.

    The interval is over the systems. Those where one of both is unstable are left out.
    """
    return estimate([100 * (ratio(system, "general", rival) - 1) for system in stable(systems, rival)])


def difference_of_means(systems: Sequence[System], rival: str) -> Estimate:
    """Return by how much the mean cost over systems exceeds a rival's, in %.

    The interval is over replications.
    """
    both = stable(systems, rival)
    own, other = (
        np.array([system[role]["samples"]["cost"] for system in both]) for role in ("general", rival)
    )
    return estimate((own.mean(axis=0) - other.mean(axis=0)) * (100 / other.mean()))


def verdicts(systems: Sequence[System], single: str) -> str:
    """Return whether the aims are met, a line each."""
    lost = [system for system in systems if not system["general"]["stable"]]
    lines = [f"- **unstable** on {len(lost)} of {len(systems)} systems"] if lost else []
    for rival, name, aim in (
        ("tuned", "`tuned` for each system", MOST_ABOVE),
        ("single", f"`{single}`", LEAST_BELOW),
    ):
        mean, total = mean_difference(systems, rival), difference_of_means(systems, rival)
        verdict = "met" if total.mean <= aim else "not met"
        lines.append(
            f"- mean cost vs. {name}, aim {aim:+g} %: {percent(total)}, **{verdict}**; "
            f"mean of the differences {percent(mean)}"
        )
    gains = [100 * (ratio(system, "tuned", "single") - 1) for system in stable(systems, "single")]
    gain = float(np.mean(gains))
    line = f"- `tuned` itself is {gain:+.1f} % from `{single}` on average"
    if gain > LEAST_BELOW:
        line += (
            ": a policy that adapts to price and load without tuning leaves little to gain, and nothing can "
            "be 15 % below it and near `tuned`"
        )
    return "\n".join([*lines, line]) + "\n"


def ratio(system: System, role: str, other: str) -> float:
    """Return the ratio of two costs."""
    own, theirs = (float(np.mean(system[name]["samples"]["cost"])) for name in (role, other))
    return own / theirs


def percent(value: Estimate) -> str:
    """Return an estimate in %, with its interval."""
    return f"{value.mean:+.1f} % ({value.low:+.1f} to {value.high:+.1f})"


def means_table(systems: Sequence[System]) -> str:
    """Return differences to rivals over all, stationary and changing systems."""
    stationary = [system for system in systems if not changes(system["general"])]
    changing = [system for system in systems if changes(system["general"])]
    body = []
    for rival in RIVALS:
        unstable = sum(not system[rival]["stable"] for system in systems)
        cells = [percent(mean_difference(part, rival)) for part in (systems, stationary, changing)]
        both = stable(systems, rival)
        wins = sum(ratio(system, "general", rival) < 1 for system in both)
        body.append([f"`{rival}`", *cells, f"{wins} of {len(both)}", str(unstable)])
    head = ["vs.", "all systems", "stationary", "changing", "cheaper on", "the other is unstable on"]
    return table(head, body)


def changes(row: Row) -> str:
    """Return in a word or two how a system changes over time; nothing if it does not."""
    content = row["scenario"]["content"]
    return ", ".join(word for field, word in CHANGES.items() if content.get(field))


def systems_table(systems: Sequence[System]) -> str:
    """Return a line per system."""
    body = []
    for system in systems:
        content = system["general"]["scenario"]["content"]
        servers = sum(pool["size"] for pool in content["pools"])
        cells = [str(servers), str(len(content["pools"])), str(content["routers"]), f"{content['load']:.2f}"]
        cells += [f"{content['prices']['message']:.3f}", changes(system["general"])]
        costs = [difference_cell(system["general"], system[rival]) for rival in ("tuned", "single")]
        body.append([*cells, cost_cell(system["general"]), *costs])
    head = ["n", "J", "R", "load", "m", "changes", "general", "vs. `tuned`", "vs. the single policy"]
    return "<details><summary>All systems</summary>\n\n" + table(head, body) + "\n</details>\n"


def presets_table(presets: Sequence[System]) -> str:
    """Return the costs of the general router on the presets."""
    body = [
        [f"`{system['general']['scenario']['name']}`", cost_cell(system["general"])]
        + [difference_cell(system["general"], system.get(rival)) for rival in ("tuned", "pandora")]
        for system in presets
    ]
    return table(["preset", "general", "vs. `tuned`", "vs. `pandora`"], body)
