"""Picture of the general router over prices of a message: wait against messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Row = dict[str, Any]
PANEL = (5.6, 4.6)  # inches
FONT = 8  # points
LINES = {"general": ("o-", "#0072B2"), "pandora": ("s--", "#D55E00")}  # policies that depend on the price


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Draw a panel for each preset of the part `front`; return the PNG file."""
    front = [row for row in rows if row["part"] == "front" and row["stable"]]
    names = list(dict.fromkeys(row["scenario"]["name"] for row in front))
    figure = Figure((PANEL[0] * len(names), PANEL[1]), dpi=130, layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(names)))
    for axes, name in zip(panels, names, strict=True):
        draw_panel(axes, name, [row for row in front if row["scenario"]["name"] == name])
    panels[0].legend(loc="upper right", fontsize=FONT)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def draw_panel(axes: Axes, name: str, rows: Sequence[Row]) -> None:
    """Draw messages and wait of each policy on a preset; prices beside points."""
    for role, (style, colour) in LINES.items():
        line = sorted((row for row in rows if row["role"] == role), key=price)
        axes.plot(*points(line), style, color=colour, label=role)
        for row in line if role == "general" else ():
            label(axes, f"{price(row):g}", row, (3, 4), colour)
    others = [row for row in rows if row["role"] not in LINES]
    axes.plot(*points(others), "^", color="#999999", label="others")
    for row in others:
        label(axes, row["role"], row, (4, -8), "#666666")
    axes.set_yscale("log")
    axes.set_title(name, fontsize=FONT + 2)
    axes.set_xlabel("messages per customer", fontsize=FONT + 1)
    axes.set_ylabel("mean wait", fontsize=FONT + 1)
    axes.grid(alpha=0.3)


def label(axes: Axes, text: str, row: Row, offset: tuple[int, int], colour: str) -> None:
    """Write a text beside the point of a row."""
    point = mean(row, "messages"), mean(row, "wait")
    axes.annotate(text, point, offset, textcoords="offset points", fontsize=FONT - 1, color=colour)


def points(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return messages per customer and mean waits."""
    return [mean(row, "messages") for row in rows], [mean(row, "wait") for row in rows]


def price(row: Row) -> float:
    """Return the price of a message."""
    return float(row["scenario"]["content"]["prices"]["message"])


def mean(row: Row, measure: str) -> float:
    """Return the mean of a measure over replications."""
    return float(np.mean(row["samples"][measure]))
