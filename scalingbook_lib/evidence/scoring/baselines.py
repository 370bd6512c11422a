"""How near do simpler rules come on the same rows? A bare roofline, and one constant for each chip and type.

The roofline is the closed form at documented peaks: nothing is lost, and all that can hide is hidden. The
constant is a share: of training the MFU, of products and attention the share of the peak, of all else the
share of the roofline. It is the median of the library's own rows of that class, chip and type; a chip without
such rows takes its own in other types, else those of its type on other chips, else all of the class.
Chapters: Training, Inference.
"""

from collections.abc import Callable, Iterable, Mapping
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

COMPUTED = "products", "attention prompt"  # of other kernels the bytes are what counts

type Shares = Mapping[tuple[str, str, str], float]


class Bare(NamedTuple):
    """What simple rules know of a row: its type, and seconds as shares of those that were measured.

    `roofline` is what the bare roofline takes; `share` is what a constant is the share of the time of.
    """

    found: Found
    type: str
    roofline: float
    share: float

    @property
    def kin(self) -> tuple[tuple[str, str, str], ...]:
        """Class, chip and type, then what is wider: the constant is that of the first with rows."""
        kind, chip = self.found.kind, self.found.chip
        return (kind, chip, self.type), (kind, chip, ""), (kind, "", self.type), (kind, "", "")

    def error(self, ratio: float) -> float:
        """Predicted over measured, less 1, from a ratio of seconds; of saturated servers that of the rate."""
        return (1 / ratio if self.found.kind.startswith("serving saturated") else ratio) - 1

    def by_constant(self, fitted: Shares) -> float | None:
        """The error by the constant of the nearest kin; None where no row of its class was ever fitted."""
        return next((self.error(self.share / fitted[key]) for key in self.kin if key in fitted), None)


def _training(row: Cells, found: Found) -> Bare:
    run, seconds = read(row), found.measured.middle
    ideal_s = run.flops / run.chips / run.chip.flops_per_s(run.dtype)
    return Bare(found, run.precision, training.seconds(run, PEAK).total_s / seconds, ideal_s / seconds)


def _serving(row: Cells, found: Found) -> Bare:
    run = inference_runs.read(row)
    ratio = run.tokens_per_s / inference.tokens_per_s(run, ROOFLINE)
    return Bare(found, run.compute.name, ratio, ratio)


def _kernel(row: Cells, found: Found) -> Bare:
    """Of what only reads and writes, the constant is a share of the memory's rate."""
    chip, one = kernels.timed(row)
    written = precision(text(row, "dtype"))
    type = NARROW.get(written, written)
    math = one.flops / chip.flops_per_s(dtype(type)) / found.measured.middle
    memory = one.nbytes / chip.hbm_bytes_per_s / found.measured.middle
    return Bare(found, type, max(math, memory), math if one.kind.startswith(COMPUTED) else memory)


def _collective(row: Cells, found: Found) -> Bare:
    ratio = kernels.links_s(row) / found.measured.middle
    return Bare(found, "", ratio, ratio)


RULES: dict[str, Callable[[Cells, Found], Bare]] = {
    "training_runs": _training,
    "inference_runs": _serving,
    "kernels": _kernel,
    "collectives": _collective,
}


def bare(table: str, scored: Scored) -> Bare | None:
    """Of a row; None where it was refused, or where its plan, as far as it is said, cannot be laid."""
    try:
        return RULES[table](scored.row, scored.found) if scored.found and table in RULES else None
    except ValueError:
        return None


def shares(bares: Iterable[Bare]) -> Shares:
    """The median share of each class, chip and type, and of all that are wider."""
    named = grouped(((key, one.share) for one in bares for key in one.kin), lambda pair: pair[0])
    return {key: median(share for _, share in group) for key, group in named.items()}


@cache
def visible(table: str) -> Shares:
    """The constants of the library's own rows."""
    report = scoring.score(resources.rows(table))
    return shares(one for row in report.rows if (one := bare(table, row)))


def beside(report: Report) -> tuple[dict[str, Summary], ...]:
    """For each class, errors "here", of the "roofline" and of the "constant", on rows that all answer."""
    bares = [one for row in report.rows if (one := bare(report.table, row))]
    fitted = visible(report.table) if bares else {}
    answers = [(one, error) for one in bares if (error := one.by_constant(fitted)) is not None]
    return tuple(
        {
            "here": Summary.of(kind, [one.found.error for one, _ in group]),
            "roofline": Summary.of(kind, [one.error(one.roofline) for one, _ in group]),
            "constant": Summary.of(kind, [error for _, error in group]),
        }
        for kind, group in sorted(grouped(answers, lambda answer: answer[0].found.kind).items())
    )
