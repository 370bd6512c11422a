"""What is filled into the page "Predicted and compiled": its numbers, its tables, and its picture."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scalingbook_lib.evidence.compiled import RECORDED
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.reader.explorers.view import Chart, Points, RefLine, Scale, View
from scalingbook_lib.units import si
from tools.compiled.beside import CLASSES, FAR, MEASURES, REASONS, Beside, every, reasons
from tools.environment import ROOT
from tools.published import Cells, Text, draw, share

WIDEST = 0.5  # errors farther off lie on the edge of the picture


@dataclass(frozen=True, kw_only=True)
class Compiled(Text):
    """The page and its picture."""

    @property
    def path(self) -> Path:
        return ROOT / "predicted-and-compiled.md"

    @property
    def picture(self) -> Path:
        """Where it stands."""
        return self.path.with_suffix(".svg")

    def view(self) -> View:
        """Predicted over compiled, each program a point, by its class."""
        return View("Predicted over compiled.", tuple(map(_chart, MEASURES)), columns=2)

    def write(self) -> None:
        super().write()
        draw(self.view(), self.picture)


def _chart(measure: str) -> Chart:
    marks = []
    for color, kind in enumerate(CLASSES):
        own = [one for one in every() if one.kind == kind and measure in one.errors]
        ratios = [1 + min(max(one.errors[measure], -WIDEST), WIDEST) for one in own]
        marks.append(Points(kind, [one.case.devices for one in own], ratios, color=color))
    ratio = Scale("predicted / compiled", "", "linear", 1 - WIDEST, 1 + WIDEST)
    return Chart(Scale("devices", "", "log", 1, 4096), ratio, (RefLine("", 1.0, "y"), *marks), measure)


def numbers() -> dict[str, str]:
    """What the words of the page quote."""
    found = every()
    phases = Counter(one.case.phase for one in found)
    return {
        "compiler": RECORDED.text.partition(",")[0],
        "date": RECORDED.as_of,
        "programs": str(len(found)),
        **{phase: str(n) for phase, n in phases.items()},
        "most": f"{max(one.case.chips for one in found):,}",
        "exact": str(sum(abs(one.errors["FLOPs"]) < 1e-9 for one in found)),
        "near": share(FAR, 0),
        "far": str(sum(len(one.far) for one in found)),
        "figures": str(sum(len(one.errors) for one in found)),
    }


def _classes() -> Cells:
    for kind in (*CLASSES, "all"):
        own = [one for one in every() if kind in ("all", one.kind)]
        yield kind, str(len(own)), *(cell for measure in MEASURES for cell in _summary(own, measure))


def _summary(own: list[Beside], measure: str) -> Iterator[str]:
    one = Summary.of(measure, [one.errors[measure] for one in own if measure in one.errors])
    yield share(one.median)
    yield share(one.p90)


def _programs() -> Cells:
    for one in every():
        cells = []
        for measure in MEASURES:
            error = one.errors.get(measure)
            unit = "FLOPs" if measure == "FLOPs" else "B"
            cells += [
                si(one.compiled[measure], unit, 3) if error is not None else "",
                "" if error is None else _signed(error),
            ]
        over = one.over_roofline
        yield one.case.name, one.case.topology, *cells, "" if over is None else f"{over:.2f}"


def _signed(error: float) -> str:
    return "0" if abs(error) < 5e-4 else signed(error)


def _moved() -> Cells:
    """By kind of collective: how often, and bytes, over all programs."""
    kinds = sorted({kind for one in every() for kind in one.facts.moved})
    for kind in kinds:
        own = [one for one in every() if one.facts.moved.get(kind) or one.case.moved().get(kind)]
        yield kind, str(len(own))


def _reasons() -> Cells:
    for reason in REASONS:
        own = [(one, one.far[reason.measure]) for one in every() if reason in reasons(one)]
        if own:
            low, high = (f(error for _, error in own) for f in (min, max))
            size = signed(low, 0) if len(own) == 1 else f"{signed(low, 0)} to {signed(high, 0)}"
            yield reason.name, reason.measure, str(len(own)), size, reason.says


PAGE = Compiled(
    name="compiled",
    told=numbers,
    tables={"classes": _classes, "all_programs": _programs, "reasons": _reasons},
)
