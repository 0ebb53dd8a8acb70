"""The leaderboard's picture: waiting against messages, a panel for each scenario."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, SymmetricalLogLocator

from baselines.leaderboard.report import Board, Score
from pull_env.policy.policy import Policy
from pull_env.reporting.describe import TRACE_NOTE
from pull_env.simulation.statistics import Estimate, Floats

PANEL = (5.4, 4.9)  # inches
FONT = 8  # points, of labels and notes
CAPTION = (
    "Lower left is better; the grey line joins the policies that no other beats on both. "
    "Bars are intervals of 95 %. The wait is that of accepted customers: blocked ones are in the table only."
)

# What a router knows when it decides: marker and colour (Okabe and Ito, for the colour-blind as well).
INFORMATION = {
    "asks nobody": ("s", "#999999"),
    "is told by servers": ("o", "#0072B2"),
    "asks some servers": ("^", "#D55E00"),
    "looks at all servers": ("D", "#009E73"),
}


def draw(boards: Sequence[Board], folder: Path, name: str = "wait-messages") -> tuple[Path, Path]:
    """Draw the boards, and return the paths of the PNG and SVG files."""
    columns = 2 if len(boards) == 4 else min(3, len(boards))
    rows = math.ceil(len(boards) / columns)
    figure = Figure((PANEL[0] * columns, PANEL[1] * rows + 0.9), dpi=130, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, board in zip(panels, boards, strict=False):
        _draw_panel(axes, board)
    for axes in panels[len(boards) :]:
        axes.remove()
    handles = [
        figure.axes[0].plot([], [], marker, color=colour, label=label)[0]
        for label, (marker, colour) in INFORMATION.items()
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(4, 2 * columns),
        title="The router ...",
        fontsize=FONT + 1,
    )
    notes = f"{CAPTION} {TRACE_NOTE}" if any(board.scenario.replay for board in boards) else CAPTION
    figure.supxlabel(textwrap.fill(notes, 85 * columns), fontsize=FONT)
    figure.draw_without_rendering()  # settles the layout, which the labels are placed in
    figure.set_layout_engine("none")
    for axes, board in zip(panels, boards, strict=False):
        _place_labels(axes, _stable(board))
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.savefig(png)
    # The same picture gives the same file, and text stays text: outlines take ten times the space.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def information(policy: Policy) -> str:
    """Return what a router knows that follows `policy`, a key of `INFORMATION`."""
    kinds = {step.kind for step in policy.steps}
    if "inspect" in kinds:
        return "looks at all servers"
    if "take" in kinds:
        return "is told by servers"
    return "asks some servers" if kinds & {"probe", "search", "recall"} else "asks nobody"


def _stable(board: Board) -> list[Score]:
    return [score for score in board.scores if not score.unstable]


def _draw_panel(axes: Axes, board: Board) -> None:
    scenario, scores = board.scenario, _stable(board)
    routers = f"R = {scenario.routers} router{'s' if scenario.routers > 1 else ''}"
    axes.set_title(scenario.name, fontsize=FONT + 4, fontweight="bold", pad=32)
    about = f"n = {scenario.servers:,} servers, {routers}, load {scenario.nominal_load:g}\n"
    about += textwrap.fill(board.run, 88)
    axes.text(0.5, 1.02, about, transform=axes.transAxes, ha="center", va="bottom", fontsize=FONT - 1)
    unstable = ", ".join(score.policy.name for score in board.scores if score.unstable)
    note = textwrap.fill(f"not drawn, as queues grow for ever: {unstable}", 75) if unstable else ""
    axes.set_xlabel(f"messages a customer\n{note}".rstrip(), fontsize=FONT + 1)
    axes.set_ylabel("mean wait, time units", fontsize=FONT + 1)
    axes.tick_params(labelsize=FONT)
    axes.grid(alpha=0.25, linewidth=0.6)
    messages, waits = [s.messages["total"] for s in scores], [s.wait for s in scores]
    _scale(axes, "x", messages)
    _scale(axes, "y", waits)
    best = _unbeaten([(m.mean, w.mean) for m, w in zip(messages, waits, strict=True)])
    axes.step([x for x, _ in best], [y for _, y in best], where="post", color="0.75", linewidth=1, zorder=1)
    for score in scores:
        marker, colour = INFORMATION[information(score.policy)]
        x, y = score.messages["total"], score.wait
        style: dict[str, Any] = {"color": colour, "markersize": 5, "elinewidth": 1, "capsize": 2}
        axes.errorbar(x.mean, y.mean, xerr=_bar(x), yerr=_bar(y), fmt=marker, **style)
    axes.margins(0.12)


def _bar(value: Estimate) -> list[list[float]] | None:
    """Return an interval as matplotlib takes it, or None to draw none."""
    half = value.half_width() if value.error > 0 else 0.0
    return [[half], [half]] if 0.0 < half < math.inf else None


def _scale(axes: Axes, axis: Literal["x", "y"], values: Sequence[Estimate]) -> None:
    """Make an axis logarithmic; linear near 0 if there is a value of 0."""
    set_scale, shown = (axes.set_xscale, axes.xaxis) if axis == "x" else (axes.set_yscale, axes.yaxis)
    means = {value.mean for value in values}
    positive = [mean for mean in means if mean > 0.0] or [1.0]
    least = 10.0 ** math.floor(math.log10(min(positive)))
    span = max(positive) / min(positive)
    subs = range(1, 10) if span < 5 else (1, 2, 5) if span < 1000 else (1,)
    if means == set(positive):
        set_scale("log")
        shown.set_major_locator(LogLocator(subs=subs))
    else:
        set_scale("symlog", linthresh=least, linscale=0.4)
        shown.set_major_locator(SymmetricalLogLocator(base=10, linthresh=least, subs=subs))
    if len(means) == 1:  # matplotlib finds no limits around a single value
        only = means.pop()
        axes.set(**{f"{axis}lim": (only / 2, only * 2) if only else (-0.5, 1.0)})
    shown.set_minor_locator(NullLocator())
    shown.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value >= 0 else ""))


def _unbeaten(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats on both coordinates, from left to right."""
    best: list[tuple[float, float]] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def _place_labels(axes: Axes, scores: Sequence[Score]) -> None:
    """Write each policy's name near its point, without overlaps.

    Places are tried outward from the point; where none is free, the one that is covered least is taken.
    """
    pixels = axes.figure.dpi / 72  # a typographic point
    panel = np.array(axes.get_window_extent().extents)
    points = [axes.transData.transform((s.messages["total"].mean, s.wait.mean)) for s in scores]
    taken = [np.concatenate([at - 5 * pixels, at + 5 * pixels]) for at in points]
    for score, at in zip(scores, points, strict=True):
        label = axes.annotate(
            score.policy.name,
            (score.messages["total"].mean, score.wait.mean),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=FONT,
            va="bottom",
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
            path_effects=[withStroke(linewidth=2, foreground="white")],  # legible on lines
        )
        width, height = Text.get_window_extent(label).size  # of the text alone, without the line to the point
        places = _places(at, width, height, pixels)
        outside = width * height - _common(places, panel)
        covered = outside + sum(_common(places, box) for box in taken)
        place = places[int(np.rint(covered).argmin())]  # the first, so the nearest, of equals to a pixel
        label.set_position(tuple((place[:2] - at) / pixels))
        taken.append(place)


def _places(at: Floats, width: float, height: float, pixels: float) -> Floats:
    """Return positions for a label beside a point, nearest first.

    (places, 4) left, bottom, right, top, in pixels.
    """
    angles = np.linspace(0.0, 2 * math.pi, 16, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    radii = pixels * np.array([9, 15, 22, 30, 40, 52, 66, 82, 100])
    size = np.array([width, height])
    # To the right of the point a label starts on the circle, to its left it ends there; likewise up and down.
    corners = (at + radii[:, None, None] * circle - size * (1 - circle) / 2).reshape(-1, 2)
    return np.hstack([corners, corners + size])


def _common(places: Floats, box: Floats) -> Floats:
    """Return the overlap of each of `places`, (places, 4), with `box`, (4,)."""
    low, high = np.maximum(places[:, :2], box[:2]), np.minimum(places[:, 2:], box[2:])
    area: Floats = np.maximum(high - low, 0.0).prod(axis=1)
    return area
