"""How near do predictions come to published runs, to those that were fitted and to those left out?

Chapter: Inference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import exp, log

from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.factors import record
from scalingbook_lib.evidence.inference.efficiencies import of, source
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, every
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.inference import Efficiency

ROOFLINE = Efficiency(overlap=1.0, name="roofline")
KINDS = "serving, dense", "serving, with experts", "prefill", "decode, one sequence", "batches"
"""Runs that are scored together."""
HELD = 0.85  # of the runs that were left out, so that `HOLDS` of others are held, too


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


@cache
def scores(known: bool = True) -> tuple[InferenceScore, ...]:
    """Every fitted run, predicted; left out is its source, or if its software is not `known`, all of that."""
    ratios = record("inference").left_out["source" if known else "software"]
    values, name = record("inference").values, source if known else _software
    return tuple(
        InferenceScore(
            run=run,
            source=name(run),
            unit="tokens/s",
            published=run.tokens_per_s,
            predicted=tokens_per_s(run, of(values, run)),
            left_out=ratios[run.id] * run.tokens_per_s,
            peak=tokens_per_s(run, ROOFLINE),
        )
        for run in every()
    )


def _software(run: InferenceRun) -> str:
    return run.software[0]


def total(kind: str, left_out: bool = False, known: bool = True) -> Summary:
    """All runs of a kind; as fitted, or each by figures that never saw its source."""
    return common.total(kind, [s for s in scores(known) if s.kind == kind], left_out)


def _band_scores(experts: bool, full: bool, known: bool) -> list[InferenceScore]:
    kinds = (KINDS[experts],) if full else KINDS[2:]
    return [s for s in scores(known) if s.kind in kinds]


@cache
def band(experts: bool, *, full: bool = True, known: bool = False) -> float:
    """The factor, up or down, that shall hold more than `HOLDS` of the runs of a source that nobody has seen.

    Of servers that are `full`, dense or with experts; or of one batch at a time. `known`: its software is.
    What software that is not known costs is its own, whatever it runs: one band for all.
    """
    return exp(_width(_band_scores(experts, full, known))) if known else _unknown()


def _unknown(besides: str = "") -> float:
    return common.band_of(scores(known=False), besides, HELD)


def _width(scores: Iterable[InferenceScore]) -> float:
    """Every run counts once: a source is a model, and most have runs at ten lengths that err apart."""
    return common.quantile(sorted(abs(log(s.left_out / s.published)) for s in scores), HELD)


def held_by_band(experts: bool, *, full: bool = True, known: bool = False) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    every, found = _band_scores(experts, full, known), {}
    for name, group in grouped(every, lambda s: s.source).items():
        others = (s for s in every if s.source != name)
        width = _width(others) if known else log(_unknown(besides=name))
        found[name] = sum(abs(log(s.left_out / s.published)) <= width for s in group), len(group)
    return found
