"""The figure of `chen_ye`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from baselines.reproduce.chen_ye.sections import heavy, systems
from baselines.reproduce.common.drawing import FONT, draw_estimates, draw_line, label_axes, panels
from baselines.reproduce.common.heavy_traffic import REPLICATIONS, select
from baselines.reproduce.common.study import Row, value
from pull_env.reporting.describe import pools_line
from pull_env.scenario.scenario import Scenario

STYLE = {1: 0, 2: 1, 3: 2, 5: 3, 4: 4, 10: 4}  # by c; 4 and 10 are K, never both
CAPTION = (
    "Balanced routing, R = 1 router. Left and middle: K = {pools}; rho tends to 1 to the right, "
    "seeds {first} to {last}, one for each load. Lines: the limit 1; K rho for c = 1, exact; slope 1. "
    "Right: {n:,} servers, half at rate 1 (filled), half at rate 2 (hollow, set off to the right), load "
    "{load:g}, seed {first}; lines: u_k as n grows. {replications} replications, bars are 95 % "
    "intervals."
)
TICKS = (1, 1.5, 2, 3, 5, 7, 10)


def figure(rows: Sequence[Row]) -> Figure:
    """Draw (1 - rho) E[N] and queue spread by 1 - rho, and tails at large n."""
    large = select(rows, experiment="large")
    n = max(row["point"]["n"] for row in large)
    seeds = [row["run"]["seed"] for row in rows]
    load = large[0]["point"]["load"]
    k = max(k for k, _ in systems(rows, 1))
    scenario = Scenario.from_dict(heavy(rows, k, 2)[0]["scenario"]["content"])
    numbers = {"first": min(seeds), "last": max(seeds), "n": n, "load": load, "replications": REPLICATIONS}
    result, axes = panels(1, 3, CAPTION.format(pools=f"{k} servers, {pools_line(scenario)}", **numbers))
    _near_one(
        axes[0],
        rows,
        k,
        "scaled",
        "all customers, in the limit of a pooled server",
        "(1 - rho) E[N], customers",
    )
    _near_one(axes[1], rows, k, "spread", "differences of queues", "E[longest - shortest] / (E[N] / K)")
    x = np.array([1 - row["point"]["load"] for row in heavy(rows, k, 2)])
    axes[0].axhline(1.0, color="0.4", linewidth=1, zorder=1)
    draw_line(axes[0], x.tolist(), (k * (1 - x)).tolist(), STYLE[1])
    axes[0].set_yticks(ticks := [y for y in TICKS if y <= k], [f"{y:g}" for y in ticks])
    axes[0].yaxis.set_minor_locator(NullLocator())
    last = value(heavy(rows, k, 2)[-1], "spread").mean
    axes[1].plot(x, x * (last / x[-1]), ":", color="0.4", linewidth=1, zorder=1)
    _tails(axes[2], [row for row in large if row["point"]["n"] == n])
    for ax in axes:
        ax.legend(fontsize=FONT - 1)
    return result


def _near_one(axes: Axes, rows: Sequence[Row], k: int, name: str, title: str, y: str) -> None:
    """Draw a measure of K servers against 1 - rho, a mark for each c."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    label_axes(axes, title, "1 - rho", y)
    for c in [c for of, c in systems(rows, 1) if of == k]:
        selected = heavy(rows, k, c)
        places = [1 - row["point"]["load"] for row in selected]
        draw_estimates(axes, places, [value(row, name) for row in selected], f"c = {c}", STYLE[c])
    places = [1 - row["point"]["load"] for row in heavy(rows, k, 2)]
    axes.invert_xaxis()
    axes.set_xticks(places, [f"{x:.3g}" for x in places])
    axes.xaxis.set_minor_locator(NullLocator())


def _tails(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the tail of either half, and that of the limit."""
    axes.set_yscale("log")
    label_axes(axes, "share of servers with k customers or more", "k", "u_k")
    for row in sorted(rows, key=lambda row: -row["point"]["c"]):
        c, levels = row["point"]["c"], range(1, row["point"]["levels"] + 1)
        draw_line(axes, list(levels), [row["extra"][f"limit u_{k}"] for k in levels], STYLE[c])
        for j, (label, hollow) in enumerate(((f"c = {c}", False), ("_", True))):
            tail = [value(row, f"pool {j} u_{k}") for k in levels]
            draw_estimates(axes, [k + 0.12 * j for k in levels], tail, label, STYLE[c], hollow)
    axes.set_xlim(0.5, max(row["point"]["levels"] for row in rows) + 0.5)
