"""How near do predictions come to published runs, to those that were fitted and to those left out?

Chapter: Inference.
"""

from collections.abc import Iterable, Mapping
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
        return _kind(self.run)


def _kind(run: InferenceRun) -> str:
    if run.kind == "serving":
        return KINDS[run.experts]
    if run.kind == "prefill":
        return KINDS[2]
    return KINDS[3] if run.kind == "decode" and run.B == 1 else KINDS[4]


@cache
def scores(known: bool = True) -> tuple[InferenceScore, ...]:
    """Every fitted run, predicted; left out is its source, or if its software is not `known`, all of that."""
    ratios = _ratios(known)
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


def _ratios(known: bool) -> Mapping[str, float]:
    """Predicted over published, by figures that never saw a run's source, or if not `known` its software."""
    return record("inference").left_out["source" if known else "software"]


def _software(run: InferenceRun) -> str:
    return run.software[0]


def total(kind: str, left_out: bool = False, known: bool = True) -> Summary:
    """All runs of a kind; as fitted, or each by figures that never saw its source."""
    return common.total(kind, [s for s in scores(known) if s.kind == kind], left_out)


def _in_band(experts: bool, full: bool) -> list[InferenceRun]:
    kinds = (KINDS[experts],) if full else KINDS[2:]
    return [run for run in every() if _kind(run) in kinds]


@cache
def band(experts: bool, *, full: bool = True, known: bool = False) -> float:
    """The factor, up or down, that shall hold more than `HOLDS` of the runs of a source that nobody has seen.

    Of servers that are `full`, dense or with experts; or of one batch at a time. `known`: its software is.
    What software that is not known costs is its own, whatever it runs: one band for all.
    """
    ratios = _ratios(known)
    return exp(_width(ratios[run.id] for run in _in_band(experts, full))) if known else _unknown()


def _unknown(besides: str = "") -> float:
    ratios = _ratios(known=False)
    others = grouped((run for run in every() if _software(run) != besides), _software)
    return common.band({name: [log(ratios[run.id]) for run in runs] for name, runs in others.items()}, HELD)


def _width(ratios: Iterable[float]) -> float:
    """Every run counts once: a source is a model, and most have runs at ten lengths that err apart."""
    return common.quantile(sorted(abs(log(ratio)) for ratio in ratios), HELD)


def held_by_band(experts: bool, *, full: bool = True, known: bool = False) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    name, ratios, found = source if known else _software, _ratios(known), {}
    sources = grouped(_in_band(experts, full), name)
    for one, group in sources.items():
        others = (ratios[run.id] for other, runs in sources.items() if other != one for run in runs)
        width = _width(others) if known else log(_unknown(besides=one))
        found[one] = sum(abs(log(ratios[run.id])) <= width for run in group), len(group)
    return found
