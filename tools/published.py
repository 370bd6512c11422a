"""Writes the appendices on accuracy: `python -m tools.published [training]`.

A page is its template, `<name>_page.md`, with every {name} filled in by `<name>_page`; those on training and
serving have a picture of all runs. Tests check that they are up to date. `make fidelity` writes all of them.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import batched
from math import ceil
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.draw.palette import DARK, ink
from scalingbook_book.reader.explorers.view import Chart, Panel, Points, RefLine, Scale, View
from scalingbook_lib.evidence.scores import Score
from scalingbook_lib.units import si
from tools.environment import ROOT

type Cells = Iterator[tuple[str, ...]]
type Bands = Callable[[bool], Mapping[str, tuple[int, int]]]

MARGIN, GAP = 12.0, 24.0
STYLE = (
    "svg{color:#1f2328;--ex-bg:#fff}@media(prefers-color-scheme:dark){svg{color:#e6e6e6;--ex-bg:#121212;"
    + ";".join(f"--ex-c{i}:{color}" for i, color in enumerate(DARK))
    + "}}"
)


@dataclass(frozen=True, kw_only=True)
class Text:
    """An appendix: its name, and the values and tables of its template."""

    name: str
    values: Callable[[], dict[str, str]]
    tables: Mapping[str, Callable[[], Cells]]

    @property
    def path(self) -> Path:
        """The path of the page."""
        return ROOT / f"{self.name}.md"

    def text(self) -> str:
        """The template with every {name} filled in."""
        template = Path(__file__).with_name(f"{self.name}_page.md").read_text()
        return template.format(**self.values(), **{name: table(rows()) for name, rows in self.tables.items()})

    def write(self) -> None:
        """Write the page."""
        self.path.write_text(self.text())


@dataclass(frozen=True, kw_only=True)
class Page(Text):
    """A page on published runs, with a picture of them.

    `kinds` groups the picture's points by the first word of the chip's name; chips without a group are TPUs.
    """

    title: str
    scores: Callable[[], Sequence[Score]]
    across: Callable[[Score], float]
    scale: Scale
    kinds: Mapping[str, str]

    @property
    def path(self) -> Path:
        """The path of the page."""
        return ROOT / f"{self.name}-runs.md"

    @property
    def picture(self) -> Path:
        """The path of the picture."""
        return ROOT / f"{self.name}-runs.svg"

    def view(self) -> View:
        """Predicted over published, one point per run, by kind of chip."""
        charts = []
        for experts, who in ((False, "Dense"), (True, "Experts")):
            scores = [s for s in self.scores() if s.run.experts == experts]
            charts.append(self._chart(f"{who}: as fitted", scores, lambda s: s.error))
            out = f"{who}: by a table without the source"
            charts.append(self._chart(out, scores, lambda s: s.leave_one_out_error))
        return View(self.title, tuple(charts), columns=2)

    def _chart(self, title: str, scores: Sequence[Score], error: Callable[[Score], float]) -> Chart:
        groups: dict[str, list[Score]] = {}
        for s in scores:
            first = s.run.chip.name.replace(",", "").split()[0]
            groups.setdefault(self.kinds.get(first, "TPU"), []).append(s)
        marks = []
        for color, kind in enumerate([*dict.fromkeys(self.kinds.values()), "TPU"]):
            if kind in groups:
                xs, ys = [self.across(s) for s in groups[kind]], [1 + error(s) for s in groups[kind]]
                marks.append(Points(kind, xs, ys, color=color))
        most = max(1 + e for s in self.scores() for e in (s.error, s.leave_one_out_error))
        ratio = Scale("predicted / published", "", "linear", 0.0, ceil(4 * most) / 4)
        return Chart(self.scale, ratio, (RefLine("", 1.0, "y"), *marks), title)

    def write(self) -> None:
        """Write the page and the picture."""
        super().write()
        self.picture.write_text(sheet(self.view()), encoding="utf-8")


def sheet(view: View) -> str:
    """The panels of a view, two in a row, as the text of one SVG file with one legend below all of them.

    Raises ValueError where a point would lie outside its axes: nothing is left out or moved in silence.
    """
    for panel in view.panels:
        _all_inside(panel)
    drawn, y = "", MARGIN
    for row in batched(map(_unlabeled, view.panels), 2):
        pictures = [draw.panel(panel, draw.NARROW) for panel in row]
        for k, picture in enumerate(pictures):
            place = f'x="{MARGIN + k * (draw.NARROW + GAP):g}" y="{y:g}" overflow="visible"'
            drawn += picture.replace("<svg ", f"<svg {place} ", 1) + "\n"
        y += max(float(ElementTree.fromstring(picture).attrib["height"]) for picture in pictures) + GAP
    wide = 2 * (draw.NARROW + MARGIN) + GAP
    keys, high = svg.legend(_keys(view.panels), wide - 2 * MARGIN, 0)
    size = f'width="{wide:g}" height="{y + high + MARGIN:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{svg.escape(view.verdict)}" '
        f'font-family="{svg.FONT}" font-size="{svg.SIZE}" fill="currentColor">\n<style>{STYLE}</style>\n'
        f'<rect width="100%" height="100%" fill="var(--ex-bg)"/>\n{drawn}'
        f'<g transform="translate({MARGIN:g} {y:g})">{"".join(keys)}</g>\n</svg>\n'
    )


def _unlabeled(panel: Panel) -> Panel:
    """The panel without the names of its points, which the legend has."""
    assert isinstance(panel, Chart)
    return replace(panel, marks=[replace(m, label="") if isinstance(m, Points) else m for m in panel.marks])


def _keys(panels: Sequence[Panel]) -> list[tuple[str, str]]:
    """Each name of points with its paint, once."""
    marks = [mark for panel in panels if isinstance(panel, Chart) for mark in panel.marks]
    points = {mark.label: mark.color for mark in marks if isinstance(mark, Points)}
    return [(label, f'fill="{ink(color or 0)}"') for label, color in points.items()]


def _all_inside(panel: Panel) -> None:
    if not isinstance(panel, Chart):
        return
    (left, right), (low, high) = panel.ranges()
    for mark in panel.marks:
        for x, y in zip(mark.xs, mark.ys, strict=True) if isinstance(mark, Points) else ():
            if not (left <= x <= right and low <= y <= high):
                raise ValueError(f"{panel.title}: the point ({x:g}, {y:g}) lies outside the axes; widen them")


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows as a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def share(value: float, digits: int = 1) -> str:
    """'4.5%'."""
    return f"{value:.{digits}%}"


def range_text(values: Sequence[float], unit: str) -> str:
    """'1.8 to 2.1 TB', with two digits each."""
    low, high = si(min(values), unit, 2), si(max(values), unit, 2)
    return f"{low.split()[0]} to {high}" if low.split()[1] == high.split()[1] else f"{low} to {high}"


def coverage_rows(interval_coverage: Bands) -> Cells:
    """The share of runs that leave-one-out intervals cover: of all runs, and averaged over sources."""
    for experts, name in ((False, "dense"), (True, "with experts")):
        found = interval_coverage(experts).values()
        range_text = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
        yield name, str(len(found)), share(range_text, 0), share(mean(i / runs for i, runs in found), 0)


def sources(scores: Iterable[Score]) -> Cells:
    """The source of each family of runs."""
    for name, run in sorted({s.run.family: s.run for s in scores}.items()):
        yield name, f"[{run.source.text}]({run.source.url})", run.note


def worst_predicted(scores: Iterable[Score], many: int = 16) -> list[Score]:
    """The runs with the largest errors."""
    return sorted(scores, key=lambda s: -abs(s.error))[:many]


def main(names: Sequence[str]) -> int:
    """Write these pages and return how many failed."""
    failed = 0
    for name in names:
        try:
            import_module(f"tools.{name}_page").PAGE.write()
            print(f"{name}: written")
        except Exception:
            traceback.print_exc()
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ("training", "serving", "fidelity", "compiled")))
