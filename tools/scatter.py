"""The figure of a reference page on accuracy: predicted against measured values on two logarithmic axes.

Each class of rows has a color. A band is the area around the diagonal within a factor, up or down. The
figure is one SVG file with a light and a dark set of colors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import NamedTuple
from xml.etree import ElementTree

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.draw.palette import DARK, ink
from scalingbook_book.reader.explorers.view import Band, Chart, Curve, Points, Scale, View

WIDE, MARGIN, GAP = (
    376.0,
    12.0,
    14.0,
)  # as wide as the column of a phone, where the text stays legible
DIAGONAL, SHADE = 5, 0.22  # the color of the diagonal; the opacity of a band in the legend
PIECES = 64  # segments of a band's edges, which the frame clips
STEPS = 1, 2, 5, 10  # where an axis may begin and end within a decade
STYLE = (
    "svg{color:#1f2328;--ex-bg:#fff}@media(prefers-color-scheme:dark){svg{color:#e6e6e6;--ex-bg:#121212;"
    + ";".join(f"--ex-c{i}:{color}" for i, color in enumerate(DARK))
    + "}}"
)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The rows of one class as pairs of (measured, predicted); with `band`, a factor, its band is drawn."""

    label: str
    pairs: Sequence[tuple[float, float]]
    band: float | None = None


class Area(NamedTuple):
    """A band as it is drawn: its factor, its color, and its label in the legend."""

    factor: float
    color: int
    label: str


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Groups of rows in one pair of axes; `conclusion` says in a sentence what the figure shows.

    `reference` is what predictions are compared with: "measured", "published" or "compiled". `band` is the
    factor that holds 80% of all rows, for classes that have no band of their own.
    """

    conclusion: str
    reference: str
    quantity: str
    unit: str
    groups: Sequence[Group]
    band: float | None = None

    def view(self) -> View:
        """Return the chart: bands below, the diagonal of correct predictions, and a point for each row."""
        values = [value for group in self.groups for pair in group.pairs for value in pair]
        low, high = _end_below(min(values)), _end_above(max(values))
        at = [low * (high / low) ** (k / PIECES) for k in range(PIECES + 1)]
        bands = [
            Band("", at, [x / one.factor for x in at], [x * one.factor for x in at], color=one.color)
            for one in self.areas()
        ]
        points = [
            Points(group.label, [x for x, _ in group.pairs], [y for _, y in group.pairs], color=color)
            for color, group in enumerate(self.groups)
        ]
        axes = [
            Scale(f"{name} {self.quantity}", self.unit, "log", low, high)
            for name in (self.reference, "predicted")
        ]
        diagonal = Curve("", [low, high], [low, high], color=DIAGONAL, dashed=True)
        return View(self.conclusion, (Chart(axes[0], axes[1], (*bands, diagonal, *points)),))

    def keys(self) -> list[tuple[str, str]]:
        """Return the legend: each class with its number of rows, and each band with its factor."""
        classes = [
            (f"{group.label} ({len(group.pairs):,})", f'fill="{ink(color)}"')
            for color, group in enumerate(self.groups)
        ]
        bands = [
            (
                f"within a factor of {one.factor:.2f}: {one.label}",
                f'fill="{ink(one.color)}" fill-opacity="{SHADE}"',
            )
            for one in self.areas()
        ]
        return classes + bands

    def areas(self) -> list[Area]:
        """Return the bands that are drawn."""
        own = [
            Area(group.band, color, f"band of {group.label}")
            for color, group in enumerate(self.groups)
            if group.band
        ]
        return own + ([Area(self.band, DIAGONAL, "80% of all values")] if self.band else [])

    def svg(self) -> str:
        """Return the text of the SVG file."""
        return sheet(self.view(), self.keys())


def _steps(value: float) -> list[float]:
    return [10.0 ** floor(log10(value)) * step for step in STEPS]


def _end_below(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above the value."""
    return max(step for step in _steps(value) if step <= value)


def _end_above(value: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not below the value."""
    return min(step for step in _steps(value) if step >= value)


def sheet(view: View, keys: Sequence[tuple[str, str]]) -> str:
    """Return the chart of a view as the text of one SVG file, with a legend below it.

    Raises ValueError if a point would lie outside the axes, so that no point is dropped or moved.
    """
    (panel,) = view.panels
    assert isinstance(panel, Chart)
    _check_all_inside(panel)
    unlabeled = [replace(mark, label="") if isinstance(mark, Points) else mark for mark in panel.marks]
    drawn = draw.panel(replace(panel, marks=unlabeled), WIDE - 2 * MARGIN)
    below = MARGIN + float(ElementTree.fromstring(drawn).attrib["height"]) + GAP
    legend, high = svg.legend(keys, WIDE - 2 * MARGIN, 0)
    wide, high = f"{WIDE:g}", f"{ceil(below + high + MARGIN)}"
    placed = drawn.replace("<svg ", f'<svg x="{MARGIN:g}" y="{MARGIN:g}" overflow="visible" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img" aria-label="{svg.escape(view.verdict)}" '
        f'font-family="{svg.FONT}" font-size="{svg.SIZE}" fill="currentColor">\n<style>{STYLE}</style>\n'
        f'<rect width="100%" height="100%" fill="var(--ex-bg)"/>\n{placed}\n'
        f'<g transform="translate({MARGIN:g} {below:g})">{"".join(legend)}</g>\n</svg>\n'
    )


def _check_all_inside(panel: Chart) -> None:
    (left, right), (low, high) = panel.ranges()
    for mark in panel.marks:
        for x, y in zip(mark.xs, mark.ys, strict=True) if isinstance(mark, Points) else ():
            if not (left <= x <= right and low <= y <= high):
                raise ValueError(f"{panel.title}: the point ({x:g}, {y:g}) lies outside the axes; widen them")
