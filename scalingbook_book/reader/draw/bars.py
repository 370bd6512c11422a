"""Draw horizontal bars and timelines: one row per label, with each value at the end of its bar.

Stacked bars that all reach 100% carry the percentage of each part instead, where it fits.
"""

from scalingbook_book.reader.draw import axes, svg
from scalingbook_book.reader.draw.palette import ink
from scalingbook_book.reader.explorers import scales
from scalingbook_book.reader.explorers.view import Bars, Scale, Span, Timeline

THICK, THIN, BETWEEN, LINE = 22.0, 14.0, 13.0, 15.0


def bars(panel: Bars, width: float) -> str:
    """Return the bars as one SVG drawing; on a narrow one the labels are above their bars."""
    wide = width > 400
    head, top = svg.title(panel.title, width)
    keys, key_height = svg.legend(_keys(panel), width, top)
    top += key_height + (8 if key_height else 0) + (16 if panel.refs else 0)
    left = min(max(map(svg.measure, panel.labels)) + 10, 0.42 * width) if wide else 0.0
    row = (THICK if _rows(panel) == 1 else THIN * _rows(panel)) + BETWEEN + (0 if wide else 18)
    bottom = top + row * len(panel.labels) + 4
    values = ["" if _shares(panel) else scales.written(v, panel.value.unit) for v in panel.lengths()]
    right = width - max(max(map(svg.measure, values)), 16) - 8
    low, high = panel.range()
    place = scales.project(panel.value.scale, low, high, left, right)
    most = max(int((right - left) / 60), 2)
    body = [
        axes.across(panel.value, (low, high), place, box=(left, top, right, bottom), width=width, most=most)
    ]
    written: list[str] = []
    inside: list[str] = []
    for i, label in enumerate(panel.labels):
        y = top + i * row + BETWEEN / 2
        body.append(_label(label, left, y, row, wide))
        bars_, texts = _row(panel, i, place, (left, right), y + (0 if wide else 18))
        body += bars_
        (inside if _shares(panel) else written).extend(texts)
    body.append(axes.uprights(panel.refs, (low, high), place, (top, bottom), width))
    body.append(svg.group(_INSIDE, inside))
    body.append(svg.group(svg.HALO, written))  # over the reference lines, which its halo interrupts
    return svg.picture(width, bottom + axes.FOOT, panel.title or panel.value.label, head + keys + body)


_INSIDE = 'fill="var(--ex-bg,#fff)" font-weight="500" text-anchor="middle"'  # legible on every color of a bar


def _shares(panel: Bars) -> bool:
    """Return whether every bar is a whole, of which the parts are percentages."""
    return (
        panel.stacked
        and panel.value.unit == "%"
        and all(abs(length - 100) < 0.5 for length in panel.lengths())
    )


def _rows(panel: Bars) -> int:
    return 1 if panel.stacked else len(panel.series)


def _keys(panel: Bars) -> list[tuple[str, str]]:
    if len(panel.series) == 1:
        return []
    return [(s.label, f'fill="{ink(_color(panel, i))}"') for i, s in enumerate(panel.series)]


def _color(panel: Bars, i: int) -> int:
    color = panel.series[i].color
    return i if color is None else color


def _label(words: str, left: float, y: float, row: float, wide: bool) -> str:
    if not wide:
        return svg.text(0, y + 11, svg.fit(words, 330))
    lines = svg.wrap(words, left - 8) if svg.measure(words) > left - 8 else [words]
    most = int((row - 4) // LINE)
    if len(lines) > most:
        lines = [*lines[: most - 1], svg.fit(" ".join(lines[most - 1 :]), left - 8)]
    first = y + (row - BETWEEN) / 2 + 4.5 - LINE / 2 * (len(lines) - 1)
    return "".join(
        svg.text(left - 8, first + LINE * k, line, 'text-anchor="end"') for k, line in enumerate(lines)
    )


def _row(
    panel: Bars, i: int, place: scales.Projection, ends: tuple[float, float], y: float
) -> tuple[list[str], list[str]]:
    """Return the bars of one label, and their values."""
    parts, texts, start = [], [], ends[0]
    thick, air = (THICK, 0.0) if _rows(panel) == 1 else (THIN, 2.0)
    pixel = lambda v: min(max(place([v])[0], ends[0]), ends[1]) if v > 0 else ends[0]  # noqa: E731
    total = 0.0
    for n, series in enumerate(panel.series):
        value = series.values[i]
        total = total + value if panel.stacked else value
        end = pixel(total)
        length = max(end - start, 0.0)
        paint = f'fill="{ink(_color(panel, n))}" fill-opacity=".85"'
        note = f"{series.label}: {scales.written(value, panel.value.unit)}"
        parts.append(svg.rect(start, y, length, thick - air, paint, note=note))
        if not panel.stacked:
            texts.append(svg.text(end + 6, y + thick / 2 + 4, scales.written(value, panel.value.unit)))
            y += thick if len(panel.series) > 1 else 0
        if _shares(panel) and length > svg.measure(share := f"{value:.0f}%") + 6:
            texts.append(svg.text(start + length / 2, y + thick / 2 + 4.5, share))
        start = end if panel.stacked else ends[0]
    if panel.stacked and not _shares(panel):
        texts.append(svg.text(start + 6, y + thick / 2 + 4.5, scales.written(total, panel.value.unit)))
    return parts, texts


ROW, BLOCK = 38.0, 28.0


def timeline(panel: Timeline, width: float) -> str:
    """Return the timeline as one SVG drawing; on a narrow one the row names are above their rows."""
    wide = width > 400
    head, top = svg.title(panel.title, width)
    top += 16 if panel.refs else 0
    left = min(max(map(svg.measure, panel.lanes)) + 12, 0.3 * width) if wide else 0.0
    row = ROW if wide else ROW + 16
    right, bottom = width - 10, top + row * len(panel.lanes)
    low, high = panel.range()
    most = max(int((right - left) / 60), 2)
    place = scales.project("linear", low, high, left, right)
    ys = {lane: top + i * row + (0 if wide else 18) for i, lane in enumerate(panel.lanes)}
    names = [
        svg.text(left - 10, y + BLOCK / 2 + 4.5, svg.fit(lane, left - 10), 'text-anchor="end"')
        if wide
        else svg.text(0, y - 5, svg.fit(lane, width))
        for lane, y in ys.items()
    ]
    floor = "".join([f"M{left:.1f},{y + BLOCK:.1f}H{right:.1f}" for y in ys.values()])
    body = [
        axes.across(
            Scale(panel.label, panel.unit),
            (low, high),
            place,
            box=(left, top, right, bottom),
            width=width,
            most=most,
        ),
        f'<path d="{floor}" stroke="currentColor" stroke-opacity=".3"/>',
        *names,
        *_spans(
            [(s, place([s.start, min(s.end, high)]), ys[s.lane]) for s in panel.spans if s.start <= high],
            panel.unit,
        ),
        axes.uprights(panel.refs, (low, high), place, (top, bottom), width),
    ]
    return svg.picture(width, bottom + axes.FOOT, panel.title or "time line", head + body)


def _spans(spans: list[tuple[Span, list[float], float]], unit: str) -> list[str]:
    """Return blocks from start to end at the height of their row, with labels where they fit.

    A small number of blocks have tooltips. A large number are drawn as one path per color plus one text
    element, which a browser lays out faster.
    """
    labels = [
        svg.text(sum(ends) / 2, y + BLOCK / 2 + 4.5, span.label, 'text-anchor="middle"')
        if span.label and svg.measure(span.label) + 6 <= ends[1] - ends[0]
        else ""
        for span, ends, y in spans
    ]
    if len(spans) <= svg.MANY:
        return [
            svg.rect(
                *(start, y, max(end - start, 0.5), BLOCK),
                f'rx="2" {_tint(span.color)}',
                note=f"{span.label} {scales.written(span.end - span.start, unit)}".strip(),
            )
            + label
            for (span, (start, end), y), label in zip(spans, labels, strict=True)
        ]
    blocks = svg.paths(
        (_tint(span.color), f"M{start:.1f},{y:.1f}H{end:.1f}v{BLOCK}H{start:.1f}z")
        for span, (start, end), y in spans
    )
    return [*blocks, svg.texts('text-anchor="middle"', labels)]


def _tint(color: int) -> str:
    return f'fill="{ink(color)}" fill-opacity=".38" stroke="{ink(color)}"'
