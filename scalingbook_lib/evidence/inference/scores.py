"""How near do predictions come to published runs, to those that were fitted and to those left out?

Chapter: Inference.
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence import factors
from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.inference.efficiencies import of, source
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.inference import Efficiency

ROOFLINE = Efficiency(overlap=1.0, name="roofline")
KINDS = "serving, dense", "serving, with experts", "prefill", "decode, one sequence", "batches"
"""Runs that are scored together."""


@dataclass(frozen=True, kw_only=True)
class InferenceScore(common.Score[InferenceRun]):
    """A run, and tokens/s: above an error of 0 the prediction is too fast; `peak`, by the roofline alone."""

    peak: float

    @property
    def peak_error(self) -> float:
        """The error of a bare roofline: every class at its documented peak, nothing lost, nothing exposed."""
        return self.peak / self.published - 1

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is scored with."""
        if self.run.kind == "serving":
            return KINDS[self.run.experts]
        if self.run.kind == "prefill":
            return KINDS[2]
        return KINDS[3] if self.run.kind == "decode" and self.run.B == 1 else KINDS[4]


def banded(run: InferenceRun) -> str:
    """Which band is a run's: servers that are full, dense or with experts; or one batch at a time."""
    return KINDS[run.experts] if run.kind == "serving" else KINDS[4]


@cache
def scores() -> tuple[InferenceScore, ...]:
    """Every usable run, predicted."""
    found = factors.record("inference")
    return tuple(
        InferenceScore(
            run=run,
            source=source(run),
            unit="tokens/s",
            published=run.tokens_per_s,
            predicted=_by(run, found.values),
            left_out=_by(run, found.left_out[source(run)]),
            peak=tokens_per_s(run, ROOFLINE),
        )
        for run in runs()
    )


def _by(run: InferenceRun, values: Values) -> float:
    return tokens_per_s(run, of(values, run))


def total(kind: str, left_out: bool = False) -> Summary:
    """All runs of a kind; as fitted, or each by a table that never saw its source."""
    return common.total(kind, [s for s in scores() if s.kind == kind], left_out)


def by_source() -> tuple[tuple[Summary, Summary], ...]:
    """For each source: as fitted, and by figures without it."""
    return common.summaries(grouped(scores(), lambda s: s.source))


def band(experts: bool, *, full: bool = True, known: bool = False) -> float:
    """The factor, up or down, that shall hold five in six runs of a model, or of software, nobody has seen.

    `full` servers, or one batch at a time; `known`: software that has figures of its own.
    """
    kind = KINDS[experts] if full else KINDS[4]
    return factors.record("inference").tried["known" if known else "unseen"][kind]


def held_by_band(experts: bool) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    return common.held_by_band([s for s in scores() if s.run.experts == experts])
