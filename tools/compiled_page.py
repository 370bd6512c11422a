"""The numbers, tables, figure and data file of the page "Predicted and compiled"."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import exp, log

from scalingbook_lib.evidence.compiled import RECORDED
from scalingbook_lib.evidence.scores import COVERAGE, Summary, quantile, signed
from tools.compiled import tables
from tools.compiled.beside import CLASSES, FAR, FLOPS, HELD, MEASURES, MOVED, REASONS, Beside, every, reasons
from tools.published import Cells, Page, share
from tools.scatter import Group, Scatter

EXPLICIT = "training, explicit collectives"
BYTES = MOVED, HELD  # the measures of the figure; FLOPs are nearly always exact


def pairs(kind: str = "") -> Iterator[tuple[float, float]]:
    """Compiled and predicted bytes received and held, of all programs or those of one class."""
    for one in every():
        for measure in BYTES if kind in ("", one.kind) else ():
            if measure in one.errors:
                yield one.compiled[measure], one.predicted[measure]


def figure() -> Scatter:
    """Bytes received and bytes held of every program, by class."""
    sizes = sorted(abs(log(predicted / compiled)) for compiled, predicted in pairs())
    return Scatter(
        conclusion="Predicted against compiled bytes received and held by a device, by class of program",
        reference="compiled",
        quantity="bytes per device",
        unit="B",
        groups=[Group(label=kind, pairs=list(pairs(kind))) for kind in CLASSES],
        band=exp(quantile(sizes, COVERAGE)),
    )


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    found = every()
    phases = Counter(one.case.phase for one in found)
    inside = {measure: _within(measure, 0.1) for measure in MEASURES}
    explicit = [one for one in found if one.kind == EXPLICIT]
    return {
        "compiler": RECORDED.text.partition(",")[0],
        "date": RECORDED.as_of,
        "programs": str(len(found)),
        **{phase: str(n) for phase, n in phases.items()},
        "most": f"{max(one.case.chips for one in found):,}",
        "exact": str(sum(abs(one.errors[FLOPS]) < 1e-9 for one in found)),
        "near_received": inside[MOVED],
        "near_held": inside[HELD],
        "explicit_received": _summary(explicit, MOVED)[1],
        "explicit_held": _summary(explicit, HELD)[0],
        "near": share(FAR, 0),
        "far": str(sum(len(one.far) for one in found)),
        "figures": str(sum(len(one.errors) for one in found)),
        **dict(zip(("largest", "largest_share"), tables.largest("styles"), strict=True)),
        "reasons": "\n".join(_reasons()),
        **{f"cycles_{name}": f"{tables.middle(name):.1f}" for name in ("styles", "prompts", "decoding")},
    }


def _within(measure: str, most: float) -> str:
    """The share of programs whose error in a measure is at most `most`."""
    errors = [one.errors[measure] for one in every() if measure in one.errors]
    return share(sum(abs(error) <= most for error in errors) / len(errors), 0)


def _classes() -> Cells:
    for kind in (*CLASSES, "all"):
        own = [one for one in every() if kind in ("all", one.kind)]
        cells = (cell for measure in MEASURES for cell in _summary(own, measure))
        yield kind, str(len(own)), *cells


def _summary(own: list[Beside], measure: str) -> tuple[str, str]:
    """The median error, and the error that 90% of the programs do not exceed."""
    one = Summary.of(measure, [one.errors[measure] for one in own if measure in one.errors])
    return share(one.median), share(one.p90, 0)


def _reasons() -> Iterator[str]:
    """A line per rule: its measure, its number of programs, the size of the errors, and the cause."""
    for reason in REASONS:
        errors = [one.far[reason.measure] for one in every() if reason in reasons(one)]
        sizes = " to ".join(dict.fromkeys(signed(f(errors), 0) for f in (min, max)))
        many = f"{len(errors)} program{'s' * (len(errors) > 1)}"
        name = reason.name[0].upper() + reason.name[1:]
        yield f"- **{name}** ({reason.measure}, {many}, {sizes}). {reason.says}"


PAGE = Page(
    name="compiled",
    stem="predicted-and-compiled",
    values=numbers,
    tables={
        "classes": _classes,
        "worst": tables.worst,
        "cycled": tables.cycled,
        **{f"moved_by_{name}": partial(tables.collectives, name) for name in tables.GROUPS},
    },
    figure=figure,
    data={"predicted_programs": tables.programs},
)
