"""Place labels so that each is close to its line and covers nothing.

Every label has candidate places in order of preference. A candidate is charged for the labels, points and
lines that it would cover, and the cheapest one is chosen. A place is (left, baseline, charge).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scalingbook_book.reader.draw.axes import Box, Line

Place = tuple[float, float, float]

ASCENT, DESCENT, GAP = 10.0, 3.0, 6.0
COVERS_LABEL, COVERS_POINT, COVERS_LINE, COVERS_REF = 1000.0, 200.0, 60.0, 30.0


@dataclass(slots=True)
class Placer:
    """The plot's box, its lines, and the labels placed so far."""

    box: Box
    lines: list[Line]
    taken: list[Box] = field(default_factory=list)
    dots: list[Box] = field(default_factory=list)
    refs: list[Box] = field(default_factory=list)  # reference lines

    def place(self, width: float, places: Iterable[Place]) -> tuple[float, float] | None:
        """Return the cheapest place for a label of this width, or None if each would cover another label."""
        best, cheapest = None, COVERS_LABEL
        for x, y, charge in places:
            if charge >= cheapest:
                continue
            cost = charge + self._cost((x, y - ASCENT, x + width, y + DESCENT), cheapest - charge)
            if cost < cheapest:
                best, cheapest = (x, y), cost
        if best:
            x, y = best
            self.taken.append((x - 3, y - ASCENT - 1, x + width + 3, y + DESCENT + 1))
        return best

    def _cost(self, label: Box, limit: float) -> float:
        left, top, right, bottom = label
        if left < self.box[0] or top < self.box[1] or right > self.box[2] or bottom > self.box[3]:
            return COVERS_LABEL
        if any(_overlap(label, other) for other in self.taken):
            return COVERS_LABEL
        cost = COVERS_POINT * sum([_overlap(label, dot) for dot in self.dots])
        cost += COVERS_REF * sum([_overlap(label, ref) for ref in self.refs])
        for line in self.lines:
            if cost >= limit:
                break
            low_high = between(line, left, right)
            if low_high and low_high[0] < bottom and low_high[1] > top:
                cost += COVERS_LINE
        return cost


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def between(line: Line, left: float, right: float) -> tuple[float, float] | None:
    """Return the highest and lowest pixel of a line between two x values, including its crossings of both."""
    xs, ys = line
    first, last = bisect_left(xs, left), bisect_right(xs, right)
    found = ys[first:last]
    for i, x in ((first, left), (last, right)):
        if 0 < i < len(xs):
            run = xs[i] - xs[i - 1]
            found.append(ys[i - 1] + (ys[i] - ys[i - 1]) * ((x - xs[i - 1]) / run if run else 0))
    return (min(found), max(found)) if found else None


def along(line: Line, width: float, box: Box) -> Iterator[Place]:
    """Yield places for a line's label from its right end to its left end: above, below and beside it."""
    start, end = max(line[0][0], box[0]), min(line[0][-1], box[2])
    for step, share in enumerate((1.0, 0.88, 0.74, 0.6, 0.46, 0.32, 0.18, 0.0)):
        x = start + share * (end - start)
        left = min(max(x - share * width, box[0] + 2), box[2] - width - 2)
        low_high = between(line, left, left + width)
        if low_high:
            steep = 4 * step + 0.6 * (low_high[1] - low_high[0])
            yield left, low_high[0] - GAP, steep
            yield left, low_high[1] + GAP + ASCENT, steep + 2
        here = between(line, x, x)
        if here:
            yield x + GAP + 2, here[0] + 4, 4 * step + 5
            yield x - GAP - 2 - width, here[0] + 4, 4 * step + 6


def around(x: float, y: float, width: float) -> Iterator[Place]:
    """Yield places for a point's label: right, left, above, below, then the corners."""
    right, left, middle = x + 9, x - 9 - width, x - width / 2
    yield from ((right, y + 4, 0), (left, y + 4, 2), (middle, y - 10, 4), (middle, y + 20, 6))
    yield from ((right - 3, y - 8, 8), (right - 3, y + 17, 9), (left + 3, y - 8, 10), (left + 3, y + 17, 11))
    yield from (
        (right + 8, y - 22, 14),
        (left - 8, y - 22, 15),
        (right + 8, y + 30, 16),
        (left - 8, y + 30, 17),
    )


def upright(x: float, width: float, box: Box) -> Iterator[Place]:
    """Yield places for the label of a vertical line: beside its top, then further down."""
    for step in range(8):
        y = box[1] + ASCENT + 2 + step * 17
        yield x + GAP, y, 6 * step
        yield x - GAP - width, y, 6 * step + 3


def lying(y: float, width: float, box: Box) -> Iterator[Place]:
    """Yield places for the label of a horizontal line: above it at the right, left and middle, then below."""
    for step, x in enumerate((box[2] - width - 4, box[0] + 4, (box[0] + box[2] - width) / 2)):
        yield x, y - 5, 6 * step
        yield x, y + 5 + ASCENT, 6 * step + 3
