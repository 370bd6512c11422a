"""How is a chart of curves, points, bands, reference lines and regions drawn?

Light grid, ticks and axis labels with an arrow, curves labelled where they run. A wide drawing is 680 units
across, a narrow one 340 with the same type, fewer ticks and less height.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from scalingbook_lib.explorers import draw_labels, scales, svg
from scalingbook_lib.explorers.draw_labels import Box, Line, Placer
from scalingbook_lib.explorers.palette import ink
from scalingbook_lib.explorers.view import Band, Chart, Curve, Points, RefLine, Regions, Scale

Ticks = tuple[list[float], list[float], list[str], str]
RIGHT, FOOT = 14.0, 44.0  # margins: right of the plot, and below it for ticks and the label of x


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's box in pixels and the way from values into it."""

    box: Box
    x: scales.Projection
    y: scales.Projection

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> list[Line]:
        """The pieces of a curve that are finite and within the box, in pixels."""
        pieces = (
            [(xs, ys)] if all(map(math.isfinite, ys)) and all(map(math.isfinite, xs)) else _pieces(xs, ys)
        )
        return [part for px, py in pieces for part in _clip(self.x(px), self.y(py), self.box)]


def chart(panel: Chart, width: float) -> str:
    """The chart as one SVG drawing."""
    head, top = svg.title(panel.title, width)
    regions = [m for m in panel.marks if isinstance(m, Regions)]
    keys, key_height = svg.legend(_region_keys(regions), width, top)
    top += key_height + (8 if key_height else 0)
    height = top + (320.0 if width > 400 else 260.0) + FOOT
    frame, axes = _axes(panel, width, top + 26, height - FOOT)
    colored = list(_colored(panel))
    lines = {i: frame.line(m.xs, m.ys) for i, (m, _) in enumerate(colored) if isinstance(m, Curve)}
    labels = _labels(frame, colored, lines)
    body = [svg.group('shape-rendering="crispEdges"', (_regions(frame, m) for m in regions)), axes]
    body += [_band(frame, m, c) for m, c in colored if isinstance(m, Band)]
    body += [svg.group(REFERENCE, (_ref_line(frame, m) for m, _ in colored if isinstance(m, RefLine)))]
    body += [svg.group(CURVES, (_curve(lines[i], colored[i][0], colored[i][1]) for i in lines))]
    body += [_points(frame, m, c) for m, c in colored if isinstance(m, Points)]
    said = panel.title or f"{panel.y.label} against {panel.x.label}"
    return svg.picture(width, height, said, head + keys + body + [labels])


REFERENCE = 'stroke="currentColor" stroke-opacity=".6" stroke-dasharray="4 3" stroke-width="1.2"'
CURVES = 'fill="none" stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"'


def _colored(panel: Chart) -> Iterable[tuple]:
    """Every mark with its colour: its own, or the next of the palette."""
    following = 0
    for mark in panel.marks:
        if isinstance(mark, RefLine | Regions):
            yield mark, None
        elif mark.color is None:
            yield mark, following
            following += 1
        else:
            yield mark, mark.color


# The axes


def _axes(panel: Chart, width: float, top: float, bottom: float) -> tuple[Frame, str]:
    """The frame, and grid, ticks and labels of both axes."""
    (x0, x1), (y0, y1) = panel.ranges()
    wide = width > 400
    y_ticks = scales.ticks(panel.y.scale, y0, y1, 7 if wide else 6)
    y_texts, y_unit = scales.tick_texts(y_ticks, panel.y.scale, panel.y.unit)
    left = 8 * math.ceil((max(map(svg.measure, y_texts), default=0) + 9) / 8)
    right = width - RIGHT
    box = (left, top, right, bottom)
    frame = Frame(
        box,
        scales.project(panel.x.scale, x0, x1, left, right),
        scales.project(panel.y.scale, y0, y1, bottom, top),
    )
    x_ticks, middles, x_texts, x_unit = _fitting_ticks(panel.x, frame.x, (x0, x1), 9 if wide else 6, width)
    xs, ys = frame.x(x_ticks), frame.y(y_ticks)
    grid = "".join(
        [f"M{left},{y:.1f}H{right:.1f}" for y in ys] + [f"M{x:.1f},{top:.1f}V{bottom:.1f}" for x in xs]
    )
    ticks = [svg.text(x, bottom + 18, t) for x, t in zip(middles, x_texts, strict=True)]
    sides = [svg.text(left - 7, y + 4.5, t) for y, t in zip(ys, y_texts, strict=True)]
    return frame, (
        f'<path d="{grid}" stroke="currentColor" stroke-opacity=".11"/>'
        f'<path d="M{left},{bottom:.1f}H{right:.1f}" stroke="currentColor" stroke-opacity=".4"/>'
        + svg.group(svg.QUIET, [
            svg.group('text-anchor="middle"', ticks), svg.group('text-anchor="end"', sides),
            svg.text(0, top - 14, svg.fit(f"↑ {_named(panel.y, y_unit)}", width)),
            svg.text(right, bottom + 38, svg.fit(f"{_named(panel.x, x_unit)} →", right), 'text-anchor="end"'),
        ])
    )  # fmt: skip


def _fitting_ticks(axis: Scale, x: scales.Projection, ends: tuple[float, float], most: int, width: float) -> Ticks:
    """As many ticks as stand beside each other with some air: values, the middles of their texts, texts, unit."""
    while True:
        values = scales.ticks(axis.scale, *ends, most)
        texts, unit = scales.tick_texts(values, axis.scale, axis.unit)
        halves = [svg.measure(t) / 2 for t in texts]
        middles = [min(max(at, half), width - half) for at, half in zip(x(values), halves, strict=True)]
        spots = list(zip(middles, halves, strict=True))
        if most <= 2 or all(b - a >= left + right + 9 for (a, left), (b, right) in pairwise(spots)):
            return values, middles, texts, unit
        most -= 1


def _named(axis: Scale, unit: str) -> str:
    return f"{axis.label} ({unit})" if unit else axis.label


# The marks


def _curve(lines: list[Line], mark: Curve, color: int) -> str:
    dash = ' stroke-dasharray="7 5"' if mark.dashed else ""
    return "".join(f'<polyline points="{svg.points(*line)}" stroke="{ink(color)}"{dash}/>' for line in lines)


def _band(frame: Frame, mark: Band, color: int) -> str:
    keep = [
        i for i, ends in enumerate(zip(mark.low, mark.high, strict=True)) if all(map(math.isfinite, ends))
    ]
    if not keep:
        return ""
    left, top, right, bottom = frame.box
    xs = [min(max(x, left), right) for x in frame.x([mark.xs[i] for i in keep])]
    low, high = (
        [min(max(y, top), bottom) for y in frame.y([ys[i] for i in keep])] for ys in (mark.low, mark.high)
    )
    outline = svg.points(xs + xs[::-1], low + high[::-1])
    return f'<polygon points="{outline}" fill="{ink(color)}" fill-opacity=".16"/>'


def _ref_line(frame: Frame, mark: RefLine) -> str:
    left, top, right, bottom = frame.box
    at = _at(frame, mark)
    if at is None:
        return ""
    return (
        f'<path d="M{at:.1f},{top:.1f}V{bottom:.1f}"/>'
        if mark.axis == "x"
        else f'<path d="M{left:.1f},{at:.1f}H{right:.1f}"/>'
    )


def _at(frame: Frame, mark: RefLine) -> float | None:
    """Where a reference line stands in pixels; None where that is not in the picture."""
    if not math.isfinite(mark.at):
        return None
    low, high = (frame.box[0], frame.box[2]) if mark.axis == "x" else (frame.box[1], frame.box[3])
    at = (frame.x if mark.axis == "x" else frame.y)([mark.at])[0]
    return at if low - 0.1 <= at <= high + 0.1 else None


def _points(frame: Frame, mark: Points, color: int) -> str:
    """All dots in two strokes of one path: a rim in the page's colour, then the colour."""
    dots = "".join([f"M{x:.1f},{y:.1f}h0" for x, y, _ in _visible(frame, mark)])
    if not dots:
        return ""
    return (
        f'<g stroke-linecap="round"><path d="{dots}" stroke="var(--ex-bg,#fff)" stroke-width="13"/>'
        f'<path d="{dots}" stroke="{ink(color)}" stroke-width="10"/></g>'
    )


def _visible(frame: Frame, mark: Points) -> list[tuple[float, float, str]]:
    """The dots within the box: pixels and label."""
    left, top, right, bottom = frame.box
    keep = [i for i, p in enumerate(zip(mark.xs, mark.ys, strict=True)) if all(map(math.isfinite, p))]
    xs, ys = frame.x([mark.xs[i] for i in keep]), frame.y([mark.ys[i] for i in keep])
    labels = [mark.labels[i] if mark.labels else "" for i in keep]
    return [
        p
        for p in zip(xs, ys, labels, strict=True)
        if left - 1 <= p[0] <= right + 1 and top - 1 <= p[1] <= bottom + 1
    ]


def _regions(frame: Frame, mark: Regions) -> str:
    """One path for every region, a rectangle for every run of its cells in a row."""
    xs, ys = frame.x(mark.xs), frame.y(mark.ys)
    left, top, right, bottom = frame.box
    xs, ys = [min(max(x, left), right) for x in xs], [min(max(y, top), bottom) for y in ys]
    paths: dict[int, list[str]] = {}
    for j, row in enumerate(mark.cells):
        i = 0
        for cell, run in groupby(row):
            end = i + len(list(run))
            if cell is not None:
                paths.setdefault(cell, []).append(
                    f"M{xs[i]:.1f},{ys[j]:.1f}H{xs[end]:.1f}V{ys[j + 1]:.1f}H{xs[i]:.1f}z"
                )
            i = end
    return "".join(f'<path d="{"".join(paths[c])}" {_region_paint(mark, c)}/>' for c in sorted(paths))


def _region_paint(mark: Regions, cell: int) -> str:
    if mark.ramp:
        return f'fill="{ink(0)}" fill-opacity="{0.08 + 0.8 * cell / max(len(mark.labels) - 1, 1):.2f}"'
    return f'fill="{ink(mark.colors[cell] if mark.colors else cell)}" fill-opacity=".32"'


def _region_keys(regions: Sequence[Regions]) -> list[tuple[str, str]]:
    return [(label, _region_paint(m, i)) for m in regions for i, label in enumerate(m.labels) if label]


# The labels


def _labels(frame: Frame, colored: list[tuple], lines: dict[int, list[Line]]) -> str:
    """Every label beside its mark; those that find no place stand in a row above the plot."""
    left, top, right, bottom = frame.box
    placer = Placer(
        (left + 1, top - 11, right + RIGHT, bottom - 2), [p for parts in lines.values() for p in parts]
    )
    for mark, _ in colored:
        if isinstance(mark, Points):
            placer.dots += [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in _visible(frame, mark)]
    parts, homeless = [], []
    for words, color, places in _wanted(frame, colored, lines, placer.box):
        spot = placer.place(svg.measure(words), places)
        paint = f'fill="{ink(color)}"' if color is not None else 'fill-opacity=".8"'
        if spot:
            parts.append(svg.text(*spot, words, paint))
        else:
            homeless.append((words, paint))
    x = right
    for words, paint in reversed(homeless):
        parts.append(svg.text(x, top - 14, words, f'{paint} text-anchor="end"'))
        x -= svg.measure(words) + 14
    return svg.group(f'class="ex-labels" font-weight="500" {svg.HALO}', parts)


def _wanted(frame: Frame, colored: list[tuple], lines: dict[int, list[Line]], box: Box) -> Iterable[tuple]:
    """Labels with their colours and candidate places: points first, then reference lines, curves, bands."""
    order = (Points, RefLine, Curve, Band)
    for kind in order:
        for i, (mark, color) in enumerate(colored):
            if isinstance(mark, kind):
                yield from _label_of(frame, mark, color, lines.get(i, []), box)


def _label_of(frame: Frame, mark, color: int | None, parts: list[Line], box: Box) -> Iterable[tuple]:
    words = svg.fit(mark.label, (box[2] - box[0]) * 0.6)
    width = svg.measure(words)
    if isinstance(mark, Points):
        dots = _visible(frame, mark)
        for x, y, label in dots if mark.labels else [(*d[:2], words) for d in dots[-1:]]:
            if label:
                yield label, color, draw_labels.around(x, y, svg.measure(label))
    elif isinstance(mark, RefLine):
        at = _at(frame, mark)
        if at is not None and words:
            yield (
                words,
                None,
                (draw_labels.upright if mark.axis == "x" else draw_labels.lying)(at, width, box),
            )
    elif words:
        if isinstance(mark, Band):
            parts = frame.line(mark.xs, mark.high)
        longest = max(parts, key=lambda line: line[0][-1] - line[0][0], default=None)
        if longest:
            yield words, color, draw_labels.along(_left_to_right(longest), width, box)


def _left_to_right(line: Line) -> Line:
    xs, ys = line
    return line if xs[0] <= xs[-1] else (xs[::-1], ys[::-1])


# Cutting lines to what can be drawn


def _pieces(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[list[float], list[float]]]:
    """The stretches of a curve between its gaps."""
    pairs = zip(xs, ys, strict=True)
    runs = groupby(pairs, key=lambda p: math.isfinite(p[0]) and math.isfinite(p[1]))
    stretches = [list(run) for drawn, run in runs if drawn]
    return [([x for x, _ in s], [y for _, y in s]) for s in stretches]


def _clip(xs: list[float], ys: list[float], box: Box) -> list[Line]:
    """The parts of a line within the box; the line itself where all of it is."""
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
    """The part of a segment within the box (Liang and Barsky); None where there is none."""
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
