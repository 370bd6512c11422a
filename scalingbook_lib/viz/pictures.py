"""How are grids and networks drawn with matplotlib? Each on axes it is given."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from scalingbook_lib.reader.explorers.view import Cell, Grid, Network
from scalingbook_lib.viz.style import color

SIDE = 0.94  # of a cell
LARGEST = 26.0  # points, the side of a device
ACROSS, DOWN = (-0.15, 1.15), (-0.2, 1.2)  # the limits of a network's axes


def grid(panel: Grid, ax: Axes) -> None:
    """Tinted cells with their text; of a cell with a part, that part."""
    for j, row in enumerate(panel.cells):
        for i, cell in enumerate(row):
            _cell(cell, i, j, ax)
    ax.set(xlim=(0, len(panel.cells[0])), ylim=(len(panel.cells), 0))
    ax.set_xticks([i + SIDE / 2 for i in range(len(panel.columns))], panel.columns)
    ax.set_yticks([j + SIDE / 2 for j in range(len(panel.rows))], panel.rows)
    ax.xaxis.tick_top()
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines.bottom.set_visible(False)


def _cell(cell: Cell, i: int, j: int, ax: Axes) -> None:
    top, bottom, left, right = cell.part or (0.0, 1.0, 0.0, 1.0)
    ax.add_patch(Rectangle((i, j), SIDE, SIDE, facecolor="#f4f4f4", edgecolor="#cccccc"))
    if cell.color is not None:
        at = (i + SIDE * left, j + SIDE * top)
        size = (SIDE * (right - left), SIDE * (bottom - top))
        ax.add_patch(Rectangle(at, *size, color=color(cell.color), alpha=0.42 * cell.level, linewidth=0))
    ax.text(i + SIDE / 2, j + SIDE / 2, cell.text, ha="center", va="center", fontsize="small")


def network(panel: Network, ax: Axes) -> None:
    """Devices and the arrows between them; a link that wraps around is bent."""
    spots = [(n.x, 1 - n.y) for n in panel.nodes]
    side = _side(spots, ax)
    for link in panel.links:
        start, end = spots[link.start], spots[link.end]
        paint = "#bbbbbb" if link.color is None else color(link.color)
        bend = -link.bend or (0.3 if link.wrap else 0.08 if link.color is not None else 0.0)
        style: dict[str, Any] = {
            "arrowstyle": "-" if link.color is None else "-|>",
            "connectionstyle": f"arc3,rad={bend}",
        }
        ax.add_patch(
            FancyArrowPatch(
                start, end, color=paint, shrinkA=0.7 * side, shrinkB=0.7 * side, mutation_scale=10, **style
            )
        )
        ax.text((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, link.label, color=paint, fontsize="small")
    for node, (x, y) in zip(panel.nodes, spots, strict=True):
        ax.plot(x, y, "s", markersize=side, markerfacecolor="white", markeredgecolor="#777777")
        held = sum(part is not None for part in node.parts)
        words = f"{node.label}\n{held}/{len(node.parts)}" if node.parts else node.label
        ax.text(x, y, words, ha="center", va="center", fontsize="small")
    ax.set(xlim=ACROSS, ylim=DOWN, xticks=[], yticks=[])
    ax.spines.bottom.set_visible(False)


def _side(spots: Sequence[tuple[float, float]], ax: Axes) -> float:
    """How large a device is drawn, in points: half-way to its nearest neighbor, if that is near."""
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    wide, high = 72 * inches.width / (ACROSS[1] - ACROSS[0]), 72 * inches.height / (DOWN[1] - DOWN[0])
    pairs = itertools.combinations([(x * wide, y * high) for x, y in spots], 2)
    return min([LARGEST, *(0.54 * math.dist(a, b) for a, b in pairs)])
