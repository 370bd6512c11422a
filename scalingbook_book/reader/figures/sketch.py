"""A sketch: shapes on a plane, checked so that nothing is clipped and no words overlap."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.figures.shapes import Area, Shape, Words

SMALLEST = 11.0  # the smallest font size that is legible on a phone


@dataclass(frozen=True, slots=True)
class Sketch:
    """Shapes on a plane `wide` across and `high` down, with their words drawn above them.

    Raises ValueError if words overlap, leave the plane or their area, or are too small to read.
    """

    wide: float
    high: float
    shapes: Sequence[Shape]

    def __post_init__(self) -> None:
        words = [word for shape in self.shapes for word in shape.words()]
        for word in words:
            self._stays(word)
        for word, other in combinations(words, 2):
            a, b = word.box(), other.box()
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                raise ValueError(f"sketch: {word.text!r} lies on {other.text!r}; move one of them")
        for area in self.shapes:
            if isinstance(area, Area):
                self._holds(area)

    def svg(self, label: str) -> str:
        """Return the sketch as one SVG drawing, with words above everything."""
        shapes = [s.svg() for s in self.shapes if not isinstance(s, Words)]
        words = [w.svg() for s in self.shapes for w in s.words()]
        return svg.picture(self.wide, self.high, label, [*shapes, *words])

    def _stays(self, word: Words) -> None:
        left, top, right, bottom = word.box()
        if left < -1 or top < -1 or right > self.wide + 1 or bottom > self.high + 1:
            raise ValueError(
                f"sketch: {word.text!r} leaves the plane of {self.wide:g} x {self.high:g}; move or shorten it"
            )
        if word.size < SMALLEST:
            raise ValueError(
                f"sketch: {word.text!r} is set in {word.size:g}; nobody reads less than {SMALLEST:g}"
            )

    def _holds(self, area: Area) -> None:
        right, bottom = area.x + area.wide, area.y + area.high
        if min(area.x, area.y) < 0 or right > self.wide or bottom > self.high:
            raise ValueError(
                f"sketch: the area at ({area.x:g}, {area.y:g}) leaves the plane; make room for it"
            )
        left, _, right, _ = next(area.words()).box() if area.text else (0.0, 0.0, 0.0, 0.0)
        if right - left > area.wide + 1:
            raise ValueError(f"sketch: {area.text!r} is wider than its area; put it beside (`right=`)")
