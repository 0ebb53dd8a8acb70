"""Shared by the figures: panels, points with error bars, marks beyond colour."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from pull_env.simulation.statistics import Estimate

FONT = 8
STYLES: tuple[tuple[str, str, Any], ...] = (  # marker, colour (Okabe and Ito), dashes of the line of theory
    ("o", "#0072B2", "-"),
    ("s", "#D55E00", "--"),
    ("^", "#009E73", ":"),
    ("D", "#CC79A7", "-."),
    ("v", "#E69F00", (0, (5, 1, 1, 1, 1, 1))),
    ("P", "#56B4E9", (0, (1, 3))),
)


def panels(rows: int, columns: int, caption: str) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure of panels with a caption below, and its axes row by row."""
    figure = Figure((4.6 * columns, 3.7 * rows + 0.6), dpi=130, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    figure.supxlabel(textwrap.fill(caption, 72 * columns), fontsize=FONT)
    return figure, axes


def label_axes(axes: Axes, title: str, x: str, y: str) -> None:
    """Write the title and the names of the axes, and draw a grid."""
    axes.set_title(title, fontsize=FONT + 1)
    axes.set_xlabel(x, fontsize=FONT)
    axes.set_ylabel(y, fontsize=FONT)
    axes.tick_params(labelsize=FONT - 1)
    axes.grid(alpha=0.25, linewidth=0.6)
    if axes.get_xscale() == "log":
        axes.xaxis.set_minor_formatter(NullFormatter())


def draw_estimates(
    axes: Axes,
    positions: Sequence[float],
    values: Sequence[Estimate],
    label: str,
    style: int,
    hollow: bool = False,
) -> None:
    """Draw estimates with their intervals.

    Estimates without a mean, and 0 on a logarithmic axis, are left out. On a logarithmic axis a bar ends at a
    quarter of the mean, as it may reach down to 0.
    """
    marker, colour, _ = STYLES[style]
    logarithm = axes.get_yscale() == "log"
    bars = [
        (x, v.mean, v.mean - (max(v.low, v.mean / 4) if logarithm else v.low), v.high - v.mean)
        for x, v in zip(positions, values, strict=True)
        if math.isfinite(v.mean) and (v.mean > 0.0 or not logarithm)
    ]
    x, y, below, above = zip(*bars, strict=True) if bars else ((), (), (), ())
    face = "white" if hollow else colour
    axes.errorbar(
        x,
        y,
        [below, above],
        fmt=marker,
        color=colour,
        mfc=face,
        label=label,
        markersize=4.5,
        capsize=2,
        elinewidth=1,
    )


def draw_line(axes: Axes, x: Sequence[float], y: Sequence[float], style: int, label: str = "") -> None:
    """Draw a curve of theory."""
    _, colour, dashes = STYLES[style]
    axes.plot(x, y, linestyle=dashes, color=colour, linewidth=1, label=label or "_", zorder=1)
