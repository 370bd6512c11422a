"""Draw a chart of curves, points, bands, reference lines and regions, with labels beside them.

A wide drawing is 680 units across. A narrow one is 340 units across, with the same type size, fewer ticks and
less height.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from scalingbook_book.reader.draw import axes as draw_axes
from scalingbook_book.reader.draw import labels, svg
from scalingbook_book.reader.draw.axes import FOOT, RIGHT, Frame, Line
from scalingbook_book.reader.draw.labels import Place, Placer
from scalingbook_book.reader.draw.palette import ink
from scalingbook_book.reader.explorers.view import Band, Chart, Curve, Points, RefLine, Regions, colored

DOTS = (svg.MANY, 10.0, 3.0), (4 * svg.MANY, 6.0, 3.0), (math.inf, 3.6, 1.2)
"""Maximum number of dots for each dot diameter, and the width of the rim on both sides together."""
CURVES = 'fill="none" stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"'


def chart(panel: Chart, width: float) -> str:
    """Return the chart as one SVG drawing."""
    head, top = svg.title(panel.title, width)
    keys, key_height = svg.legend(_region_keys(panel), width, top)
    top += key_height + (8 if key_height else 0) + 26
    bottom = top + (312.0 if width > 400 else 256.0)
    frame, axes = draw_axes.both(panel, width, top, bottom)
    marks = colored(panel)
    lines = [frame.line(m.xs, m.ys) if isinstance(m, Curve) else [] for m, _ in marks]
    body = [
        svg.group(
            'shape-rendering="crispEdges"', [_regions(frame, m) for m, _ in marks if isinstance(m, Regions)]
        )
    ]
    body += [axes, *(_band(frame, m, c) for m, c in marks if isinstance(m, Band))]
    body += [svg.group(draw_axes.DASHED, [_ref_line(frame, m) for m, _ in marks if isinstance(m, RefLine)])]
    curves = [_curve(line, m, c) for (m, c), line in zip(marks, lines, strict=True) if isinstance(m, Curve)]
    dots = [(m, c) for m, c in marks if isinstance(m, Points)]
    size = next(size for most, *size in DOTS if sum(len(m.xs) for m, _ in dots) <= most)
    body += [svg.group(CURVES, curves), *(_points(frame, m, c, *size) for m, c in dots)]
    label = panel.title or f"{panel.y.label} against {panel.x.label}"
    return svg.picture(width, bottom + FOOT, label, [*head, *keys, *body, _labels(frame, marks, lines)])


def _curve(lines: list[Line], mark: Curve, color: int) -> str:
    dash = ' stroke-dasharray="7 5"' if mark.dashed else ""
    return "".join(
        [f'<polyline points="{svg.points(*line)}" stroke="{ink(color)}"{dash}/>' for line in lines]
    )


def _band(frame: Frame, mark: Band, color: int) -> str:
    ends = zip(mark.low, mark.high, strict=True)
    keep = [i for i, (a, b) in enumerate(ends) if math.isfinite(a) and math.isfinite(b)]
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
    at = frame.at(mark)
    if at is None:
        return ""
    way = f"M{at:.1f},{top:.1f}V{bottom:.1f}" if mark.axis == "x" else f"M{left:.1f},{at:.1f}H{right:.1f}"
    return f'<path d="{way}"/>'


def _points(frame: Frame, mark: Points, color: int, size: float, rim: float) -> str:
    """Return all dots as two strokes of one path: a rim in the page's color, then the dot color."""
    dots = "".join([f"M{x:.1f},{y:.1f}h0" for x, y, _ in _visible(frame, mark)])
    if not dots:
        return ""
    outline = f'stroke="var(--ex-bg,#fff)" stroke-width="{size + rim:g}"'
    return (
        f'<g stroke-linecap="round"><path d="{dots}" {outline}/>'
        f'<path d="{dots}" stroke="{ink(color)}" stroke-width="{size:g}"/></g>'
    )


def _visible(frame: Frame, mark: Points) -> list[tuple[float, float, str]]:
    """Return the dots within the box as pixels and label."""
    left, top, right, bottom = frame.box
    pairs = zip(mark.xs, mark.ys, strict=True)
    keep = [i for i, (x, y) in enumerate(pairs) if math.isfinite(x) and math.isfinite(y)]
    xs, ys = frame.x([mark.xs[i] for i in keep]), frame.y([mark.ys[i] for i in keep])
    dots = zip(xs, ys, [mark.labels[i] if mark.labels else "" for i in keep], strict=True)
    return [d for d in dots if left - 1 <= d[0] <= right + 1 and top - 1 <= d[1] <= bottom + 1]


# Regions


def _regions(frame: Frame, mark: Regions) -> str:
    """Return one path per region, with one rectangle for each run of its cells in a row."""
    left, top, right, bottom = frame.box
    xs = [f"{min(max(x, left), right):.1f}" for x in frame.x(mark.xs)]
    ys = [f"{min(max(y, top), bottom):.1f}" for y in frame.y(mark.ys)]
    paths: dict[int, list[str]] = {}
    for j, row in enumerate(mark.cells):
        i = 0
        for cell, run in groupby(row):
            end = i + len(list(run))
            if cell is not None:
                paths.setdefault(cell, []).append(f"M{xs[i]},{ys[j]}H{xs[end]}V{ys[j + 1]}H{xs[i]}z")
            i = end
    return "".join([f'<path d="{"".join(paths[c])}" {_region_paint(mark, c)}/>' for c in sorted(paths)])


def _region_paint(mark: Regions, cell: int) -> str:
    return f'fill="{ink(mark.color_of(cell))}" fill-opacity="{mark.shade(cell):.2f}"'


def _region_keys(panel: Chart) -> list[tuple[str, str]]:
    regions = [m for m in panel.marks if isinstance(m, Regions)]
    return [(label, _region_paint(m, i)) for m in regions for i, label in enumerate(m.labels) if label]


# Labels


def _labels(frame: Frame, marks: Sequence[tuple], lines: Sequence[list[Line]]) -> str:
    """Return every label beside its mark; labels that fit nowhere go into a row above the plot."""
    left, top, right, bottom = frame.box
    # a label above a plot of regions is clear of their colors; elsewhere it is clear of the name of the axis
    over = 13 if any(isinstance(mark, Regions) for mark, _ in marks) else 11
    placer = Placer(
        (left + 1, top - over, right + RIGHT, bottom - 2), [part for parts in lines for part in parts]
    )
    for mark, _ in marks:
        if isinstance(mark, Points):
            placer.dots += [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in _visible(frame, mark)]
        elif isinstance(mark, RefLine) and (at := frame.at(mark)) is not None:
            upright = mark.axis == "x"
            placer.refs.append((at - 1, top, at + 1, bottom) if upright else (left, at - 1, right, at + 1))
    parts, x = [], right
    for words, paint, places in _wanted(frame, marks, lines, placer):
        spot = placer.place(svg.measure(words), places)
        if spot:
            parts.append(svg.text(*spot, words, paint))
        else:
            parts.append(svg.text(x, top - 14, words, f'{paint} text-anchor="end"'))
            x -= svg.measure(words) + 14
    return svg.group(f'font-weight="500" {svg.HALO}', parts)


def _wanted(
    frame: Frame, marks: Sequence[tuple], lines: Sequence[list[Line]], placer: Placer
) -> Iterator[tuple[str, str, Iterator[Place]]]:
    """Yield labels with paint and candidate places: points first, then reference lines, curves, bands."""
    for kind in (Points, RefLine, Curve, Band):
        for (mark, color), parts in zip(marks, lines, strict=True):
            if isinstance(mark, kind):
                paint = 'fill-opacity=".8"' if kind is RefLine else f'fill="{ink(color)}"'
                room = (placer.box[2] - placer.box[0]) * 0.7
                for words, places in _places(frame, mark, parts, placer):
                    yield svg.fit(words, room), paint, places


def _places(frame: Frame, mark, parts: list[Line], placer: Placer) -> Iterator[tuple[str, Iterator[Place]]]:
    """Yield the labels of one mark, each with its candidate places."""
    box, width = placer.box, svg.measure(mark.label)
    if isinstance(mark, Points):
        dots = _visible(frame, mark)
        named = dots if mark.labels else [(x, y, mark.label) for x, y, _ in dots[-1:]]
        yield from ((label, labels.around(x, y, svg.measure(label))) for x, y, label in named if label)
    elif not mark.label:
        return
    elif isinstance(mark, RefLine):
        at = frame.at(mark)
        if at is not None:
            yield mark.label, (labels.upright if mark.axis == "x" else labels.lying)(at, width, box)
    else:
        lines = parts or (frame.line(mark.xs, mark.high) if isinstance(mark, Band) else [])
        longest = max(lines, key=lambda line: abs(line[0][-1] - line[0][0]), default=None)
        if longest:
            xs, ys = longest
            rightwards = longest if xs[0] <= xs[-1] else (xs[::-1], ys[::-1])
            yield mark.label, labels.along(rightwards, width, box)
