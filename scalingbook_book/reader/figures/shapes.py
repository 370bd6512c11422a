"""The shapes of a sketch as values: labeled areas, cells, arrows, braces and words.

Coordinates are drawing units, 680 across on a wide page and 340 on a phone; y grows downward. A text may
contain line breaks and subscripts: "T_{math}".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.draw.palette import ink

# Each color has the same role in every figure of the book.
MEMORY, MATH, NETWORK, EXPERTS, CACHE, IDLE = range(6)

LINE = 16.0
DASHES = ' stroke-dasharray="5 4"'
ALIGN = {"start": 0.0, "middle": 0.5, "end": 1.0}
_SUBSCRIPT = re.compile(r"_\{([^}]*)\}")
Box = tuple[float, float, float, float]  # left, top, right, bottom


def paint(color: int | None) -> str:
    """Return the color with this index, or the text color for None."""
    return "currentColor" if color is None else ink(color)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Lines of text, with the baseline of the first at y; x is the start, middle or end of the line
    (`align`).
    """

    x: float
    y: float
    text: str
    align: str = "middle"
    color: int | None = None
    bold: bool = False
    quiet: bool = False
    size: float = svg.SIZE

    def box(self) -> Box:
        """Return the box that the text occupies."""
        lines = self.text.split("\n")
        wide = max(self._measure(line) for line in lines) * (svg.BOLD if self.bold else 1)
        left = self.x - wide * ALIGN[self.align]
        low = self.y + LINE * (len(lines) - 1) + 0.22 * self.size
        return left, self.y - 0.78 * self.size, left + wide, low

    def words(self) -> Iterator["Words"]:
        """Yield the texts of the shape, here the shape itself."""
        yield self

    def svg(self) -> str:
        """Return the text as SVG."""
        shade = f' fill="{ink(self.color)}"' if self.color is not None else (" " + svg.QUIET) * self.quiet
        size = f' font-size="{self.size:g}"' if self.size != svg.SIZE else ""
        head = f'text-anchor="{self.align}"{size}{shade}{' font-weight="600"' * self.bold}'
        lines = enumerate(self.text.split("\n"))
        return "".join(
            _lowered(svg.text(self.x, self.y + LINE * k, line, head), self.size) for k, line in lines
        )

    def _measure(self, line: str) -> float:
        low = "".join(_SUBSCRIPT.findall(line))
        return svg.measure(_SUBSCRIPT.sub("", line), self.size) + svg.measure(low, 0.75 * self.size)


def _lowered(text: str, size: float) -> str:
    """Return the line as SVG, with subscripts lower and smaller."""
    down = f"{0.22 * size:.1f}"
    low = rf'<tspan dy="{down}" font-size="{0.75 * size:.1f}">\1</tspan><tspan dy="-{down}">&#8203;</tspan>'
    return _SUBSCRIPT.sub(low, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A rectangle: an array, a chip, or a duration, with its text inside and labels at its sides.

    `top`, `left`, `right` and `below` label its sides, as dimensions are labeled on a whiteboard. `shade`
    ranges from 0, an outline, to 1.
    """

    x: float
    y: float
    wide: float
    high: float
    text: str = ""
    color: int | None = 0
    shade: float = 0.3
    top: str = ""
    left: str = ""
    right: str = ""
    below: str = ""
    bold: bool = False
    dashed: bool = False
    size: float = svg.SIZE

    def words(self) -> Iterator[Words]:
        """Yield the texts within the rectangle and at its sides."""
        middle, level = self.x + self.wide / 2, self.y + self.high / 2 + 4.5
        if self.text:
            y = level - LINE / 2 * self.text.count("\n")
            yield Words(x=middle, y=y, text=self.text, bold=self.bold, size=self.size)
        if self.top:
            yield Words(x=middle, y=self.y - 6 - LINE * self.top.count("\n"), text=self.top, quiet=True)
        if self.below:
            yield Words(x=middle, y=self.y + self.high + 15, text=self.below, quiet=True)
        if self.left:
            yield Words(x=self.x - 7, y=level, text=self.left, align="end", quiet=True)
        if self.right:
            yield Words(x=self.x + self.wide + 7, y=level, text=self.right, align="start", quiet=True)

    def svg(self) -> str:
        """Return the rectangle as SVG, without its words."""
        edge = f'stroke="{paint(self.color)}" stroke-opacity=".75"{DASHES * self.dashed}'
        fill = f'rx="2" fill="{paint(self.color)}" fill-opacity="{self.shade:.2g}"'
        return svg.rect(self.x, self.y, self.wide, self.high, f"{fill} {edge}")


_LONG = 48  # parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """An array in parts: rows of colors (None for an empty part), each part `side` wide and high."""

    x: float
    y: float
    rows: Sequence[Sequence[int | None]]
    wide: float
    high: float
    air: float = 2.0
    shade: float = 0.45

    def words(self) -> Iterator[Words]:
        """Yield the texts of the shape, of which there are none."""
        yield from ()

    def svg(self) -> str:
        """Return all parts of one color as one path."""
        paths: dict[int | None, str] = {}
        across, down = self.wide - self.air, self.high - self.air
        part = f"h{across:.1f}v{down:.1f}h{-across:.1f}z"
        for j, row in enumerate(self.rows):
            for i, color in enumerate(row):
                # in a long row each part is positioned relative to the last one, because ten thousand equal
                # steps compress to almost nothing
                continues = len(row) > _LONG and i > 0 and row[i - 1] == color
                at = f"M{self.x + i * self.wide:.1f},{self.y + j * self.high:.1f}"
                paths[color] = paths.get(color, "") + (f"m{self.wide:.3f},0" if continues else at) + part
        return "".join(self._path(color, way) for color, way in paths.items())

    def _path(self, color: int | None, way: str) -> str:
        shade = 0.06 if color is None else self.shade
        return f'<path d="{way}" fill="{paint(color)}" fill-opacity="{shade:g}"/>'


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """Pieces of one height, each (left, top, width, color), with one path per color."""

    stretches: Sequence[tuple[float, float, float, int]]
    high: float
    shade: float = 0.4

    def words(self) -> Iterator[Words]:
        """Yield the texts of the shape, of which there are none."""
        yield from ()

    def svg(self) -> str:
        """Return all pieces of one color as one path."""
        paths: dict[int, str] = {}
        for x, y, wide, color in self.stretches:
            box = f"M{x + 0.5:.1f},{y:.1f}h{wide - 1:.1f}v{self.high:g}h{1 - wide:.1f}z"
            paths[color] = paths.get(color, "") + box
        look = f'fill-opacity="{self.shade:g}" stroke-opacity=".7"'
        drawn = [(paint(color), way) for color, way in paths.items()]
        return "".join(f'<path d="{way}" fill="{ink}" stroke="{ink}" {look}/>' for ink, way in drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A line with an arrowhead at its end, at both ends (`heads=2`) or at neither; `bend` curves it right."""

    x0: float
    y0: float
    x1: float
    y1: float
    color: int | None = None
    thick: float = 1.6
    heads: int = 1
    dashed: bool = False
    bend: float = 0.0

    def words(self) -> Iterator[Words]:
        """Yield the texts of the shape, of which there are none."""
        yield from ()

    def svg(self) -> str:
        """Return the arrow as SVG."""
        long = hypot(self.x1 - self.x0, self.y1 - self.y0) or 1.0
        push = self.bend * long
        xm = (self.x0 + self.x1) / 2 - (self.y1 - self.y0) / long * push
        ym = (self.y0 + self.y1) / 2 + (self.x1 - self.x0) / long * push
        (x0, y0), first = self._end(self.x0, self.y0, xm, ym, self.heads > 1)
        (x1, y1), last = self._end(self.x1, self.y1, xm, ym, self.heads > 0)
        way = f"M{x0:.1f},{y0:.1f}Q{xm:.1f},{ym:.1f} {x1:.1f},{y1:.1f}"
        line = f'stroke="{paint(self.color)}" stroke-width="{self.thick:g}" fill="none"{DASHES * self.dashed}'
        return f'<path d="{way}" {line}/>{first}{last}'

    def _end(self, x: float, y: float, xm: float, ym: float, head: bool) -> tuple[tuple[float, float], str]:
        """Return the point at which the line stops so that its head ends at (x, y), and the head."""
        if not head:
            return (x, y), ""
        long = hypot(x - xm, y - ym) or 1.0
        ux, uy = (x - xm) / long, (y - ym) / long
        tip = 5 + 1.6 * self.thick
        bx, by, side = x - ux * tip, y - uy * tip, tip * 0.48
        corners = svg.points([x, bx - uy * side, bx + uy * side], [y, by + ux * side, by - ux * side])
        return (
            x - ux * tip * 0.8,
            y - uy * tip * 0.8,
        ), f'<polygon points="{corners}" fill="{paint(self.color)}"/>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Brace:
    """A brace below (or above: `up`) the interval from x0 to x1, with its text at the middle."""

    x0: float
    x1: float
    y: float
    text: str = ""
    up: bool = False

    def words(self) -> Iterator[Words]:
        """Yield the text of the brace."""
        if self.text:
            y = self.y - 12 - LINE * self.text.count("\n") if self.up else self.y + 21
            yield Words(x=(self.x0 + self.x1) / 2, y=y, text=self.text)

    def svg(self) -> str:
        """Return the brace as SVG."""
        deep = -5 if self.up else 5
        way = f"M{self.x0:.1f},{self.y:.1f}v{deep}H{self.x1:.1f}v{-deep}"
        return f'<path d="{way}" fill="none" stroke="currentColor" stroke-opacity=".6"/>'


Shape = Area | Arrow | BlockRow | Brace | Cells | Words
