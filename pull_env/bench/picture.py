"""The picture of a benchmark: ns a customer by servers, customers a second by threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

from pull_env.bench.timing import Measurement

FONT = 8
STYLES = (  # marker and colour (Okabe and Ito): they can be told apart without colour
    ("o", "#0072B2"),
    ("s", "#D55E00"),
    ("^", "#009E73"),
    ("D", "#CC79A7"),
    ("v", "#E69F00"),
    ("P", "#56B4E9"),
    ("X", "#000000"),
)


def draw(found: Sequence[Measurement], path: Path) -> None:
    """Draw the measurements by servers and by threads, and write the picture to `path`."""
    sizes = [m for m in found if m.kind == "policies"]
    cores = [m for m in found if m.kind == "cores"]
    names = list(dict.fromkeys(m.name for m in sizes))
    figure = Figure((9.6, 4.4), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, (marker, colour) in zip(names, _styles(len(names)), strict=True):
        style = {"marker": marker, "color": colour, "label": name}
        _line(left, [(m.servers, m.nanoseconds()) for m in sizes if m.name == name], style)
        _line(right, [(m.threads, m) for m in cores if m.name == name], style, 1e-6)
    left.set(xscale="log", yscale="log")
    _dress(left, "R = 10 routers, one thread", "servers", "ns a customer")
    right.set_ylim(bottom=0)
    right.xaxis.set_major_locator(FixedLocator(sorted({m.threads for m in cores})))
    servers = f"{cores[0].servers:,}" if cores else ""
    _dress(right, f"n = {servers} servers, R = 10 routers", "threads", "million customers a second")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize=FONT)
    figure.supxlabel("Middle of the timings; bars from the least to the greatest.", fontsize=FONT)
    figure.savefig(path, format="png")


def _line(
    axes: Axes, points: Sequence[tuple[int, Measurement]], style: dict[str, str], scale: float = 1.0
) -> None:
    x = [place for place, _ in points]
    y = [scale * m.median for _, m in points]
    below = [scale * (m.median - m.low) for _, m in points]
    above = [scale * (m.high - m.median) for _, m in points]
    axes.errorbar(x, y, [below, above], markersize=4.5, linewidth=1, elinewidth=1, capsize=2, **style)  # type: ignore[arg-type]


def _dress(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=FONT + 1)
    axes.set_xlabel(x, fontsize=FONT)
    axes.set_ylabel(y, fontsize=FONT)
    axes.tick_params(labelsize=FONT - 1)
    axes.grid(alpha=0.25, linewidth=0.6)
    if axes.get_yscale() == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())


def _styles(count: int) -> list[tuple[str, str]]:
    """Return as many styles; from the eighth on they come again."""
    return [STYLES[k % len(STYLES)] for k in range(count)]
