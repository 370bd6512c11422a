"""Tabulate the numbers that a view's panels draw, for a spreadsheet.

Every row is a point, a bar, a cell or a span: its `panel` and `series`, its position (`at`, with its unit)
and its `value` (with its unit). Numbers are written as Python prints them, in base units and with every
digit; only the page rounds.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_book.reader.explorers.view import (
    Band,
    Bars,
    Chart,
    Curve,
    Grid,
    Mark,
    Network,
    Panel,
    Points,
    RefLine,
    Regions,
    Timeline,
    View,
)

COLUMNS = ("panel", "series", "at", "at unit", "value", "unit")
Row = tuple[Any, ...]


def rows(view: View) -> Iterator[Row]:
    """Yield the verdict, the readouts and every panel of a view, in the order of `COLUMNS`."""
    yield "verdict", "", "", "", view.verdict, ""
    for readout in view.readouts:
        yield "readout", readout.label, "", "", readout.value, readout.unit
    for panel in view.panels:
        yield from _panel(panel)


def _panel(panel: Panel) -> Iterator[Row]:
    match panel:
        case Chart():
            name = panel.title or panel.y.label
            for mark in panel.marks:
                for series, x, y in _points(mark):
                    yield name, series, x, panel.x.unit, y, panel.y.unit
        case Bars():
            name, unit = panel.title or panel.value.label, panel.value.unit
            for series in panel.series:
                for label, value in zip(panel.labels, series.values, strict=True):
                    yield name, series.label, label, "", value, unit
            yield from ((name, ref.label, "", "", ref.at, unit) for ref in panel.refs)
        case Grid():
            for i, row in enumerate(panel.cells):
                for j, cell in enumerate(row):
                    line, column = _named(panel.rows, i), _named(panel.columns, j)
                    yield panel.title, line, column, "", cell.text or cell.note, ""
        case Timeline():
            name = panel.title or panel.label
            for span in panel.spans:  # a span is one row for each of its ends
                for end, moment in (("start", span.start), ("end", span.end)):
                    yield name, f"{span.lane}: {span.label}", end, "", moment, panel.unit
        case Network():
            for link in panel.links:
                between = f"{panel.nodes[link.start].label} to {panel.nodes[link.end].label}"
                yield panel.title, between, link.label, "", link.value, ""


def _points(mark: Mark) -> Iterator[Row]:
    """Yield a mark as rows of (series, x, y); a coordinate is empty if the mark has none on that axis."""
    match mark:
        case Curve() | Points():
            labels = getattr(mark, "labels", ()) or [""] * len(mark.xs)
            for label, *at in zip(labels, mark.xs, mark.ys, strict=True):
                yield (f"{mark.label}: {label}" if label else mark.label), *at
        case Band():
            for edge, ys in (("low", mark.low), ("high", mark.high)):
                yield from ((f"{mark.label}, {edge}", *at) for at in zip(mark.xs, ys, strict=True))
        case RefLine():
            yield (mark.label, mark.at, "") if mark.axis == "x" else (mark.label, "", mark.at)
        case Regions():  # by the lower left corner of each cell
            for j, row in enumerate(mark.cells):
                for i, cell in enumerate(row):
                    if cell is not None:
                        yield mark.labels[cell], mark.xs[i], mark.ys[j]


def _named(labels: Any, at: int) -> str:
    """Return the label of a row or column, or its number if it has none."""
    return labels[at] if labels else str(at)
