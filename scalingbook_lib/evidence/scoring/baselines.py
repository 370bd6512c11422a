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
from scalingbook_lib.evidence.reading.cells import Cells
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.scoring.report import Found, Ideal, Report, Scored
from scalingbook_lib.training import PEAK

type Shares = Mapping[tuple[str, str, str], float]


class Bare(NamedTuple):
    """A row, and what simple rules say of it."""

    found: Found
    ideal: Ideal

    @property
    def kin(self) -> tuple[tuple[str, str, str], ...]:
        """Class, chip and type, then what is wider: the constant is that of the first with rows."""
        kind, chip, type = self.found.kind, self.found.chip, self.ideal.type
        return (kind, chip, type), (kind, chip, ""), (kind, "", type), (kind, "", "")

    def error(self, ratio: float) -> float:
        """Predicted over measured, less 1, from a ratio of seconds; of saturated servers that of the rate."""
        return (1 / ratio if self.found.kind.startswith("serving saturated") else ratio) - 1

    @property
    def by_roofline(self) -> float:
        """The error of the bare roofline."""
        return self.error(self.ideal.roofline)

    def by_constant(self, fitted: Shares) -> float | None:
        """The error by the constant of the nearest kin; None where no row of its class was ever fitted."""
        share = next((fitted[key] for key in self.kin if key in fitted), None)
        return None if share is None else self.error(self.ideal.share_of / share)


def _training(row: Cells, seconds: float) -> Ideal:
    run = read(row)
    ideal_s = run.flops / run.chips / run.chip.flops_per_s(run.dtype)
    return Ideal(run.precision, training.seconds(run, PEAK).total_s / seconds, ideal_s / seconds)


def _serving(row: Cells) -> Ideal:
    run = inference_runs.read(row)
    ratio = run.tokens_per_s / inference.tokens_per_s(run, ROOFLINE)
    return Ideal(run.compute.name, ratio, ratio)


def bare(scored: Scored) -> Bare | None:
    """Of a row; None where it was refused, or where its plan, as far as it is said, cannot be laid."""
    found = scored.found
    try:
        if found and found.kind.startswith("training"):
            return Bare(found, _training(scored.row, found.measured.middle))
        if found and found.kind.startswith("serving"):
            return Bare(found, _serving(scored.row))
    except ValueError:
        return None
    return Bare(found, found.ideal) if found and found.ideal else None


def shares(bares: Iterable[Bare]) -> Shares:
    """The median share of each class, chip and type, and of all that are wider."""
    named = grouped(((key, one.ideal.share_of) for one in bares for key in one.kin), lambda pair: pair[0])
    return {key: median(share for _, share in group) for key, group in named.items()}


def rows(table: str) -> tuple[Cells, ...]:
    """Of one of the library's own tables, with what was collected later."""
    later = resources.rows(f"added_{table}") if table in ("training_runs", "inference_runs") else ()
    return (*resources.rows(table), *later)


@cache
def visible(table: str) -> Shares:
    """The constants of the library's own rows."""
    report = scoring.score(rows(table))
    return shares(one for row in report.rows if (one := bare(row)))


def beside(report: Report) -> tuple[dict[str, Summary], ...]:
    """For each class, errors "here", of the "roofline" and of the "constant", on rows that all answer."""
    bares = [one for row in report.rows if (one := bare(row))]
    fitted = visible(report.table) if bares else {}
    answers = [(one, error) for one in bares if (error := one.by_constant(fitted)) is not None]
    return tuple(
        {
            "here": Summary.of(kind, [one.found.error for one, _ in group]),
            "roofline": Summary.of(kind, [one.by_roofline for one, _ in group]),
            "constant": Summary.of(kind, [error for _, error in group]),
        }
        for kind, group in sorted(grouped(answers, lambda answer: answer[0].found.kind).items())
    )
