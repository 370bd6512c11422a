"""How are charts, bars, time lines, grids and networks drawn with matplotlib? Each on axes it is given."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from scalingbook_lib.reader.draw import svg
from scalingbook_lib.reader.explorers import scales
from scalingbook_lib.reader.explorers.view import (
    Band,
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Mark,
    Network,
    Points,
    RefLine,
    Regions,
    Scale,
    Timeline,
    colored,
)
from scalingbook_lib.viz.style import color

BELOW = {"xytext": (7, -12), "textcoords": "offset points", "ha": "left"}
ABOVE = {"xytext": (-7, 6), "textcoords": "offset points", "ha": "right"}
LANE = 540.0  # the units of the page that a lane is long


def chart(panel: Chart, ax: Axes) -> None:
    """Curves, points, bands, reference lines and regions over two axes."""
    for mark, paint in colored(panel):
        _mark(mark, paint, ax)
    (x, y), (of_x, of_y) = panel.ranges(), (panel.x, panel.y)
    _axis("x", of_x, x, ax)
    _axis("y", of_y, y, ax)
    _legend(
        ax, [Patch(color=color(m.color_of(i)), alpha=m.shade(i), label=label) for m, i, label in _keys(panel)]
    )


def _mark(mark: Mark, index: int, ax: Axes) -> None:
    paint = color(index)
    match mark:
        case Curve():
            ax.plot(mark.xs, mark.ys, "--" if mark.dashed else "-", color=paint, label=mark.label)
        case Points():
            ax.plot(mark.xs, mark.ys, "o", color=paint, label=mark.label or "_", zorder=3)
            aside = BELOW if index % 2 == 0 else ABOVE  # two points that lie close are labelled on two sides
            for label, x, y in zip(mark.labels, mark.xs, mark.ys, strict=False):
                ax.annotate(label, (x, y), color=paint, **aside)
        case Band():
            ax.fill_between(mark.xs, mark.low, mark.high, color=paint, alpha=0.16, label=mark.label)
        case RefLine():
            _ref_line(mark, ax)
        case Regions():
            for i in range(len(mark.labels)):
                only = [[1.0 if cell == i else float("nan") for cell in row] for row in mark.cells]
                ax.pcolormesh(
                    mark.xs,
                    mark.ys,
                    only,
                    cmap=ListedColormap([color(mark.color_of(i))]),
                    alpha=mark.shade(i),
                )


def _keys(panel: Chart) -> list[tuple[Regions, int, str]]:
    return [(m, i, label) for m in panel.marks if isinstance(m, Regions) for i, label in enumerate(m.labels)]


def _ref_line(mark: RefLine, ax: Axes) -> None:
    draw = ax.axvline if mark.axis == "x" else ax.axhline
    draw(mark.at, color="#777777", linestyle="--", linewidth=1, label=mark.label)


def _axis(name: str, of: Scale, ends: tuple[float, float], ax: Axes) -> None:
    """Scale, ends, ticks and label of one axis, as in the page's picture."""
    ticks = scales.ticks(of.scale, *ends, 7)
    texts, unit = scales.tick_texts(ticks, of.scale, of.unit)
    kind = {f"{name}scale": "linear" if of.scale == "linear" else "log", f"{name}lim": ends}
    ax.set(**kind, **{f"{name}label": f"{of.label} ({unit})" if unit else of.label})
    ax.set(**{f"{name}ticks": ticks, f"{name}ticklabels": texts})
    getattr(ax, f"{name}axis").minorticks_off()


def _legend(ax: Axes, more: list[Patch]) -> None:
    handles = [*ax.get_legend_handles_labels()[0], *more]
    if len(handles) > 1:
        ax.legend(handles=handles)


def bars(panel: Bars, ax: Axes) -> None:
    """Lying bars, stacked or one below the other, with their values."""
    thick = 0.7 if panel.stacked else 0.7 / len(panel.series)
    starts = [0.0] * len(panel.labels)
    for n, series in enumerate(panel.series):
        ys = [i if panel.stacked else i + n * thick - 0.35 + thick / 2 for i in range(len(panel.labels))]
        paint = color(n if series.color is None else series.color)
        left = starts if panel.stacked else None
        drawn = ax.barh(ys, series.values, thick * 0.94, left, color=paint, label=series.label)
        if not panel.stacked or series is panel.series[-1]:
            ends = panel.lengths() if panel.stacked else series.values
            ax.bar_label(drawn, [scales.written(v, panel.value.unit) for v in ends], padding=4)
        starts = [a + b for a, b in zip(starts, series.values, strict=True)]
    _lanes(list(panel.labels), panel.value, panel.range(), list(panel.refs), ax)


def timeline(panel: Timeline, ax: Axes) -> None:
    """Spans on lanes over time, with their labels where these fit, as on the page."""
    low, high = panel.range()
    for span in panel.spans:
        lane = panel.lanes.index(span.lane)
        ax.barh(
            lane,
            span.end - span.start,
            0.7,
            span.start,
            color=color(span.color),
            alpha=0.5,
            edgecolor="white",
        )
        if not span.label or svg.measure(span.label) + 6 > (span.end - span.start) / (high - low) * LANE:
            continue
        middle = (span.start + span.end) / 2
        ax.text(middle, lane, span.label, ha="center", va="center", fontsize="small", clip_on=True)
    _lanes(list(panel.lanes), Scale(panel.label, panel.unit), panel.range(), list(panel.refs), ax)


def _lanes(labels: list[str], of: Scale, ends: tuple[float, float], refs: list[RefLine], ax: Axes) -> None:
    for ref in refs:
        _ref_line(ref, ax)
    _axis("x", of, ends, ax)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    _legend(ax, [])


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
