"""Write the appendices on predictions beside what was published: `python -m tools.published [training]`.

A page is the words of its template, `<name>_page.md`, with every {name} filled in from the library; those on
training and serving have a picture of all runs. `<name>_page` says what is filled in; a test compares the
text. `make fidelity` writes all.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pathlib import Path
from statistics import mean
from typing import Any

from scalingbook_lib.evidence.scores import Score
from scalingbook_lib.reader.explorers.view import Chart, Panel, Points, RefLine, Scale, View
from scalingbook_lib.units import si
from tools.environment import ROOT

type Cells = Iterator[tuple[str, ...]]
type Bands = Callable[[bool], Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, kw_only=True)
class Text:
    """An appendix: what it is called, and what fills its template."""

    name: str
    told: Callable[[], dict[str, str]]
    tables: Mapping[str, Callable[[], Cells]]

    @property
    def path(self) -> Path:
        """Where it stands."""
        return ROOT / f"{self.name}.md"

    def text(self) -> str:
        """The words of the template with every {name} filled in."""
        template = Path(__file__).with_name(f"{self.name}_page.md").read_text()
        return template.format(**self.told(), **{name: table(rows()) for name, rows in self.tables.items()})

    def write(self) -> None:
        """The page."""
        self.path.write_text(self.text())


@dataclass(frozen=True, kw_only=True)
class Page(Text):
    """A page on runs: which of them its picture shows.

    `kinds` are the colors of the picture, by the first word of a chip's name; a chip that has none is a TPU.
    """

    title: str
    scores: Callable[[], Sequence[Score]]
    across: Callable[[Score], float]
    scale: Scale
    kinds: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Where it stands."""
        return ROOT / f"{self.name}-runs.md"

    @property
    def picture(self) -> Path:
        """Where its picture stands."""
        return ROOT / f"{self.name}-runs.svg"

    def view(self) -> View:
        """Predicted over published, each run a point, by the kind of chip."""
        charts = []
        for experts, who in ((False, "Dense"), (True, "Experts")):
            scores = [s for s in self.scores() if s.run.experts == experts]
            charts.append(self._chart(f"{who}: as fitted", scores, lambda s: s.error))
            out = f"{who}: by a table without the source"
            charts.append(self._chart(out, scores, lambda s: s.left_out_error))
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
        most = max(1 + e for s in self.scores() for e in (s.error, s.left_out_error))
        ratio = Scale("predicted / published", "", "linear", 0.0, ceil(4 * most) / 4)
        return Chart(self.scale, ratio, (RefLine("", 1.0, "y"), *marks), title)

    def write(self) -> None:
        """Both files."""
        super().write()
        draw(self.view(), self.picture)


def draw(view: View, path: Path) -> None:
    """A picture that is the same whenever it is drawn, with one legend below all panels.

    Raises ValueError where a point would lie outside its axes: nothing is left out or moved in silence.
    """
    import matplotlib

    from scalingbook_lib.viz import figures

    for panel in view.panels:
        _all_inside(panel)
    with matplotlib.rc_context({"svg.hashsalt": path.name}):
        figure = figures.draw(view)
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            handles.update(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
            if (legend := axes.get_legend()) is not None:
                legend.remove()
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _all_inside(panel: Panel) -> None:
    if not isinstance(panel, Chart):
        return
    (left, right), (low, high) = panel.ranges()
    for mark in panel.marks:
        for x, y in zip(mark.xs, mark.ys, strict=True) if isinstance(mark, Points) else ():
            if not (left <= x <= right and low <= y <= high):
                raise ValueError(f"{panel.title}: the point ({x:g}, {y:g}) lies outside the axes; widen them")


def table(rows: Iterable[Iterable[str]]) -> str:
    """Its rows in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def share(value: float, digits: int = 1) -> str:
    """'4.5%'."""
    return f"{value:.{digits}%}"


def within(values: Sequence[float], unit: str) -> str:
    """'1.8 to 2.1 TB', two digits each."""
    low, high = si(min(values), unit, 2), si(max(values), unit, 2)
    return f"{low.split()[0]} to {high}" if low.split()[1] == high.split()[1] else f"{low} to {high}"


def bands(held_by_band: Bands) -> Cells:
    """How many runs bands hold that never saw them: of all, and in the mean of the sources."""
    for experts, name in ((False, "dense"), (True, "with experts")):
        found = held_by_band(experts).values()
        within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
        yield name, str(len(found)), share(within, 0), share(mean(i / runs for i, runs in found), 0)


def sources(scores: Iterable[Score]) -> Cells:
    """Where each family of runs was read."""
    for name, run in sorted({s.run.family: s.run for s in scores}.items()):
        yield name, f"[{run.source.text}]({run.source.url})", run.note


def worst(scores: Iterable[Score], many: int = 16) -> list[Score]:
    """The runs that are predicted worst."""
    return sorted(scores, key=lambda s: -abs(s.error))[:many]


def main(names: Sequence[str]) -> int:
    """Write these pages, whichever of them cannot be written; returns how many could not."""
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
