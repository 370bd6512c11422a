"""The panels of a view as values: charts, bars, grids, timelines and networks.

Values that cannot be drawn raise ValueError here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.explorers.marks import Band, Mark, Numbers, RefLine, Scale, same_length


@dataclass(frozen=True, slots=True)
class Chart:
    """Marks over two axes. Raises ValueError for values that a logarithmic axis cannot show."""

    x: Scale
    y: Scale
    marks: Sequence[Mark]
    title: str = ""

    def __post_init__(self) -> None:
        if not self.marks:
            raise ValueError(f"chart of {self.y.label!r}: nothing to draw; give at least one mark")
        for axis, lists in ((self.x, self._data("x")), (self.y, self._data("y"))):
            if axis.scale != "linear":
                _positive(axis, lists)

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the ends of both axes."""
        return self.x.span(self._data("x"), upright=False), self.y.span(self._data("y"))

    def _data(self, axis: str) -> list[Numbers]:
        return [values for mark in self.marks for values in _values(mark, axis)]


@dataclass(frozen=True, slots=True)
class Series:
    """One value per bar."""

    label: str
    values: Numbers
    color: int | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, one row per label, stacked or one below the other; `refs` are lines across them."""

    value: Scale
    labels: Sequence[str]
    series: Sequence[Series]
    stacked: bool = False
    refs: Sequence[RefLine] = ()
    title: str = ""

    def __post_init__(self) -> None:
        if not self.labels or not self.series:
            raise ValueError(
                f"bars of {self.value.label!r}: nothing to draw; give at least one label and one series"
            )
        for series in self.series:
            same_length(f"bars {series.label!r}", labels=self.labels, values=series.values)
            if any(not v >= 0 for v in series.values):
                raise ValueError(f"bars {series.label!r}: a bar needs a value of 0 or more")
        if self.value.scale != "linear" and self.stacked:
            raise ValueError(
                f"bars of {self.value.label!r}: lengths do not add up on a log axis; stack on a linear one"
            )

    def lengths(self) -> list[float]:
        """Return the length of every row: the sum if stacked, otherwise the maximum."""
        rows = list(zip(*(s.values for s in self.series), strict=True))
        return [sum(row) if self.stacked else max(row) for row in rows]

    def range(self) -> tuple[float, float]:
        """Return the ends of the value axis; a scale without zero starts at a tenth of the shortest bar."""
        bars = (
            self.lengths()
            if self.value.scale == "linear"
            else [end for v in self.lengths() if v > 0 for end in (v, v / 10)]
        )
        return self.value.span([bars, [r.at for r in self.refs if math.isfinite(r.at)]])


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid: text, a color, a tooltip.

    `part=(top, bottom, left, right)`, in fractions of 1, draws the cell as a small array in which the held
    part is filled. `level`, 0 to 1, is the opacity of the color.
    """

    text: str = ""
    color: int | None = None
    note: str = ""
    part: tuple[float, float, float, float] | None = None
    level: float = 1.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells, for an array, a mesh of chips or a table. Row and column labels may be empty."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        width = len(self.cells[0]) if self.cells else 0
        if not width or any(len(row) != width for row in self.cells):
            raise ValueError(f"grid {self.title!r}: every row needs the same number of cells, at least one")
        for name, labels, size in (("row", self.rows, len(self.cells)), ("column", self.columns, width)):
            if labels and len(labels) != size:
                raise ValueError(f"grid {self.title!r}: {len(labels)} {name} labels for {size} {name}s")


@dataclass(frozen=True, slots=True)
class Span:
    """One block of work on a row of a timeline."""

    lane: str
    start: float
    end: float
    label: str = ""
    color: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start <= self.end):
            raise ValueError(f"span {self.label!r}: {self.start:g} to {self.end:g} is not an interval")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Spans on named rows over time; `end` fixes the right edge, and `refs` are points in time."""

    lanes: Sequence[str]
    spans: Sequence[Span]
    unit: str = "s"
    end: float | None = None
    refs: Sequence[RefLine] = ()
    title: str = ""
    label: str = "time"

    def __post_init__(self) -> None:
        if not self.lanes:
            raise ValueError(f"time line {self.title!r}: give at least one lane")
        for span in self.spans:
            if span.lane not in self.lanes:
                raise ValueError(
                    f"span {span.label!r}: no lane {span.lane!r}; the lanes are {', '.join(self.lanes)}"
                )

    def range(self) -> tuple[float, float]:
        """Return the range from 0 to the end of the last span, or to the given end."""
        last = max((s.end for s in self.spans), default=0.0)
        return 0.0, self.end or max([last, *(r.at for r in self.refs if math.isfinite(r.at))]) or 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """A device at (x, y), both 0 to 1; `parts` are the colors of its chunks, None for an empty slot."""

    label: str
    x: float
    y: float
    parts: Sequence[int | None] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes (indices): a thin line, or an arrow if it has a color.

    `value` makes the arrow thicker and `bend` curves it. A `wrap` leaves on one side and comes back on the
    other.
    """

    start: int
    end: int
    value: float = 0.0
    label: str = ""
    color: int | None = None
    bend: float = 0.0
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """Devices, and the data that moves over the links between them."""

    nodes: Sequence[Node]
    links: Sequence[Link] = ()
    title: str = ""
    aspect: float = 0.5  # height divided by width

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ValueError(f"network {self.title!r}: give at least one node")
        for link in self.links:
            if not (0 <= link.start < len(self.nodes) and 0 <= link.end < len(self.nodes)):
                raise ValueError(
                    f"link {link.start} to {link.end}: there are nodes 0 to {len(self.nodes) - 1}"
                )
        for node in self.nodes:
            if not (0 <= node.x <= 1 and 0 <= node.y <= 1):
                raise ValueError(
                    f"node {node.label!r}: ({node.x:g}, {node.y:g}) is outside; x and y go from 0 to 1"
                )


Panel = Chart | Bars | Grid | Timeline | Network


def colored(chart: Chart) -> list[tuple[Mark, int]]:
    """Return every mark with its color: its own, or the next of the palette; 0 for marks without color."""
    own = {i: getattr(mark, "color", 0) for i, mark in enumerate(chart.marks)}
    following = iter(range(len(own)))
    return [(mark, next(following) if own[i] is None else own[i]) for i, mark in enumerate(chart.marks)]


def _values(mark: Mark, axis: str) -> list[Numbers]:
    """Return the lists of numbers that a mark puts on one axis."""
    if isinstance(mark, RefLine):
        return [[mark.at]] if mark.axis == axis else []
    if isinstance(mark, Band):
        return [mark.xs] if axis == "x" else [mark.low, mark.high]
    return [mark.xs if axis == "x" else mark.ys]


def _positive(axis: Scale, lists: Sequence[Numbers]) -> None:
    for values in lists:
        if values and min(values) > 0:
            continue
        low = min((v for v in values if v <= 0), default=1.0)
        if low <= 0:
            problem = f"{low:g} has no place on a {axis.scale} axis; drop it or use a linear one"
            raise ValueError(f"axis {axis.label!r}: {problem}")
