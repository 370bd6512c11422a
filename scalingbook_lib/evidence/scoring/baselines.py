"""How near do simpler rules come on the same rows? A bare roofline, and one constant for each chip and type.

The roofline is the closed form at documented peaks: nothing is lost, and all that can hide is hidden. The
constant is a share: of training the MFU, of products and attention the share of the peak, of all else the
share of the roofline. It is the median of the library's own rows of that class, chip and type; a chip without
such rows takes its own in other types, else those of its type on other chips, else all of the class.
Chapters: Training, Inference.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from statistics import median
from typing import NamedTuple

from scalingbook_lib.evidence import inference, resources, scoring, training
from scalingbook_lib.evidence.inference.scores import ROOFLINE
from scalingbook_lib.evidence.measured import inference_runs
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, precision, text
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.scoring import kernels
from scalingbook_lib.evidence.scoring.kernels import NARROW
from scalingbook_lib.evidence.scoring.report import Found, Report, Scored
from scalingbook_lib.training import PEAK
from scalingbook_lib.units import dtype


class Bare(NamedTuple):
    """What simple rules know of a row: its type, and its seconds, as measured and by two rules.

    `roofline_s` is the bare roofline. `ideal_s` is what a constant share is taken of.
    """

    found: Found
    type: str
    measured_s: float
    roofline_s: float
    ideal_s: float

    @property
    def kin(self) -> tuple[tuple[str, str, str], ...]:
        """Class, chip and type, then what is wider: the constant is that of the first with rows."""
        kind, chip = self.found.kind, self.found.chip
        return (kind, chip, self.type), (kind, chip, ""), (kind, "", self.type), (kind, "", "")

    def error(self, seconds: float) -> float:
        """Predicted over measured, less 1: of servers that are never idle the rate, of all else the time."""
        ratio = seconds / self.measured_s
        return (1 / ratio if self.found.kind.startswith("serving saturated") else ratio) - 1


class Beside(NamedTuple):
    """Errors of a class, on the same rows."""

    here: Summary
    roofline: Summary
    constant: Summary


type Shares = Mapping[tuple[str, str, str], float]


def bare(table: str, scored: Scored) -> Bare | None:
    """Of a row; None where it was refused, or where its plan, as far as it is said, cannot be laid."""
    if scored.found is None or table not in RULES:
        return None
    try:
        return RULES[table](scored.row, scored.found)
    except ValueError:
        return None


def _training(row: Cells, found: Found) -> Bare:
    run = read(row)
    ideal_s = run.flops / run.chips / run.chip.flops_per_s(run.dtype)
    roofline_s = training.seconds(run, PEAK).total_s
    return Bare(found, run.precision, found.measured.middle, roofline_s, ideal_s)


def _serving(row: Cells, found: Found) -> Bare:
    """A token each: the ratio of rates is the same as of times."""
    run = inference_runs.read(row)
    roofline_s = 1 / inference.tokens_per_s(run, ROOFLINE)
    return Bare(found, run.compute.name, 1 / run.tokens_per_s, roofline_s, roofline_s)


def _kernel(row: Cells, found: Found) -> Bare:
    """Of what only reads and writes, the constant is a share of the memory's rate."""
    chip, one = kernels.timed(row)
    written = precision(text(row, "dtype"))
    type = NARROW.get(written, written)
    math_s = one.flops / chip.flops_per_s(dtype(type))
    memory_s = one.nbytes / chip.hbm_bytes_per_s
    ideal_s = math_s if one.kind.startswith(("products", "attention prompt")) else memory_s
    return Bare(found, type, found.measured.middle, max(math_s, memory_s), ideal_s)


def _collective(row: Cells, found: Found) -> Bare:
    """One link has one type."""
    ideal_s = kernels.links_s(row)
    return Bare(found, "", found.measured.middle, ideal_s, ideal_s)


RULES = {
    "training_runs": _training,
    "inference_runs": _serving,
    "kernels": _kernel,
    "collectives": _collective,
}


def shares(bares: Iterable[Bare]) -> Shares:
    """The median share of what is ideal, of each class, chip and type, and of all that are wider."""
    named = [(key, one.ideal_s / one.measured_s) for one in bares for key in one.kin]
    return {key: median(share for _, share in group) for key, group in grouped(named, lambda p: p[0]).items()}


def constant_s(one: Bare, fitted: Shares) -> float | None:
    """By the constant of the nearest kin; None where no row of its class was ever fitted."""
    return next((one.ideal_s / fitted[key] for key in one.kin if key in fitted), None)


@cache
def visible(table: str) -> tuple[Bare, ...]:
    """Of the library's own rows."""
    report = scoring.score(resources.rows(table))
    return tuple(one for row in report.rows if (one := bare(report.table, row)))


def beside(report: Report) -> tuple[Beside, ...]:
    """For each class, the errors of the library and of simpler rules, on the rows that all of them answer."""
    bares = [one for row in report.rows if (one := bare(report.table, row))]
    fitted = shares(visible(report.table)) if bares else {}
    answers = [(one, seconds) for one in bares if (seconds := constant_s(one, fitted))]
    return tuple(
        Beside(
            Summary.of(kind, [one.found.error for one, _ in group]),
            Summary.of(kind, [one.error(one.roofline_s) for one, _ in group]),
            Summary.of(kind, [one.error(seconds) for one, seconds in group]),
        )
        for kind, group in sorted(grouped(answers, lambda answer: answer[0].found.kind).items())
    )
