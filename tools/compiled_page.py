"""The numbers, tables and picture of the page "Predicted and compiled"."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path

from scalingbook_book.reader.explorers.view import Chart, Points, RefLine, Scale, View
from scalingbook_lib.evidence.compiled import RECORDED
from scalingbook_lib.evidence.scores import Summary, signed
from tools.compiled import tables
from tools.compiled.beside import CLASSES, FAR, FLOPS, MEASURES, REASONS, Beside, every, reasons
from tools.environment import ROOT
from tools.published import Cells, Text, share, sheet

SPREAD = 0.8  # octaves over which the points of one number of devices are spread, so that all are seen


@dataclass(frozen=True, kw_only=True)
class Compiled(Text):
    """The page and its picture."""

    @property
    def path(self) -> Path:
        return ROOT / "predicted-and-compiled.md"

    @property
    def picture(self) -> Path:
        """The path of the picture."""
        return self.path.with_suffix(".svg")

    def view(self) -> View:
        """Predicted over compiled, one point per program, by class."""
        return View("Predicted over compiled.", tuple(map(_chart, MEASURES)), columns=2)

    def write(self) -> None:
        super().write()
        self.picture.write_text(sheet(self.view()), encoding="utf-8")


def _chart(measure: str) -> Chart:
    shown = [one for one in every() if measure in one.errors]
    beside = _beside([one.case.devices for one in shown])
    marks = []
    for color, kind in enumerate(CLASSES):
        own = [k for k, one in enumerate(shown) if one.kind == kind]
        ratios = [1 + shown[k].errors[measure] for k in own]
        marks.append(Points(kind, [beside[k] for k in own], ratios, color=color))
    most = max(1 + error for one in every() for error in one.errors.values())
    ratio = Scale("predicted / compiled", "", "linear", 0.0, ceil(4 * most) / 4)
    return Chart(Scale("devices", "", "log", 0.5, 8192), ratio, (RefLine("", 1.0, "y"), *marks), measure)


def _beside(devices: Sequence[int]) -> list[float]:
    """The horizontal positions of points, spread so that those of one number of devices do not overlap."""
    many, before = Counter(devices), Counter[int]()
    places = []
    for n in devices:
        places.append(n * 2 ** (SPREAD * ((before[n] + 0.5) / many[n] - 0.5)))
        before[n] += 1
    return places


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    found = every()
    phases = Counter(one.case.phase for one in found)
    return {
        "compiler": RECORDED.text.partition(",")[0],
        "date": RECORDED.as_of,
        "programs": str(len(found)),
        **{phase: str(n) for phase, n in phases.items()},
        "most": f"{max(one.case.chips for one in found):,}",
        "exact": str(sum(abs(one.errors[FLOPS]) < 1e-9 for one in found)),
        "near": share(FAR, 0),
        "far": str(sum(len(one.far) for one in found)),
        "figures": str(sum(len(one.errors) for one in found)),
        **dict(zip(("largest", "largest_share"), tables.largest("styles"), strict=True)),
        "reasons": "\n".join(_reasons()),
        "folded": tables.folded(),
    }


def _classes() -> Cells:
    for kind in (*CLASSES, "all"):
        own = [one for one in every() if kind in ("all", one.kind)]
        yield f"{kind} ({len(own)})", *(_summary(own, measure) for measure in MEASURES)


def _summary(own: list[Beside], measure: str) -> str:
    one = Summary.of(measure, [one.errors[measure] for one in own if measure in one.errors])
    return f"{share(one.median)}, {share(one.p90)}"


def _reasons() -> Iterator[str]:
    """A line per rule: its measure, its number of programs, the size of the errors, and the cause."""
    for reason in REASONS:
        errors = [one.far[reason.measure] for one in every() if reason in reasons(one)]
        sizes = " to ".join(dict.fromkeys(signed(f(errors), 0) for f in (min, max)))
        many = f"{len(errors)} program{'s' * (len(errors) > 1)}"
        yield f"- **{reason.name.capitalize()}** ({reason.measure}, {many}, {sizes}). {reason.says}"


PAGE = Compiled(
    name="compiled",
    values=numbers,
    tables={
        "classes": _classes,
        "worst": tables.worst,
        "cycled": tables.cycled,
        **{f"moved_by_{name}": partial(tables.collectives, name) for name in tables.GROUPS},
    },
)
