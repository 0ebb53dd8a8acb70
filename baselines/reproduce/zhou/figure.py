"""The figure of `zhou`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from baselines.reproduce.common.drawing import FONT, draw_estimates, draw_line, label_axes, panels
from baselines.reproduce.common.heavy_traffic import REPLICATIONS, select
from baselines.reproduce.common.study import Row, value
from baselines.reproduce.zhou.sections import layer_limit, sizes
from pull_env.theory.formulas import jiq_two_servers_mean_number

MARKS = {  # style, and whether hollow
    "JSQ": (0, False),
    "JIQ": (0, True),
    "r = 2": (1, True),
    "r = 4": (2, True),
    "r = 8": (3, True),
    "r = 1.5 log x": (1, False),
    "r = x^0.5": (4, True),
    "r = x": (4, False),
    "r = x^1.5": (3, False),
    "random": (2, False),
}
TICKS = (1, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 7, 10)
CAPTION = (
    "Thresholds r as the load rho tends to 1 (to the right); x = 1 / (1 - rho). n equal servers of rate 1, "
    "R = 1 router, {replications} replications, seeds {first} to {last}, one for each load. Bars are "
    "95 % intervals, lines are theory: 1, which is optimal; JIQ, its limit 2n / (n + 1), at n = 2 "
    "exact; random, exact."
)


def figure(rows: Sequence[Row]) -> Figure:
    """Draw (1 - rho) E[N] against 1 - rho, a panel for each n."""
    seeds = [row["run"]["seed"] for row in rows]
    caption = CAPTION.format(replications=REPLICATIONS, first=min(seeds), last=max(seeds))
    result, axes = panels(1, len(sizes(rows)), caption)
    result.set_figheight(5.2)
    for ax, n in zip(axes, sizes(rows), strict=True):
        _panel(ax, rows, n)
    handles, labels = axes[0].get_legend_handles_labels()
    result.legend(handles, labels, loc="outside upper center", ncols=5 * len(axes), fontsize=FONT)
    return result


def _panel(axes: Axes, rows: Sequence[Row], n: int) -> None:
    """Draw one n."""
    loads = sorted({row["point"]["load"] for row in rows})
    axes.set_xscale("log")
    axes.set_yscale("log")
    label_axes(axes, f"n = {n}", "1 - rho", "(1 - rho) E[N], customers")
    x = np.geomspace(1 - loads[0], 1 - loads[-1], 50)
    axes.axhline(1.0, color="0.4", linewidth=1, zorder=1)
    jiq = [u * jiq_two_servers_mean_number(1 - u) if n == 2 else layer_limit(n, 1) for u in x]
    draw_line(axes, x.tolist(), jiq, 0)
    draw_line(axes, x.tolist(), (n * (1 - x)).tolist(), 2)
    for rule, (style, hollow) in MARKS.items():
        selected = select(rows, n=n, rule=rule)
        places = [1 - row["point"]["load"] for row in selected]
        draw_estimates(axes, places, [value(row, "scaled") for row in selected], rule, style, hollow)
    axes.invert_xaxis()
    axes.set_xticks([1 - load for load in loads], [f"{1 - load:.3g}" for load in loads])
    axes.set_yticks(ticks := [y for y in TICKS if y <= 1.1 * n], [f"{y:g}" for y in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
