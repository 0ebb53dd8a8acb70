"""The figure of `brightwell_luczak`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baselines.reproduce.brightwell_luczak.sections import ratio
from baselines.reproduce.common.drawing import FONT, draw_estimates, draw_line, label_axes, panels
from baselines.reproduce.common.study import Row, value
from pull_env.simulation.statistics import Estimate, nan_estimate

CAPTION = (
    "Equal servers of rate 1, load 1 - n^-alpha, each customer at the shortest of d = floor(n^beta) queues; "
    "seed {seed}. Points: filled from an empty system, hollow from long queues (the largest n: from below "
    "and above the limit); bars are 95 % intervals (on a logarithmic axis at most down to a quarter of the "
    "mean), none where no longer queue was seen. Lines: the limit at the same load and d; grey: the bound "
    "1 - 2 n^(-alpha + (k-1) beta). Times are without that to work off an excess."
)
HOLLOW = {"empty": False, "below": False, "long queues": True, "above": True}


def figure(rows: Sequence[Row]) -> Figure:
    """Draw shares of queue lengths, paths to equilibrium and their times."""
    seeds = sorted({row["run"]["seed"] for row in rows})
    result, axes = panels(2, 2, CAPTION.format(seed=", ".join(map(str, seeds))))
    _against_n(axes[0], rows, "share of queues of length k", lambda row: value(row, "share"), "limit share")
    _bounds(axes[0], rows)
    axes[0].set_ylim(bottom=0.0)  # below, the bound says nothing
    axes[1].set_yscale("log")
    _against_n(axes[1], rows, "share of longer queues", lambda row: value(row, "longer"), "limit longer")
    axes[1].set_ylim(bottom=1e-8)
    _paths(axes[2], rows)
    _against_n(axes[3], rows, "time to equilibrium / (k d^(k-1) log n)", _timed, None)
    axes[3].set_ylim(bottom=0.0)
    for ax in axes:
        ax.legend(fontsize=FONT - 1.5)
    return result


def _timed(row: Row) -> Estimate:
    """Return the time as on the page; NaN if the path began near the limit."""
    met = "time" in row["extra"] and row["point"]["start"] in ("empty", "long queues")
    return ratio(row) if met else nan_estimate(0)


def _regimes(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return sorted({(row["point"]["alpha"], row["point"]["beta"]) for row in rows})


def _of(rows: Sequence[Row], regime: tuple[float, float]) -> list[Row]:
    selected = [row for row in rows if (row["point"]["alpha"], row["point"]["beta"]) == regime]
    return sorted(selected, key=lambda row: int(row["point"]["n"]))


def _against_n(
    axes: Axes, rows: Sequence[Row], name: str, of: Callable[[Row], Estimate], limit: str | None
) -> None:
    """Draw a measure against n, a mark for each alpha and beta."""
    axes.set_xscale("log")
    label_axes(axes, name, "servers n", name)
    for style, regime in enumerate(_regimes(rows)):
        for start, hollow in HOLLOW.items():
            selected = [row for row in _of(rows, regime) if row["point"]["start"] == start]
            label = f"alpha {regime[0]:g}, beta {regime[1]:g}" if start == "empty" else "_"
            n, estimates = [row["point"]["n"] for row in selected], [of(row) for row in selected]
            draw_estimates(axes, n, estimates, label, style, hollow)
        if limit is not None:
            by_n = {row["point"]["n"]: row["extra"][limit] for row in _of(rows, regime)}
            draw_line(axes, list(by_n), list(by_n.values()), style)


def _bounds(axes: Axes, rows: Sequence[Row]) -> None:
    for regime in _regimes(rows):
        by_n = {row["point"]["n"]: row["extra"]["bound"] for row in _of(rows, regime)}
        axes.plot(list(by_n), list(by_n.values()), color="0.6", linewidth=0.8, zorder=0)


def _paths(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw customers per server over time from both starts, at the largest n."""
    label_axes(
        axes,
        "convergence to equilibrium, largest n from empty and from long queues",
        "time / (k d^(k-1) log n)",
        "customers per server / limit",
    )
    for style, regime in enumerate(_regimes(rows)):
        for start in ("empty", "long queues"):
            selected = [row for row in _of(rows, regime) if row["point"]["start"] == start]
            for row in selected[-1:]:
                path, extra = row["extra"]["path"], row["extra"]
                times = [step[0] / extra["time scale"] for step in path]
                label = f"alpha {regime[0]:g}, beta {regime[1]:g}, n = {row['point']['n']:,}"
                heights = [step[1] / extra["mean"] for step in path]
                draw_line(axes, times, heights, style, label if start == "empty" else "")
    axes.axhline(1.0, color="0.4", linewidth=0.8, zorder=0)
