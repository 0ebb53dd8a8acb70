"""The picture of the general router over prices of a message: waiting against messages."""

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
LINES = {"general": ("o-", "#0072B2"), "pandora": ("s--", "#D55E00")}  # what heeds the price


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Draw a panel for each preset of the part `front`, write a PNG file, and return its path."""
    front = [found for found in rows if found["part"] == "front" and found["stable"]]
    names = list(dict.fromkeys(found["scenario"]["name"] for found in front))
    figure = Figure((PANEL[0] * len(names), PANEL[1]), dpi=130, layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(names)))
    for axes, name in zip(panels, names, strict=True):
        draw_panel(axes, name, [found for found in front if found["scenario"]["name"] == name])
    panels[0].legend(loc="upper right", fontsize=FONT)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def draw_panel(axes: Axes, name: str, rows: Sequence[Row]) -> None:
    """Draw what each policy sends and waits on a preset; numbers along the line are prices."""
    for role, (style, colour) in LINES.items():
        found = sorted((row for row in rows if row["role"] == role), key=price)
        axes.plot(
            [messages(row) for row in found], [wait(row) for row in found], style, color=colour, label=role
        )
        if role == "general":
            for row in found:
                axes.annotate(
                    f"{price(row):g}",
                    (messages(row), wait(row)),
                    (3, 4),
                    textcoords="offset points",
                    fontsize=FONT - 1,
                    color=colour,
                )
    blind = [row for row in rows if row["role"] not in LINES]
    axes.plot(
        [messages(row) for row in blind], [wait(row) for row in blind], "^", color="#999999", label="others"
    )
    for row in blind:
        axes.annotate(
            row["role"],
            (messages(row), wait(row)),
            (4, -8),
            textcoords="offset points",
            fontsize=FONT - 1,
            color="#666666",
        )
    axes.set_yscale("log")
    axes.set_title(name, fontsize=FONT + 2)
    axes.set_xlabel("messages a customer", fontsize=FONT + 1)
    axes.set_ylabel("mean wait", fontsize=FONT + 1)
    axes.grid(alpha=0.3)


def price(row: Row) -> float:
    """Return the price of a message."""
    return float(row["scenario"]["content"]["prices"]["message"])


def messages(row: Row) -> float:
    """Return the messages a customer."""
    return float(np.mean(row["samples"]["messages"]))


def wait(row: Row) -> float:
    """Return the mean wait."""
    return float(np.mean(row["samples"]["wait"]))
