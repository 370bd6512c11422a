"""How is a time line drawn? A lane a row, spans as tinted blocks, time below."""

from scalingbook_lib.explorers import scales, svg
from scalingbook_lib.explorers.palette import ink
from scalingbook_lib.explorers.view import Span, Timeline

ROW, BLOCK, FOOT = 38.0, 28.0, 44.0


def timeline(panel: Timeline, width: float) -> str:
    """The time line as one SVG drawing; on a narrow one the lanes' names stand above their lanes."""
    wide = width > 400
    head, top = svg.title(panel.title, width)
    top += 16 if panel.refs else 0
    left = min(max(map(svg.measure, panel.lanes)) + 12, 0.3 * width) if wide else 0.0
    row = ROW if wide else ROW + 16
    right, bottom = width - 10, top + row * len(panel.lanes)
    low, high = panel.range()
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
        _axis(panel, place, (left, top, right, bottom)),
        f'<path d="{floor}" stroke="currentColor" stroke-opacity=".3"/>',
        *names,
        *[
            _span(s, *place([s.start, min(s.end, high)]), ys[s.lane], panel.unit)
            for s in panel.spans
            if s.start <= high
        ],
        *[_ref(r.label, place([r.at])[0], top, bottom, width) for r in panel.refs if low <= r.at <= high],
    ]
    return svg.picture(width, bottom + FOOT, panel.title or "time line", head + body)


def _span(span: Span, start: float, end: float, y: float, unit: str) -> str:
    """A block with its label where that fits; the pointer always finds label and length."""
    long = scales.written(span.end - span.start, unit)
    paint = f'fill="{ink(span.color)}" fill-opacity=".38" stroke="{ink(span.color)}"'
    block = (
        f'<rect x="{start:.1f}" y="{y:.1f}" width="{max(end - start, 0.5):.1f}" height="{BLOCK:g}" rx="2" {paint}>'
        f"<title>{svg.escape(f'{span.label} {long}'.strip())}</title></rect>"
    )
    if not span.label or svg.measure(span.label) + 6 > end - start:
        return block
    return block + svg.text((start + end) / 2, y + BLOCK / 2 + 4.5, span.label, 'text-anchor="middle"')


def _axis(panel: Timeline, place: scales.Projection, box: tuple[float, float, float, float]) -> str:
    left, top, right, bottom = box
    values = scales.ticks("linear", *panel.range(), max(int((right - left) / 70), 2))
    texts, unit = scales.tick_texts(values, "linear", panel.unit)
    xs = place(values)
    grid = "".join([f"M{x:.1f},{top:.1f}V{bottom:.1f}" for x in xs])
    middles = [
        min(max(x, svg.measure(t) / 2), right + 10 - svg.measure(t) / 2)
        for x, t in zip(xs, texts, strict=True)
    ]
    ticks = svg.group(
        'text-anchor="middle"', [svg.text(x, bottom + 17, t) for x, t in zip(middles, texts, strict=True)]
    )
    name = svg.fit(f"{panel.label} ({unit}) →" if unit else f"{panel.label} →", right)
    return f'<path d="{grid}" stroke="currentColor" stroke-opacity=".11"/>' + svg.group(
        svg.QUIET, [ticks, svg.text(right, bottom + 38, name, 'text-anchor="end"')]
    )


def _ref(label: str, x: float, top: float, bottom: float, width: float) -> str:
    words = svg.fit(label, width - 8)
    half = svg.measure(words) / 2
    line = f'<path d="M{x:.1f},{top - 2:.1f}V{bottom:.1f}" stroke="currentColor" stroke-opacity=".6" stroke-dasharray="4 3"/>'
    middle = min(max(x, half), width - half)
    return line + svg.text(middle, top - 6, words, 'text-anchor="middle" fill-opacity=".8" font-weight="500"')
