"""How is a time line drawn? A lane a row, spans as tinted blocks, time below."""

from scalingbook_lib.reader.draw import axes, svg
from scalingbook_lib.reader.draw.palette import ink
from scalingbook_lib.reader.explorers import scales
from scalingbook_lib.reader.explorers.view import Scale, Span, Timeline

ROW, BLOCK = 38.0, 28.0


def timeline(panel: Timeline, width: float) -> str:
    """The time line as one SVG drawing; on a narrow one the lanes' names stand above their lanes."""
    wide = width > 400
    head, top = svg.title(panel.title, width)
    top += 16 if panel.refs else 0
    left = min(max(map(svg.measure, panel.lanes)) + 12, 0.3 * width) if wide else 0.0
    row = ROW if wide else ROW + 16
    right, bottom = width - 10, top + row * len(panel.lanes)
    low, high = panel.range()
    most = max(int((right - left) / 70), 2)
    place = scales.project("linear", low, high, left, right)
    ys = {lane: top + i * row + (0 if wide else 18) for i, lane in enumerate(panel.lanes)}
    names = [
        svg.text(left - 10, y + BLOCK / 2 + 4.5, svg.fit(lane, left - 10), 'text-anchor="end"')
        if wide
        else svg.text(0, y - 5, svg.fit(lane, width))
        for lane, y in ys.items()
    ]
    floor = "".join([f"M{left:.1f},{y + BLOCK:.1f}H{right:.1f}" for y in ys.values()])
    shown = [s for s in panel.spans if s.start <= high]
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
        *(_span(s, place([s.start, min(s.end, high)]), ys[s.lane], panel.unit) for s in shown),
        axes.uprights(panel.refs, (low, high), place, (top, bottom), width),
    ]
    return svg.picture(width, bottom + axes.FOOT, panel.title or "time line", head + body)


def _span(span: Span, ends: list[float], y: float, unit: str) -> str:
    """A block with its label where that fits; the pointer always finds label and length."""
    start, end = ends
    long = scales.written(span.end - span.start, unit)
    paint = f'fill="{ink(span.color)}" fill-opacity=".38" stroke="{ink(span.color)}"'
    note = f"{span.label} {long}".strip()
    block = svg.rect(start, y, max(end - start, 0.5), BLOCK, f'rx="2" {paint}', note=note)
    if not span.label or svg.measure(span.label) + 6 > end - start:
        return block
    return block + svg.text((start + end) / 2, y + BLOCK / 2 + 4.5, span.label, 'text-anchor="middle"')
