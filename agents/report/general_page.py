"""The part of the page on the general router: a text that depends on the rows of its exam alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agents.report.comparison import Row, cell, compared
from agents.report.tables import between, provenance, table
from pull_env.simulation.statistics import Estimate, estimate

MOST_ABOVE, LEAST_BELOW = 3.0, -15.0  # % of the cost of tuned policies, and of the best single policy
RIVALS = ("tuned", "single", "pandora", "pull-weighted", "balanced(2)", "probe-until-idle(8)")

HEAD = """## The general router

One set of weights for all systems ([`general/router.py`](general/router.py)): a planner that reads what a
scenario declares picks the pull protocol of the servers and what a router does without a message; a player
adds what the router sees. Trained by `python -m agents generalise` on systems drawn at random
([`general/random_systems.py`](general/random_systems.py)): 20 to 2000 servers, 1 to 4 pools, speeds up to
1:10, 1 to 50 routers, loads .5 to .97, prices of a message .005 to .5, a third of them changing over time.
Scored by `python -m agents benchmark` on {count} others, each time beside a policy tuned for that system
alone, and beside `{single}`, the best single policy of the package on {picking} training systems.
"""
NOTE = """Systems: n servers in J pools, R routers, load, price m of a message. Costs as above; differences of
the general router in % of the other's cost, paired, with intervals of 95 % over {replications} replications.
{run} customers a policy and system.
"""


FRONT = """Over prices of a message (numbers along the line), which the general router heeds without being
trained or tuned anew:

![Waiting against messages, over prices of a message](results/front.png)
"""
TRIED = """What was tried besides. The player searched over all 196 preferences at once: 37 generations,
nothing that validation preferred. Without a player, the planner alone: about 1 % dearer. Without
announcements that are never withdrawn among the plans the best plan of a system is 0.15 % dearer on
average, without any announcement 0.04 %, without those to the poorer of two 0.5 % (210 systems). A
memory of 4, 16 or 32 servers a pool: within 0.1 %. The first exam found the router unstable on one
of its systems, as it preferred a step of the fastest pool to messages of servers nine times slower:
messages come first since, it was trained again, and all was measured anew on the same systems.
Outside what it was trained on it is weakest where it lacks the plan: on `slow-news` `tuned` lets
servers with two places announce themselves to the poorer of two.
"""


def general_section(rows: Sequence[Row]) -> str:
    """Return the section; nothing if there are no rows of a general router."""
    exam = by_system(rows, "exam")
    if not any("general" in found for found in exam):
        return ""
    picking = {found["scenario"]["sha256"] for found in rows if found["part"] == "picking"}
    single = exam[0]["single"]["policy"]["name"]
    measured = [found for system in exam for found in system.values()]
    run = between({found["run"]["customers"] for found in measured})
    replications = between({found["run"]["replications"] for found in measured})
    parts = [
        HEAD.format(count=len(exam), single=single, picking=len(picking)),
        verdicts(exam, single),
        means_table(exam),
        NOTE.format(replications=replications, run=run),
        systems_table(exam),
        "On the presets, none of which it was trained on:\n",
        presets_table(by_system(rows, "preset")),
        FRONT,
        TRIED,
        provenance(measured),
    ]
    return "\n".join(part for part in parts if part)


def by_system(rows: Sequence[Row], part: str) -> list[dict[str, Row]]:
    """Return the rows of a part by role, a table for each system."""
    systems: dict[str, dict[str, Row]] = {}
    for found in rows:
        if found["part"] == part:
            systems.setdefault(found["scenario"]["sha256"], {})[found["role"]] = found
    return list(systems.values())


def share_above(exam: Sequence[dict[str, Row]], rival: str) -> Estimate:
    """Return the mean over systems of what the general router costs more, in % of a rival's cost there.

    The interval is over the systems. Those where one of both is unstable are left out.
    """
    return estimate([100 * (ratio(system, "general", rival) - 1) for system in stable(exam, rival)])


def stable(exam: Sequence[dict[str, Row]], rival: str) -> list[dict[str, Row]]:
    """Return the systems on which both are stable."""
    return [system for system in exam if system["general"]["stable"] and system[rival]["stable"]]


def total_above(exam: Sequence[dict[str, Row]], rival: str) -> Estimate:
    """Return what the mean cost over systems is above a rival's, in %; the interval is over replications."""
    both = stable(exam, rival)
    own, other = (
        np.array([system[role]["samples"]["cost"] for system in both]) for role in ("general", rival)
    )
    theirs = other.mean()
    return estimate((own.mean(axis=0) - other.mean(axis=0)) * (100 / theirs))


def verdicts(exam: Sequence[dict[str, Row]], single: str) -> str:
    """Return whether the aims are met, a line each."""
    lost = [system["general"] for system in exam if not system["general"]["stable"]]
    lines = [f"- **unstable** on {len(lost)} of {len(exam)} systems"] if lost else []
    for rival, name, aim in (
        ("tuned", "`tuned` for each system", MOST_ABOVE),
        ("single", f"`{single}`", LEAST_BELOW),
    ):
        mean, total = share_above(exam, rival), total_above(exam, rival)
        verdict = "met" if total.mean <= aim else "not met"
        lines.append(
            f"- mean cost to that of {name}, aim {aim:+g} %: {percent(total)}, **{verdict}**; "
            f"mean of the differences {percent(mean)}"
        )
    room = float(np.mean([100 * (ratio(system, "tuned", "single") - 1) for system in stable(exam, "single")]))
    lines.append(
        f"- `tuned` itself is {room:+.1f} % from `{single}` on average: what adapts to price and load "
        "without tuning leaves little to be gained, and nothing can be 15 % below it and near `tuned`"
        if room > LEAST_BELOW
        else f"- `tuned` itself is {room:+.1f} % from `{single}` on average"
    )
    return "\n".join(lines) + "\n"


def ratio(system: dict[str, Row], role: str, other: str) -> float:
    """Return a cost by another."""
    own, theirs = (float(np.mean(system[name]["samples"]["cost"])) for name in (role, other))
    return own / theirs


def percent(value: Estimate) -> str:
    """Return an estimate in %, with its interval."""
    return f"{value.mean:+.1f} % ({value.low:+.1f} to {value.high:+.1f})"


def means_table(exam: Sequence[dict[str, Row]]) -> str:
    """Return how the general router stands to its rivals over all systems, and over those that change."""
    still = [system for system in exam if not change_of(system["general"])]
    moving = [system for system in exam if change_of(system["general"])]
    body = []
    for rival in RIVALS:
        unstable = sum(not system[rival]["stable"] for system in exam)
        cells = [percent(share_above(part, rival)) for part in (exam, still, moving)]
        both = stable(exam, rival)
        wins = sum(ratio(system, "general", rival) < 1 for system in both)
        body.append([f"`{rival}`", *cells, f"{wins} of {len(both)}", str(unstable)])
    head = ["to", "all systems", "stationary", "changing", "cheaper on", "the other is unstable on"]
    return table(head, body)


def change_of(found: Row) -> str:
    """Return in a word or two how a system changes over time; nothing if it does not."""
    content = found["scenario"]["content"]
    named = {"arrivals": "bursts", "shares": "hot router", "faults": "failures", "news": "slow news"}
    return ", ".join(word for field, word in named.items() if content.get(field))


def systems_table(exam: Sequence[dict[str, Row]]) -> str:
    """Return a row a system."""
    body = []
    for system in exam:
        content = system["general"]["scenario"]["content"]
        servers = sum(pool["size"] for pool in content["pools"])
        told = [str(servers), str(len(content["pools"])), str(content["routers"]), f"{content['load']:.2f}"]
        told += [f"{content['prices']['message']:.3f}", change_of(system["general"])]
        costs = [compared(system["general"], system[rival]) for rival in ("tuned", "single")]
        body.append([*told, cell(system["general"]), *costs])
    head = ["n", "J", "R", "load", "m", "changes", "general", "to `tuned`", "to the single policy"]
    return "<details><summary>All systems</summary>\n\n" + table(head, body) + "\n</details>\n"


def presets_table(presets: Sequence[dict[str, Row]]) -> str:
    """Return how the general router does on the presets."""
    body = [
        [f"`{system['general']['scenario']['name']}`", cell(system["general"])]
        + [compared(system["general"], system.get(rival)) for rival in ("tuned", "pandora")]
        for system in presets
    ]
    return table(["preset", "general", "to `tuned`", "to `pandora`"], body)
