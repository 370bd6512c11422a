"""How are axes drawn? A light grid, ticks that do not touch, a label with its unit and an arrow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scalingbook_lib.reader.draw import clip, svg
from scalingbook_lib.reader.draw.clip import Box, Line
from scalingbook_lib.reader.explorers import scales
from scalingbook_lib.reader.explorers.view import Chart, RefLine, Scale

RIGHT, FOOT = 14.0, 44.0  # margins: right of the plot, and below it for ticks and the label of x
AIR = 9.0  # between the texts of two ticks
DASHED = 'stroke="currentColor" stroke-opacity=".6" stroke-dasharray="4 3" stroke-width="1.2"'


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's box in pixels and the way from values into it."""

    box: Box
    x: scales.Projection
    y: scales.Projection

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> list[Line]:
        """The pieces of a curve that are finite and within the box, in pixels."""
        whole = all(map(math.isfinite, ys)) and all(map(math.isfinite, xs))
        pieces = [(xs, ys)] if whole else clip.pieces(xs, ys)
        return [part for px, py in pieces for part in clip.within(self.x(px), self.y(py), self.box)]

    def at(self, mark: RefLine) -> float | None:
        """Where a reference line stands in pixels; None where that is not in the picture."""
        if not math.isfinite(mark.at):
            return None
        low, high = (self.box[0], self.box[2]) if mark.axis == "x" else (self.box[1], self.box[3])
        at = (self.x if mark.axis == "x" else self.y)([mark.at])[0]
        return at if low - 0.1 <= at <= high + 0.1 else None


def both(panel: Chart, width: float, top: float, bottom: float) -> tuple[Frame, str]:
    """The frame of a chart, and its two axes."""
    (x0, x1), (y0, y1) = panel.ranges()
    ys = scales.ticks(panel.y.scale, y0, y1, 7 if width > 400 else 6)
    texts, unit = scales.tick_texts(ys, panel.y.scale, panel.y.unit)
    left = 8 * math.ceil(
        (max(map(svg.measure, texts), default=0) + 9) / 8
    )  # in steps, so that it seldom moves
    box = left, top, width - RIGHT, bottom
    frame = Frame(
        box,
        scales.project(panel.x.scale, x0, x1, left, width - RIGHT),
        scales.project(panel.y.scale, y0, y1, bottom, top),
    )
    pixels = frame.y(ys)
    sides = [svg.text(left - 7, y + 4.5, t) for y, t in zip(pixels, texts, strict=True)]
    side = svg.group(f'{svg.QUIET} text-anchor="end"', sides)
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
    """The lying axis below a box, with the grid; `rows` are grid lines of the other axis."""
    _, top, right, bottom = box
    values, middles, texts, unit = _ticks(axis, ends, x, most, width)
    grid = rows + "".join([f"M{at:.1f},{top:.1f}V{bottom:.1f}" for at in x(values)])
    ticks = [svg.text(at, bottom + 18, t) for at, t in zip(middles, texts, strict=True)]
    name = svg.text(right, bottom + 38, svg.fit(f"{named(axis, unit)} →", right), 'text-anchor="end"')
    return f'<path d="{grid}" stroke="currentColor" stroke-opacity=".11"/>' + svg.group(
        svg.QUIET, [svg.group('text-anchor="middle"', ticks), name]
    )


def _ticks(
    axis: Scale, ends: tuple[float, float], x: scales.Projection, most: int, width: float
) -> tuple[list[float], list[float], list[str], str]:
    """As many ticks as stand beside each other: values, the middles of their texts, texts, unit."""
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
    """The axis by its label and its unit."""
    return f"{axis.label} ({unit})" if unit else axis.label


def uprights(
    refs: Sequence[RefLine],
    ends: tuple[float, float],
    x: scales.Projection,
    rows: tuple[float, float],
    width: float,
) -> str:
    """Reference lines across rows, their labels side by side above them."""
    shown = sorted((r for r in refs if ends[0] <= r.at <= ends[1]), key=lambda r: r.at)
    spots, words = x([r.at for r in shown]), [svg.fit(r.label, width * 0.8 / len(shown)) for r in shown]
    top, bottom = rows
    lines = "".join([f"M{at:.1f},{top - 2:.1f}V{bottom:.1f}" for at in spots])
    names = [svg.text(at, top - 6, w) for at, w in zip(_apart(spots, words, width), words, strict=True)]
    path = f'<path d="{lines}" {DASHED}/>' if shown else ""
    return path + svg.group('text-anchor="middle" fill-opacity=".8" font-weight="500"', names)


def _apart(spots: Sequence[float], words: Sequence[str], width: float) -> list[float]:
    """The middles of texts in a row, moved so that none covers its neighbour or leaves the drawing."""
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
