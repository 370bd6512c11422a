"""Draw axes with grid, ticks and labels with units, and clip lines to the plot area."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.explorers import scales
from scalingbook_book.reader.explorers.view import Chart, RefLine, Scale

Line = tuple[list[float], list[float]]  # pixels
Box = tuple[float, float, float, float]  # left, top, right, bottom


def pieces(xs: Sequence[float], ys: Sequence[float]) -> list[Line]:
    """Return the pieces of a curve between its gaps, which are values of inf or nan."""
    runs = groupby(zip(xs, ys, strict=True), key=lambda p: math.isfinite(p[0]) and math.isfinite(p[1]))
    stretches = [list(run) for drawn, run in runs if drawn]
    return [([x for x, _ in s], [y for _, y in s]) for s in stretches]


def within(xs: list[float], ys: list[float], box: Box) -> list[Line]:
    """Return the parts of a line within the box; a line that is entirely inside is returned unchanged."""
    left, top, right, bottom = box[0] - 0.05, box[1] - 0.05, box[2] + 0.05, box[3] + 0.05
    if min(xs) >= left and max(xs) <= right and min(ys) >= top and max(ys) <= bottom:
        return [(xs, ys)]
    lines: list[Line] = []
    for i in range(len(xs) - 1):
        cut = _segment(xs[i], ys[i], xs[i + 1], ys[i + 1], (left, top, right, bottom))
        if cut is None:
            continue
        x0, y0, x1, y1 = cut
        if not (lines and lines[-1][0][-1] == x0 and lines[-1][1][-1] == y0):
            lines.append(([x0], [y0]))
        lines[-1][0].append(x1)
        lines[-1][1].append(y1)
    return lines


def _segment(
    x0: float, y0: float, x1: float, y1: float, box: Box
) -> tuple[float, float, float, float] | None:
    """Return the part of a segment within the box (Liang and Barsky), or None if it is outside."""
    enter, leave, dx, dy = 0.0, 1.0, x1 - x0, y1 - y0
    for run, room in ((-dx, x0 - box[0]), (dx, box[2] - x0), (-dy, y0 - box[1]), (dy, box[3] - y0)):
        if run == 0 and room < 0:
            return None
        if run < 0:
            enter = max(enter, room / run)
        elif run > 0:
            leave = min(leave, room / run)
    if enter > leave:
        return None
    start = (x0, y0) if enter == 0 else (x0 + enter * dx, y0 + enter * dy)
    end = (x1, y1) if leave == 1 else (x0 + leave * dx, y0 + leave * dy)
    return (*start, *end)


RIGHT, FOOT = 14.0, 44.0  # margins: right of the plot, and below it for the ticks and the label of the x axis
AIR = 5.0  # space between two tick labels
DASHED = 'stroke="currentColor" stroke-opacity=".6" stroke-dasharray="4 3" stroke-width="1.2"'


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's box in pixels, and the projections from values to pixels."""

    box: Box
    x: scales.Projection
    y: scales.Projection

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> list[Line]:
        """Return the pieces of a curve that are finite and within the box, in pixels."""
        whole = all(map(math.isfinite, ys)) and all(map(math.isfinite, xs))
        finite = [(xs, ys)] if whole else pieces(xs, ys)
        return [part for px, py in finite for part in within(self.x(px), self.y(py), self.box)]

    def at(self, mark: RefLine) -> float | None:
        """Return the pixel of a reference line, or None if it is outside the plot."""
        if not math.isfinite(mark.at):
            return None
        low, high = (self.box[0], self.box[2]) if mark.axis == "x" else (self.box[1], self.box[3])
        at = (self.x if mark.axis == "x" else self.y)([mark.at])[0]
        return at if low - 0.1 <= at <= high + 0.1 else None


def both(panel: Chart, width: float, top: float, bottom: float) -> tuple[Frame, str]:
    """Return the frame of a chart, and its two axes as SVG."""
    (x0, x1), (y0, y1) = panel.ranges()
    ys = scales.ticks(panel.y.scale, y0, y1, 7 if width > 400 else 6)
    texts, unit = scales.tick_texts(ys, panel.y.scale, panel.y.unit)
    left = 8 * math.ceil(
        (max(map(svg.measure, texts), default=0) + 9) / 8
    )  # rounded to steps, so that the frame seldom moves
    box = left, top, width - RIGHT, bottom
    frame = Frame(
        box,
        scales.project(panel.x.scale, x0, x1, left, width - RIGHT),
        scales.project(panel.y.scale, y0, y1, bottom, top),
    )
    pixels = frame.y(ys)
    sides = [svg.text(left - 7, y + 4.5, t) for y, t in zip(pixels, texts, strict=True)]
    side = svg.texts(f'{svg.QUIET} text-anchor="end"', sides)
    name = svg.text(0, top - 14, svg.fit(f"↑ {named(panel.y, unit)}", width), svg.QUIET)
    rows = "".join([f"M{left:.1f},{y:.1f}H{box[2]:.1f}" for y in pixels])
    base = f'<path d="M{left:.1f},{bottom:.1f}H{box[2]:.1f}" stroke="currentColor" stroke-opacity=".4"/>'
    floor = across(panel.x, (x0, x1), frame.x, box=box, width=width, most=9 if width > 400 else 6, rows=rows)
    return frame, floor + base + side + name


def across(
    axis: Scale,
    ends: tuple[float, float],
    x: scales.Projection,
    *,
    box: Box,
    width: float,
    most: int,
    rows: str = "",
) -> str:
    """Return the horizontal axis below a box, with the grid; `rows` are grid lines of the other axis."""
    _, top, right, bottom = box
    values, middles, texts, unit = _ticks(axis, ends, x, most, width)
    grid = rows + "".join([f"M{at:.1f},{top:.1f}V{bottom:.1f}" for at in x(values)])
    ticks = [svg.text(at, bottom + 18, t) for at, t in zip(middles, texts, strict=True)]
    name = svg.text(right, bottom + 38, svg.fit(f"{named(axis, unit)} →", right), 'text-anchor="end"')
    return f'<path d="{grid}" stroke="currentColor" stroke-opacity=".11"/>' + svg.texts(
        f'{svg.QUIET} text-anchor="middle"', [*ticks, name]
    )


def _ticks(
    axis: Scale, ends: tuple[float, float], x: scales.Projection, most: int, width: float
) -> tuple[list[float], list[float], list[str], str]:
    """Return as many ticks as fit side by side: values, centers of their labels, labels, and unit."""
    while True:
        values = scales.ticks(axis.scale, *ends, most)
        texts, unit = scales.tick_texts(values, axis.scale, axis.unit)
        halves = [svg.measure(t) / 2 for t in texts]
        middles = [min(max(at, half), width - half) for at, half in zip(x(values), halves, strict=True)]
        spots = pairwise(zip(middles, halves, strict=True))
        if most <= 2 or all(b - a >= left + right + AIR for (a, left), (b, right) in spots):
            return values, middles, texts, unit
        most -= 1


def named(axis: Scale, unit: str) -> str:
    """Return the axis label with its unit, and with the word `log` if the axis is logarithmic.

    >>> named(Scale("batch", "tokens", "log"), "tokens")
    'batch (tokens, log)'
    """
    notes = [unit] if unit else []
    if axis.scale != "linear":
        notes.append("log")
    if notes and axis.label.endswith(")"):
        return f"{axis.label[:-1]}, {', '.join(notes)})"
    return f"{axis.label} ({', '.join(notes)})" if notes else axis.label


def uprights(
    refs: Sequence[RefLine],
    ends: tuple[float, float],
    x: scales.Projection,
    rows: tuple[float, float],
    width: float,
) -> str:
    """Return reference lines across rows, with their labels side by side above them."""
    shown = sorted((r for r in refs if ends[0] <= r.at <= ends[1]), key=lambda r: r.at)
    spots, words = x([r.at for r in shown]), [svg.fit(r.label, width * 0.8 / len(shown)) for r in shown]
    top, bottom = rows
    lines = "".join([f"M{at:.1f},{top - 2:.1f}V{bottom:.1f}" for at in spots])
    names = [svg.text(at, top - 6, w) for at, w in zip(_apart(spots, words, width), words, strict=True)]
    path = f'<path d="{lines}" {DASHED}/>' if shown else ""
    return path + svg.texts('text-anchor="middle" fill-opacity=".8" font-weight="500"', names)


def _apart(spots: Sequence[float], words: Sequence[str], width: float) -> list[float]:
    """Return the centers of labels in a row, shifted so that none overlaps its neighbor or leaves the
    drawing.
    """
    halves = [svg.measure(w) / 2 for w in words]
    middles, edge = [], -AIR
    for at, half in zip(spots, halves, strict=True):
        middles.append(max(at, edge + AIR + half))
        edge = middles[-1] + half
    edge = width + AIR
    for i in reversed(range(len(middles))):
        middles[i] = min(middles[i], edge - AIR - halves[i])
        edge = middles[i] - halves[i]
    return middles
