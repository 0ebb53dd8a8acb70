"""The leaderboard's figure: waiting against messages, a panel per scenario."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, SymmetricalLogLocator

from baselines.leaderboard.report import Board
from pull_env.policy.policy import Policy
from pull_env.reporting.describe import TRACE_NOTE
from pull_env.reporting.run_folder import save_figure
from pull_env.simulation.results import Result
from pull_env.simulation.statistics import Estimate, Floats

PANEL = (5.4, 4.9)  # inches
FONT = 8  # points, of labels and notes
CAPTION = (
    "Lower left is better; the grey line joins the policies that no other beats on both. "
    "Bars are 95 % intervals. The wait is that of accepted customers; blocking is in the table only."
)

# What a router knows when it decides: marker and colour (Okabe and Ito, safe for the colour-blind).
INFORMATION = {
    "has no information": ("s", "#999999"),
    "gets messages from servers": ("o", "#0072B2"),
    "probes some servers": ("^", "#D55E00"),
    "sees all servers": ("D", "#009E73"),
}


def draw(boards: Sequence[Board], folder: Path, name: str = "wait-messages") -> tuple[Path, Path]:
    """Draw the boards; return the paths of the PNG and the SVG file in `folder`."""
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
    figure.draw_without_rendering()  # fixes the layout before labels are placed in it
    figure.set_layout_engine("none")
    for axes, board in zip(panels, boards, strict=False):
        _place_labels(axes, board.select(stable=True))
    folder.mkdir(parents=True, exist_ok=True)
    return save_figure(figure, folder / name)


def information(policy: Policy) -> str:
    """Return what a router that follows `policy` knows: a key of `INFORMATION`."""
    kinds = {step.kind for step in policy.steps}
    if "inspect" in kinds:
        return "sees all servers"
    if "take" in kinds:
        return "gets messages from servers"
    return "probes some servers" if kinds & {"probe", "search", "recall"} else "has no information"


def _draw_panel(axes: Axes, board: Board) -> None:
    scenario, results = board.scenario, board.select(stable=True)
    routers = f"R = {scenario.routers} router{'s' if scenario.routers > 1 else ''}"
    axes.set_title(scenario.name, fontsize=FONT + 4, fontweight="bold", pad=32)
    about = f"n = {scenario.servers:,} servers, {routers}, load {scenario.nominal_load:g}\n"
    about += textwrap.fill(board.run, 88)
    axes.text(0.5, 1.02, about, transform=axes.transAxes, ha="center", va="bottom", fontsize=FONT - 1)
    unstable = ", ".join(policy.name for policy, _ in board.select(stable=False))
    note = textwrap.fill(f"unstable, not drawn: {unstable}", 75) if unstable else ""
    axes.set_xlabel(f"messages per customer\n{note}".rstrip(), fontsize=FONT + 1)
    axes.set_ylabel("mean wait, time units", fontsize=FONT + 1)
    axes.tick_params(labelsize=FONT)
    axes.grid(alpha=0.25, linewidth=0.6)
    messages, waits = [r.messages["total"] for _, r in results], [r.wait for _, r in results]
    _scale(axes, "x", messages)
    _scale(axes, "y", waits)
    best = _unbeaten([(m.mean, w.mean) for m, w in zip(messages, waits, strict=True)])
    axes.step([x for x, _ in best], [y for _, y in best], where="post", color="0.75", linewidth=1, zorder=1)
    for policy, result in results:
        marker, colour = INFORMATION[information(policy)]
        x, y = result.messages["total"], result.wait
        style: dict[str, Any] = {"color": colour, "markersize": 5, "elinewidth": 1, "capsize": 2}
        axes.errorbar(x.mean, y.mean, xerr=_bar(x), yerr=_bar(y), fmt=marker, **style)
    axes.margins(0.12)


def _bar(value: Estimate) -> list[list[float]] | None:
    """Return the interval of an estimate as matplotlib takes it; None: no interval."""
    half = value.half_width() if value.error > 0 else 0.0
    return [[half], [half]] if 0.0 < half < math.inf else None


def _scale(axes: Axes, axis: Literal["x", "y"], values: Sequence[Estimate]) -> None:
    """Make an axis logarithmic; linear near 0 if a value is 0, so that it is visible."""
    set_scale, ticks = (axes.set_xscale, axes.xaxis) if axis == "x" else (axes.set_yscale, axes.yaxis)
    means = {value.mean for value in values}
    positive = [mean for mean in means if mean > 0.0] or [1.0]
    least = 10.0 ** math.floor(math.log10(min(positive)))
    span = max(positive) / min(positive)
    subs = range(1, 10) if span < 5 else (1, 2, 5) if span < 1000 else (1,)
    if means == set(positive):
        set_scale("log")
        ticks.set_major_locator(LogLocator(subs=subs))
    else:
        set_scale("symlog", linthresh=least, linscale=0.4)
        ticks.set_major_locator(SymmetricalLogLocator(base=10, linthresh=least, subs=subs))
    if len(means) == 1:  # matplotlib finds no limits around a single value
        only = means.pop()
        axes.set(**{f"{axis}lim": (only / 2, only * 2) if only else (-0.5, 1.0)})
    ticks.set_minor_locator(NullLocator())
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value >= 0 else ""))


def _unbeaten(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other point beats on both axes, left to right."""
    best: list[tuple[float, float]] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def _place_labels(axes: Axes, results: Sequence[tuple[Policy, Result]]) -> None:
    """Write each policy's name near its point without covering points or names.

    Boxes are tried outward from the point; if none is free, the one that is covered least is taken.
    """
    pixels = axes.figure.dpi / 72  # a typographic point
    panel = np.array(axes.get_window_extent().extents)
    means = [(result.messages["total"].mean, result.wait.mean) for _, result in results]
    points = [axes.transData.transform(mean) for mean in means]
    taken = [np.concatenate([at - 5 * pixels, at + 5 * pixels]) for at in points]
    for (policy, _), mean, at in zip(results, means, points, strict=True):
        label = axes.annotate(
            policy.name,
            mean,
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=FONT,
            va="bottom",
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
            path_effects=[withStroke(linewidth=2, foreground="white")],  # legible on lines
        )
        width, height = Text.get_window_extent(label).size  # of the text alone, without the line to the point
        boxes = _boxes(at, width, height, pixels)
        outside = width * height - _overlap(boxes, panel)
        covered = outside + sum(_overlap(boxes, box) for box in taken)
        box = boxes[int(np.rint(covered).argmin())]  # to a pixel; ties go to the first, which is the nearest
        label.set_position(tuple((box[:2] - at) / pixels))
        taken.append(box)


def _boxes(at: Floats, width: float, height: float, pixels: float) -> Floats:
    """Return boxes for a label beside a point, from the nearest outward.

    Returns:
        (boxes, 4) left, bottom, right, top, in pixels.
    """
    angles = np.linspace(0.0, 2 * math.pi, 16, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    radii = pixels * np.array([9, 15, 22, 30, 40, 52, 66, 82, 100])
    size = np.array([width, height])
    # To the right of the point a label starts on the circle, to its left it ends there; likewise up and down.
    corners = (at + radii[:, None, None] * circle - size * (1 - circle) / 2).reshape(-1, 2)
    return np.hstack([corners, corners + size])


def _overlap(boxes: Floats, box: Floats) -> Floats:
    """Return the area that each of `boxes`, (boxes, 4), shares with `box`, (4,)."""
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    area: Floats = np.maximum(high - low, 0.0).prod(axis=1)
    return area
