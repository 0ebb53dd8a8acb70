"""The picture in pixels: routers with messages, servers, the last customer."""

from __future__ import annotations

import numpy as np

from pull_env.rendering.canvas import Canvas, Colour, Pixels, text_width
from pull_env.rendering.layout import (
    FRAME,
    MARGIN,
    PLOT_LEFT,
    ROUTERS_HEIGHT,
    ROUTERS_TOP,
    Layout,
    grouped,
    round_up,
)
from pull_env.rendering.snapshot import LEVEL_NAMES, Integers, Snapshot, format_mean, level_index
from pull_env.simulation.simulator import Simulator

BACKGROUND, EMPTY, TEXT, DIM = (17, 17, 21), (33, 34, 42), (236, 236, 236), (146, 148, 160)
CHOSEN, PROBED, LINE = (86, 180, 233), (255, 255, 255), (176, 178, 188)
# By queue length, from idle on: inferno of matplotlib in equal steps of lightness, readable without hues.
RAMP = np.array(
    [
        (38, 40, 52),
        (114, 26, 110),
        (160, 42, 99),
        (202, 64, 74),
        (233, 97, 43),
        (249, 142, 9),
        (251, 188, 33),
        (241, 237, 113),
    ],
    np.uint8,
)
CLOSED = (92, 96, 112)  # grey, unlike the colours of queues
FIRST_POOL, LAST_POOL = (186, 236, 218), (0, 128, 96)  # of messages; other pools get colours between these


def rgb_array(simulator: Simulator) -> Pixels:
    """Return a picture of a simulator, (height, 960, 3) uint8.

    The height depends on the scenario only.

    Bars show the messages that routers hold, stacked by pool; cells are servers, coloured by queue length,
    grey while they accept nothing. The router and the server of the last customer have blue frames, the
    servers probed white ones. The router of the next customer is underlined.

    Args:
        simulator: One that was reset; it is not changed.
    """
    snapshot, layout = Snapshot(simulator), Layout(simulator.scenario)
    canvas = Canvas(FRAME, layout.height, BACKGROUND)
    _draw_head(canvas, snapshot)
    bars = _draw_routers(canvas, snapshot, layout)
    cells = [_draw_pool(canvas, snapshot, layout, pool) for pool in range(len(snapshot.scenario.pools))]
    if snapshot.placed:
        _draw_last_customer(canvas, snapshot, layout, int(bars[snapshot.last_router]), np.concatenate(cells))
    _draw_foot(canvas, snapshot, layout)
    return canvas.pixels


def _draw_head(canvas: Canvas, snapshot: Snapshot) -> None:
    """Write the name of the scenario, and the means of the run so far."""
    canvas.write(MARGIN, 20, snapshot.scenario.name, TEXT, 3)
    clock = f"time {snapshot.time:.1f}, {snapshot.placed:,} customers"
    canvas.write(FRAME - MARGIN - text_width(clock), 26, clock, DIM)
    left = MARGIN
    for name, value in (("wait", snapshot.wait), ("messages", snapshot.messages), ("cost", snapshot.cost)):
        end = canvas.write(left, 64, f"{name} ", DIM)
        canvas.write(end, 60, format_mean(value, ".3f"), TEXT, 3)
        left += 304


def _draw_routers(canvas: Canvas, snapshot: Snapshot, layout: Layout) -> Integers:
    """Draw a bar of messages per router or group; return the bar of each router, (R,)."""
    _, bars = grouped(snapshot.held.sum(axis=1), layout.routers_per_bar)
    held = np.array([np.bincount(bars, of_pool) for of_pool in snapshot.held.T])  # (J, bars)
    held /= np.bincount(bars)
    top = round_up(max(5.0, held.sum(axis=0).max()))
    edges = np.vstack([np.zeros(layout.bars), held.cumsum(axis=0)]) * (ROUTERS_HEIGHT / top)
    edges = edges.round().astype(int)
    bottom, width = ROUTERS_TOP + ROUTERS_HEIGHT, layout.bar_width
    for bar in range(layout.bars):
        canvas.fill(layout.bar_left(bar), ROUTERS_TOP, width, ROUTERS_HEIGHT, EMPTY)
        for pool in range(len(held)):
            low, high = edges[pool : pool + 2, bar]
            canvas.fill(layout.bar_left(bar), bottom - high, width, high - low, pool_colour(pool, len(held)))
    if snapshot.router >= 0:
        canvas.fill(layout.bar_left(int(bars[snapshot.router])), bottom + 6, width, 3, TEXT)
    R, shared = snapshot.scenario.routers, layout.routers_per_bar
    canvas.write(MARGIN, ROUTERS_TOP, f"{R:,} router{'s' if R > 1 else ''}", TEXT)
    canvas.write(MARGIN, ROUTERS_TOP + 20, f"hold {snapshot.held.sum():,}", DIM)
    canvas.write(MARGIN, ROUTERS_TOP + 40, f"bars up to {top:,}", DIM)
    if shared > 1:
        canvas.write(MARGIN, ROUTERS_TOP + 60, f"{shared:,} per bar", DIM)
    if layout.servers_per_cell > 1:
        canvas.write(MARGIN, ROUTERS_TOP + 85, f"{layout.servers_per_cell:,} per cell", DIM)
    return bars


def pool_colour(pool: int, pools: int) -> Colour:
    """Return the colour of messages from a pool."""
    share = pool / max(pools - 1, 1)
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(FIRST_POOL, LAST_POOL, strict=True))
    return red, green, blue


def _draw_pool(canvas: Canvas, snapshot: Snapshot, layout: Layout, pool: int) -> Integers:
    """Draw the servers of a pool; return x and y of the cell of each, (servers, 2)."""
    kind = snapshot.scenario.pools[pool]
    servers = slice(snapshot.starts[pool], snapshot.starts[pool + 1])
    values = np.where(snapshot.closed[servers], -1, snapshot.queues[servers])
    medians, cells = grouped(values, layout.servers_per_cell)
    x, y = PLOT_LEFT, int(layout.tops[pool])
    rows = -(-medians.size // layout.columns)
    colours = np.full((rows * layout.columns, 3), BACKGROUND, np.uint8)
    ramp = RAMP[level_index(np.maximum(medians, 0))]
    colours[: medians.size] = np.where(medians[:, None] < 0, CLOSED, ramp)
    canvas.grid(x, y, colours.reshape(rows, layout.columns, 3), layout.pitch, layout.gap)
    canvas.fill(MARGIN, y, 14, 14, pool_colour(pool, len(snapshot.scenario.pools)))
    canvas.write(MARGIN + 22, y, f"{kind.size:,} at {kind.rate:g}", TEXT)
    if kind.buffer is not None:
        canvas.write(MARGIN + 22, y + 20, f"buffer {kind.buffer}", DIM)
    positions: Integers = np.column_stack([cells % layout.columns, cells // layout.columns])
    return positions * layout.pitch + (x, y)


def _draw_last_customer(
    canvas: Canvas, snapshot: Snapshot, layout: Layout, bar: int, cells: Integers
) -> None:
    """Frame the router, the servers it probed and chose; join them by lines.

    Args:
        canvas: Where to draw.
        snapshot: The simulator.
        layout: The positions.
        bar: The bar of the router.
        cells: (n, 2) x and y of the cell of each server.
    """
    side, width = layout.pitch - layout.gap, layout.bar_width
    start = layout.bar_left(bar) + width // 2, ROUTERS_TOP + ROUTERS_HEIGHT + 4
    probed = [] if snapshot.probed.size == snapshot.scenario.servers else snapshot.probed.tolist()
    for x, y in cells[probed].tolist():
        canvas.line(start, (x + side // 2, y - 2), LINE)
        canvas.frame(x, y, side, side, PROBED)
    x, y = cells[snapshot.last_server].tolist()
    canvas.line(start, (x + side // 2, y - 2), CHOSEN, 2)
    canvas.frame(x, y, side, side, CHOSEN)
    if snapshot.blocked:
        canvas.line((x, y), (x + side - 2, y + side - 1), CHOSEN, 2)
        canvas.line((x + side - 2, y), (x, y + side - 1), CHOSEN, 2)
    canvas.frame(layout.bar_left(bar), ROUTERS_TOP, width, ROUTERS_HEIGHT, CHOSEN)


def _draw_foot(canvas: Canvas, snapshot: Snapshot, layout: Layout) -> None:
    """Draw the legend, and describe the last customer."""
    y, side = layout.height - 66, 14
    x = canvas.write(MARGIN, y, "queue ", DIM)
    for colour, name in zip(RAMP.tolist(), LEVEL_NAMES, strict=True):
        canvas.fill(x, y, side, side, tuple(colour))
        x = canvas.write(x + side + 6, y, f"{name} ", TEXT)
    if snapshot.scenario.faults is not None and snapshot.scenario.faults.blocks:
        canvas.fill(x, y, side, side, CLOSED)
        x = canvas.write(x + side + 6, y, "closed ", TEXT)
    for colour, name in ((PROBED, "probed"), (CHOSEN, "chosen")):
        canvas.frame(x + 2, y + 2, side - 4, side - 4, colour)
        x = canvas.write(x + side + 6, y, f"{name} ", TEXT)
    canvas.fill(x, y + side - 3, side, 3, TEXT)
    canvas.write(x + side + 6, y, "next", TEXT)
    canvas.write(MARGIN, layout.height - 34, snapshot.last_customer(), TEXT)
