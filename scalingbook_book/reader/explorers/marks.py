"""The axes and marks of a chart, as values independent of any drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.explorers import scales

Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its label, its unit and its kind of scale (linear, log, pow2).

    If `low` or `high` is not given, it is computed from the data.
    """

    label: str
    unit: str = ""
    scale: str = "linear"
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.scale not in scales.KINDS:
            raise ValueError(
                f"axis {self.label!r}: {self.scale!r} is not a scale; write one of {', '.join(scales.KINDS)}"
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

    def span(self, data: Sequence[Numbers], *, upright: bool = True) -> tuple[float, float]:
        """Return the two ends of the axis for this data; ends that were given are kept.

        A vertical linear axis begins at 0 and leaves room at the top; a horizontal one spans exactly the
        data.
        """
        if self.low is not None and self.high is not None:
            return self.low, self.high
        least, most = _ends(data, self.label)
        if self.scale == "linear" and upright:
            least, most = min(least, 0.0), most + 0.05 * (most - min(least, 0.0))
        low = least if self.low is None else self.low
        high = most if self.high is None else self.high
        if low < high:
            return low, high
        wider = (lambda v, way: v + way) if self.scale == "linear" else (lambda v, way: v * 10.0**way)
        return (
            low if self.low is not None else wider(high, -1),
            high if self.high is not None else wider(low, 1),
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points, with a label beside it; a value of inf or nan leaves a gap."""

    label: str
    xs: Numbers
    ys: Numbers
    color: int | None = None
    dashed: bool = False

    def __post_init__(self) -> None:
        same_length(f"curve {self.label!r}", xs=self.xs, ys=self.ys)


@dataclass(frozen=True, slots=True)
class Points:
    """Dots, each with its own label if `labels` are given."""

    label: str
    xs: Numbers
    ys: Numbers
    labels: Sequence[str] = ()
    color: int | None = None

    def __post_init__(self) -> None:
        same_length(f"points {self.label!r}", xs=self.xs, ys=self.ys)
        if self.labels:
            same_length(f"points {self.label!r}", xs=self.xs, labels=self.labels)


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two curves over the same x values."""

    label: str
    xs: Numbers
    low: Numbers
    high: Numbers
    color: int | None = None

    def __post_init__(self) -> None:
        same_length(f"band {self.label!r}", xs=self.xs, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True)
class RefLine:
    """A thin line at one value of an axis: vertical with `axis="x"`, horizontal with `axis="y"`."""

    label: str
    at: float
    axis: str = "x"

    def __post_init__(self) -> None:
        if self.axis not in ("x", "y"):
            raise ValueError(f"reference line {self.label!r}: {self.axis!r} is not an axis; write 'x' or 'y'")


@dataclass(frozen=True, slots=True)
class Regions:
    """A map: every cell of a mesh of `xs` by `ys` edges belongs to one of `labels`, by index, or to None.

    `cells[j][i]` covers `xs[i]..xs[i+1]` and `ys[j]..ys[j+1]`. With `ramp` the labels are levels of one
    quantity, from light to dark. Otherwise they are categories, each with its own color (`colors`, or 0, 1, 2
    ...).
    """

    labels: Sequence[str]
    xs: Numbers
    ys: Numbers
    cells: Sequence[Sequence[int | None]]
    ramp: bool = False
    colors: Sequence[int] = ()

    def __post_init__(self) -> None:
        if len(self.cells) != len(self.ys) - 1 or any(len(row) != len(self.xs) - 1 for row in self.cells):
            size = f"{len(self.ys) - 1} rows of {len(self.xs) - 1} cells"
            raise ValueError(f"regions: {len(self.xs)} and {len(self.ys)} edges need {size}")
        used = {cell for row in self.cells for cell in row if cell is not None}
        if used and not 0 <= min(used) <= max(used) < len(self.labels):
            raise ValueError(f"regions: a cell names region {max(used)}, there are {len(self.labels)} labels")

    def color_of(self, region: int) -> int:
        """Return the color index of a region."""
        return 0 if self.ramp else self.colors[region] if self.colors else region

    def shade(self, region: int) -> float:
        """Return the opacity of a region, 0 to 1; on a ramp it goes from light to dark."""
        return 0.08 + 0.8 * region / max(len(self.labels) - 1, 1) if self.ramp else 0.32


Mark = Curve | Points | Band | RefLine | Regions


def same_length(what: str, **lists: Sequence[object]) -> None:
    """Raise ValueError, with each length, if the lists differ in length."""
    sizes = {name: len(values) for name, values in lists.items()}
    if len(set(sizes.values())) > 1:
        given = " but ".join(f"{size} {name}" for name, size in sizes.items())
        raise ValueError(f"{what}: {given}; give one of each for every point")


def _ends(data: Sequence[Numbers], label: str) -> tuple[float, float]:
    found = [v for values in data for v in values if math.isfinite(v)]
    if not found:
        raise ValueError(f"axis {label!r}: no data and no ends; give low and high")
    return min(found), max(found)
