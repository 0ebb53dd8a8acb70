"""The figure of `stolyar`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baselines.reproduce.common.drawing import FONT, STYLES, draw_estimates, draw_line, label_axes, panels
from baselines.reproduce.common.study import Row, value
from baselines.reproduce.stolyar.sections import routers, scaled_empty, select_rows, small_law

CAPTION = (
    "Filled points: stationary; hollow ones: observed briefly from an even split of the messages, not drawn "
    "without a late customer. Bars are 95 % intervals (on a logarithmic axis at most down to a quarter of "
    "the mean), lines are theory. Two halves: "
    "finite: rate 1 with buffer 3 and rate 2 with buffer 1; unlimited: rates 0.5 and 1.5. Load 0.9 unless "
    "named; seed {seed}."
)


def figure(rows: Sequence[Row]) -> Figure:
    """Draw waiting, messages, response and the 1/n law by n, and growing R."""
    seeds = sorted({row["run"]["seed"] for row in rows})
    result, axes = panels(2, 3, CAPTION.format(seed=", ".join(map(str, seeds))))
    _by_routers(axes[0], rows, "finite", "late", "finite buffers", "P(wait or block)")
    _by_routers(axes[1], rows, "unlimited", "late", "unlimited buffers", "P(wait or block)")
    _by_routers(axes[2], rows, "finite", "total", "finite buffers", "messages per customer")
    axes[2].axhline(1.0, color="0.4", linewidth=1, zorder=1)
    _by_routers(axes[3], rows, "finite", "response", "finite buffers", "mean response, time units")
    for row in select_rows(rows, "size", name="finite")[:1]:
        axes[3].axhline(row["extra"]["fluid response"], color="0.4", linewidth=1, zorder=1)
    _law(axes[4], rows)
    _many_routers(axes[5], rows)
    for ax in axes:
        ax.legend(fontsize=FONT - 1.5)
    return result


def _by_routers(axes: Axes, rows: Sequence[Row], system: str, measure: str, title: str, y: str) -> None:
    """Draw a measure by n, one mark per R; with the 1/n law for late customers."""
    axes.set_xscale("log")
    if measure == "late":
        axes.set_yscale("log")
    label_axes(axes, title, "servers n", y)
    for style, r in enumerate(routers(select_rows(rows, "size", name=system))):
        for experiment, label, hollow in (("size", f"R = {r}", False), ("watched", "_", True)):
            selected = select_rows(rows, experiment, name=system, R=r)
            drawn = [value(row, measure) for row in selected]
            draw_estimates(
                axes, [row["point"]["n"] for row in selected], drawn, label, style % len(STYLES), hollow
            )
        if measure == "late":
            selected = [
                row for row in select_rows(rows, "size", "watched", name=system, R=r) if small_law(row)
            ]
            draw_line(
                axes, *_across(selected, lambda row: float(row["extra"]["law late"])), style % len(STYLES)
            )
    _name_unstable(axes, select_rows(rows, "size", name=system))


def _name_unstable(axes: Axes, rows: Sequence[Row]) -> None:
    """Write which points are unstable and not drawn."""
    names = [f"n = {row['point']['n']}, R = {row['point']['R']}" for row in rows if not row["stable"]]
    if names:
        text = "unstable, not drawn:\n" + "\n".join(names)
        axes.text(0.42, 0.03, text, transform=axes.transAxes, fontsize=FONT - 1, va="bottom")


def _across(rows: Sequence[Row], of: Callable[[Row], float]) -> tuple[list[float], list[float]]:
    ordered = sorted(rows, key=lambda row: row["point"]["n"])
    return [row["point"]["n"] for row in ordered], [of(row) for row in ordered]


def _law(axes: Axes, rows: Sequence[Row]) -> None:
    selected = select_rows(rows, "law")
    axes.set_xscale("log")
    label_axes(
        axes, "equal servers: the 1/n law, c dashed", "servers n", "n (1 - load) P(router empty) / (R - 1)"
    )
    for style, load in enumerate(sorted({row["scenario"]["content"]["load"] for row in selected})):
        mine = [row for row in selected if row["scenario"]["content"]["load"] == load]
        for k, r in enumerate(routers(mine)):
            of_r = [row for row in mine if row["point"]["R"] == r]
            places = [row["point"]["n"] * (1 + 0.08 * k) for row in of_r]  # side by side
            draw_estimates(
                axes,
                places,
                [scaled_empty(row) for row in of_r],
                f"load {load:g}, R = {r}",
                (style + k) % 4,
                k > 0,
            )
        axes.axhline(mine[0]["extra"]["c"], color=STYLES[style % 4][1], linestyle="--", linewidth=1, zorder=1)


def _many_routers(axes: Axes, rows: Sequence[Row]) -> None:
    selected = select_rows(rows, "growing R")
    axes.set_xscale("log")
    label_axes(axes, "R = n / 10: the mean field", "servers n", "P(wait or block)")
    for style, name in enumerate(sorted({row["scenario"]["name"] for row in selected})):
        mine = [row for row in selected if row["scenario"]["name"] == name]
        draw_estimates(
            axes, [row["point"]["n"] for row in mine], [value(row, "late") for row in mine], name, style
        )
        draw_line(axes, *_across(mine, lambda row: float(row["extra"]["field late"])), style)
