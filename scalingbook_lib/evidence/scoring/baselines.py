"""Two simple baselines for the same rows: the roofline, and one constant per chip and dtype.

The roofline is the closed form at documented peaks, with no overheads and full overlap. The constant is a
share: the MFU for training, the share of peak for matmuls and attention, the share of the roofline otherwise.
It is the median over the library's own rows of that class, chip and dtype; a chip without such rows takes its
own in other dtypes, then those of other chips in its dtype, then all of the class. Chapters: Training;
Inference.
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
from scalingbook_lib.evidence.scoring.report import Ideal, RowPrediction, Scored, ScoreReport
from scalingbook_lib.training import PEAK

type Shares = Mapping[tuple[str, str, str], float]


class RooflineBaseline(NamedTuple):
    """A row's prediction, and what the simple rules say of it."""

    found: RowPrediction
    ideal: Ideal

    @property
    def fallback_keys(self) -> tuple[tuple[str, str, str], ...]:
        """Class, chip and dtype, then wider groups; the constant is that of the first group with rows."""
        kind, chip, type = self.found.kind, self.found.chip, self.ideal.type
        return (kind, chip, type), (kind, chip, ""), (kind, "", type), (kind, "", "")

    def error(self, ratio: float) -> float:
        """Predicted over measured, minus 1, from a ratio of seconds; for saturated servers, of the rate."""
        return (1 / ratio if self.found.kind.startswith("serving saturated") else ratio) - 1

    @property
    def roofline_error(self) -> float:
        """The error of the bare roofline."""
        return self.error(self.ideal.roofline)

    def constant_error(self, fitted: Shares) -> float | None:
        """The error of the constant of the first fallback group; None if its class has no rows."""
        share = next((fitted[key] for key in self.fallback_keys if key in fitted), None)
        return None if share is None else self.error(self.ideal.share_of / share)


def _training(row: Cells, seconds: float) -> Ideal:
    run = read(row)
    ideal_s = run.flops / run.chips / run.chip.flops_per_s(run.dtype)
    return Ideal(run.precision, training.seconds(run, PEAK).total_s / seconds, ideal_s / seconds)


def _serving(row: Cells) -> Ideal:
    run = inference_runs.read(row)
    ratio = run.tokens_per_s / inference.tokens_per_s(run, ROOFLINE)
    return Ideal(run.compute.name, ratio, ratio)


def roofline_baseline(scored: Scored) -> RooflineBaseline | None:
    """The baseline of a row, or None if the row was refused or its plan does not fit the machine."""
    found = scored.found
    try:
        if found and found.kind.startswith("training"):
            return RooflineBaseline(found, _training(scored.row, found.measured.middle))
        if found and found.kind.startswith("serving"):
            return RooflineBaseline(found, _serving(scored.row))
    except ValueError:
        return None
    return RooflineBaseline(found, found.ideal) if found and found.ideal else None


def shares(baselines: Iterable[RooflineBaseline]) -> Shares:
    """The median share of each class, chip and dtype, and of all wider groups."""
    named = grouped(
        ((key, one.ideal.share_of) for one in baselines for key in one.fallback_keys), lambda pair: pair[0]
    )
    return {key: median(share for _, share in group) for key, group in named.items()}


def own_rows(table: str) -> tuple[Cells, ...]:
    """The rows of one of the library's own tables, including those collected later."""
    later = resources.rows(f"added_{table}") if table in ("training_runs", "inference_runs") else ()
    return (*resources.rows(table), *later)


@cache
def fitted_constants(table: str) -> Shares:
    """The constants of the library's own rows."""
    report = scoring.score(own_rows(table))
    return shares(one for row in report.rows if (one := roofline_baseline(row)))


def compared(report: ScoreReport) -> tuple[dict[str, Summary], ...]:
    """For each class, error summaries "here", "roofline" and "constant", on rows that all predict."""
    baselines = [one for row in report.rows if (one := roofline_baseline(row))]
    fitted = fitted_constants(report.table) if baselines else {}
    answers = [(one, error) for one in baselines if (error := one.constant_error(fitted)) is not None]
    return tuple(
        {
            "here": Summary.of(kind, [one.found.error for one, _ in group]),
            "roofline": Summary.of(kind, [one.roofline_error for one, _ in group]),
            "constant": Summary.of(kind, [error for _, error in group]),
        }
        for kind, group in sorted(grouped(answers, lambda answer: answer[0].found.kind).items())
    )
