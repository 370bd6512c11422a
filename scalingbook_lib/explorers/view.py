"""What does an explorer show? A verdict, pictures and numbers: values, with no drawing in them.

A `View` is what a pure function of the controls returns. It is drawn by `draw` (SVG, for the page) and by
`viz.figures` (matplotlib, for a kernel), and compared by tests. Whatever cannot be drawn is refused here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from scalingbook_lib.explorers import scales

COLORS = 6  # colours of the palette; a mark's colour is an index that wraps around
Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its label, unit and scale (linear, log, pow2); `low` and `high` come from the data where not given."""

    label: str
    unit: str = ""
    scale: str = "linear"
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.scale not in scales.KINDS:
            raise ValueError(
                f"axis {self.label!r}: {self.scale!r} is no scale; write one of {', '.join(scales.KINDS)}"
            )
        for end in (self.low, self.high):
            if end is not None and not math.isfinite(end):
                raise ValueError(f"axis {self.label!r}: an axis cannot end at {end}; give a finite number")
            if end is not None and end <= 0 and self.scale != "linear":
                raise ValueError(
                    f"axis {self.label!r}: a {self.scale} axis cannot reach {end:g}; start it above 0"
                )
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"axis {self.label!r}: low {self.low:g} is not below high {self.high:g}")

    def span(self, data: Sequence[Numbers]) -> tuple[float, float]:
        """The two ends of the axis for this data; ends that were given stay."""
        low = self.low if self.low is not None else _least(data, self.label)
        high = self.high if self.high is not None else _greatest(data, self.label)
        if self.scale != "linear":
            return (low, high) if low < high else (low / 2, high * 2)
        low = min(low, 0.0) if self.low is None else low
        return low, (high if high > low else low + 1.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points, labelled beside it; a value that is inf or nan leaves a gap."""

    label: str
    xs: Numbers
    ys: Numbers
    color: int | None = None
    dashed: bool = False

    def __post_init__(self) -> None:
        _same_length(f"curve {self.label!r}", xs=self.xs, ys=self.ys)


@dataclass(frozen=True, slots=True)
class Points:
    """Dots, each with its own label where `labels` are given."""

    label: str
    xs: Numbers
    ys: Numbers
    labels: Sequence[str] = ()
    color: int | None = None

    def __post_init__(self) -> None:
        lists = dict(xs=self.xs, ys=self.ys) | (dict(labels=self.labels) if self.labels else {})
        _same_length(f"points {self.label!r}", **lists)


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two curves over the same xs."""

    label: str
    xs: Numbers
    low: Numbers
    high: Numbers
    color: int | None = None

    def __post_init__(self) -> None:
        _same_length(f"band {self.label!r}", xs=self.xs, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True)
class RefLine:
    """A thin line across the chart at one value of an axis: `axis="x"` stands upright, `axis="y"` lies flat."""

    label: str
    at: float
    axis: str = "x"

    def __post_init__(self) -> None:
        if self.axis not in ("x", "y"):
            raise ValueError(f"reference line {self.label!r}: {self.axis!r} is no axis; write 'x' or 'y'")


@dataclass(frozen=True, slots=True)
class Regions:
    """A map: every cell of a mesh of `xs` by `ys` edges belongs to one of `labels` (an index, or None for none).

    `cells[j][i]` covers `xs[i]..xs[i+1]` and `ys[j]..ys[j+1]`. With `ramp` the labels are levels of one
    quantity, light to dark; without, they are kinds, each with its own colour (`colors`, or 0, 1, 2 ...).
    """

    labels: Sequence[str]
    xs: Numbers
    ys: Numbers
    cells: Sequence[Sequence[int | None]]
    ramp: bool = False
    colors: Sequence[int] = ()

    def __post_init__(self) -> None:
        if len(self.cells) != len(self.ys) - 1 or any(len(row) != len(self.xs) - 1 for row in self.cells):
            raise ValueError(
                f"regions: {len(self.xs)} and {len(self.ys)} edges need {len(self.ys) - 1} rows of {len(self.xs) - 1} cells"
            )
        used = {cell for row in self.cells for cell in row if cell is not None}
        if used and not 0 <= min(used) <= max(used) < len(self.labels):
            raise ValueError(f"regions: a cell names region {max(used)}, there are {len(self.labels)} labels")


Mark = Curve | Points | Band | RefLine | Regions


@dataclass(frozen=True, slots=True)
class Chart:
    """Marks over two axes."""

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
        """Where both axes begin and end."""
        return self.x.span(self._data("x")), self.y.span(self._data("y"))

    def _data(self, axis: str) -> list[Numbers]:
        return [values for mark in self.marks for values in _values(mark, axis)]


@dataclass(frozen=True, slots=True)
class Series:
    """One value for each bar."""

    label: str
    values: Numbers
    color: int | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Lying bars, one row a label, on one value axis: stacked, or one below the other; `refs` are lines across them."""

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
            _same_length(f"bars {series.label!r}", labels=self.labels, values=series.values)
            if any(not v >= 0 for v in series.values):
                raise ValueError(f"bars {series.label!r}: a bar needs a value of 0 or more")
        if self.value.scale != "linear" and self.stacked:
            raise ValueError(
                f"bars of {self.value.label!r}: lengths do not add up on a log axis; stack on a linear one"
            )

    def lengths(self) -> list[float]:
        """The length of every row: the sum when stacked, else the longest."""
        rows = list(zip(*(s.values for s in self.series), strict=True))
        return [sum(row) if self.stacked else max(row) for row in rows]

    def range(self) -> tuple[float, float]:
        """Where the value axis begins and ends."""
        low, high = self.value.span([self.lengths(), [r.at for r in self.refs]])
        return (low, high) if self.value.scale == "linear" else (self.value.low or low / 2, high)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid: text, a colour, a note for the pointer.

    `part=(top, bottom, left, right)`, fractions of 1, draws the cell as a small array of which that part is held.
    `level`, 0 to 1, is how strong the colour is.
    """

    text: str = ""
    color: int | None = None
    note: str = ""
    part: tuple[float, float, float, float] | None = None
    level: float = 1.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells: an array, a mesh of chips, a table. Row and column labels may be empty."""

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
    """A piece of work on one lane of a time line."""

    lane: str
    start: float
    end: float
    label: str = ""
    color: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start <= self.end):
            raise ValueError(f"span {self.label!r}: {self.start:g} to {self.end:g} is no stretch of time")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Spans on named lanes over time; `end` fixes the right edge, `refs` are moments."""

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
        """From 0 to the end of the last span, or to the end that was given."""
        last = max((s.end for s in self.spans), default=0.0)
        return 0.0, self.end or max([last, *(r.at for r in self.refs if math.isfinite(r.at))]) or 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """A device at (x, y), both 0 to 1; `parts` are the colours of the chunks that it holds (None: an empty slot)."""

    label: str
    x: float
    y: float
    parts: Sequence[int | None] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """From one node to another (indices): a thin line, or an arrow where it has a colour.

    `value` makes the arrow thicker, `bend` curves it; a `wrap` leaves on one side and comes back on the other.
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
    """Devices and what runs over the links between them."""

    nodes: Sequence[Node]
    links: Sequence[Link] = ()
    title: str = ""
    aspect: float = field(default=0.5)  # height over width

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


@dataclass(frozen=True, slots=True)
class Readout:
    """A number that matters, written with its unit (or as `text`)."""

    label: str
    value: float
    unit: str = ""
    text: str = ""

    def __str__(self) -> str:
        return self.text or scales.written(self.value, self.unit)


@dataclass(frozen=True, slots=True)
class View:
    """What there is to see: one sentence, pictures, numbers; `frames` where a Steps control moves through it.

    `columns=2` sets panels side by side where there is room, each then as on a narrow screen.
    """

    verdict: str
    panels: Sequence[Panel]
    readouts: Sequence[Readout] = ()
    frames: int = 1
    columns: int = 1

    def __post_init__(self) -> None:
        if not self.verdict:
            raise ValueError("a view needs a verdict: one sentence that says what is seen")
        if self.frames < 1 or self.columns < 1:
            raise ValueError(
                f"a view has at least one frame and one column, not {self.frames} and {self.columns}"
            )


def _values(mark: Mark, axis: str) -> list[Numbers]:
    """The lists of numbers that a mark puts on one axis."""
    if isinstance(mark, RefLine):
        return [[mark.at]] if mark.axis == axis else []
    if isinstance(mark, Band):
        return [mark.xs] if axis == "x" else [mark.low, mark.high]
    return [mark.xs if axis == "x" else mark.ys]


def _same_length(what: str, **lists: Sequence[object]) -> None:
    sizes = {name: len(values) for name, values in lists.items()}
    if len(set(sizes.values())) > 1:
        given = " but ".join(f"{size} {name}" for name, size in sizes.items())
        raise ValueError(f"{what}: {given}; give one of each for every point")


def _positive(axis: Scale, lists: Sequence[Numbers]) -> None:
    for values in lists:
        low = min(values, default=1.0)
        if low <= 0:
            raise ValueError(
                f"axis {axis.label!r}: {low:g} has no place on a {axis.scale} axis; drop it or use a linear one"
            )


def _least(data: Sequence[Numbers], label: str) -> float:
    return min(_finite(data, label))


def _greatest(data: Sequence[Numbers], label: str) -> float:
    return max(_finite(data, label))


def _finite(data: Sequence[Numbers], label: str) -> list[float]:
    found = [v for values in data for v in values if math.isfinite(v)]
    if not found:
        raise ValueError(f"axis {label!r}: no data and no ends; give low and high")
    return found
