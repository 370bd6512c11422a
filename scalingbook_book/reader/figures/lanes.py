"""Draw durations as named rows that start together, with labels inside or to the right of the bars.

>>> lanes(680, [Span("network", 0, 1, "1 s"), Span("memory", 0, 4, "4 s")]).high
72.0
"""

from collections.abc import Sequence

from scalingbook_book.reader.draw.svg import measure
from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.shapes import IDLE, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

ROW = 36.0


def lanes(wide: float, spans: Sequence[Span], *, end: float = 0.0, title: str = "") -> Sketch:
    """Return the rows in the given order, each name at the left or, on a phone, above its row.

    The scale ends at `end`, or at the end of the last span. A row's last label is placed after the bar if it
    does not fit inside; idle time is drawn as an outline.
    """
    abreast = wide > 400
    names = list(dict.fromkeys(span.lane for span in spans))
    left = max(map(measure, names)) + 12 if abreast else 2.0
    scale = _scale(wide - left, spans, end)
    head, deep = (26.0 if title else 0.0), ROW if abreast else ROW + 18
    levels = {name: head + deep * k + (0 if abreast else 18) for k, name in enumerate(names)}
    shapes: list[Shape] = [Words(x=2, y=14, text=title, bold=True, align="start")] if title else []
    for name, y in levels.items():
        x, level = (left - 8, y + 19) if abreast else (2.0, y - 5)
        shapes.append(Words(x=x, y=level, text=name, align="end" if abreast else "start", quiet=True))
    for span in spans:
        x, long, y = left + scale * span.start, scale * (span.end - span.start), levels[span.lane]
        fits = _fits(span, scale)
        last = span.end == max(other.end for other in spans if other.lane == span.lane)
        label_after = "" if fits or not last else span.label
        text = span.label if fits else ""
        idle = span.color == IDLE
        shapes.append(
            Area(
                x=x,
                y=y,
                wide=long,
                high=28,
                text=text,
                right=label_after,
                color=span.color,
                shade=0.05 if idle else 0.5,
                dashed=idle,
            )
        )
    return Sketch(wide, head + deep * len(names), shapes)


def _scale(room: float, spans: Sequence[Span], end: float) -> float:
    """Return units per second, so that whatever ends last, a span or the label after it, ends at the edge."""
    last = {span.lane: span for span in sorted(spans, key=lambda span: span.end)}.values()
    scale = (room - 2) / (end or max(span.end for span in last))
    for span in [*last, *last]:  # two passes: after the first, another label may have to move out of its bar
        if not _fits(span, scale):
            scale = min(scale, (room - 12 - measure(span.label)) / span.end)
    return scale


def _fits(span: Span, scale: float) -> bool:
    return measure(span.label) + 6 < scale * (span.end - span.start)
