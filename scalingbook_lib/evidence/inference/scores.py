"""Errors of predicted tokens per second against published inference runs, and prediction intervals.

Chapter: Inference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log

from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.inference.efficiencies import efficiency_of, source
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, all_runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.inference import ServingEfficiency

ROOFLINE = ServingEfficiency(overlap=1.0, name="roofline")
KINDS = "serving, dense", "serving, with experts", "prefill", "decode, one sequence", "batches"
"""The groups of runs that are scored together."""
TARGET_COVERAGE = (
    0.85  # of the runs that were left out, so that at least `COVERAGE` of unseen runs are covered
)


@dataclass(frozen=True, kw_only=True)
class InferenceScore(common.Score[InferenceRun]):
    """A run's tokens/s (an error above 0 is too fast); `peak` is the bare roofline's prediction."""

    peak: float

    @property
    def peak_error(self) -> float:
        """The error of the bare roofline: documented peaks, no overheads, everything overlapped."""
        return self.peak / self.published - 1

    @property
    def kind(self) -> str:
        """The one of `KINDS` with which it is scored."""
        return _kind(self.run)


def _kind(run: InferenceRun) -> str:
    if run.kind == "serving":
        return KINDS[run.experts]
    if run.kind == "prefill":
        return KINDS[2]
    return KINDS[3] if run.kind == "decode" and run.B == 1 else KINDS[4]


@cache
def scores(known: bool = True) -> tuple[InferenceScore, ...]:
    """Every fitted run, predicted; left out is its source, or all of its software unless `known`."""
    ratios = _ratios(known)
    values, name = record("inference").values, source if known else _software_name
    return tuple(
        InferenceScore(
            run=run,
            source=name(run),
            unit="tokens/s",
            published=run.tokens_per_s,
            predicted=tokens_per_s(run, efficiency_of(values, run)),
            leave_one_out=ratios[run.id] * run.tokens_per_s,
            peak=tokens_per_s(run, ROOFLINE),
        )
        for run in all_runs()
    )


def _ratios(known: bool) -> Mapping[str, float]:
    """Predicted over published without a run's source, or, unless `known`, without its software."""
    return record("inference").leave_one_out["source" if known else "software"]


def _software_name(run: InferenceRun) -> str:
    return run.software[0]


def total(kind: str, leave_one_out: bool = False, known: bool = True) -> Summary:
    """The summary of all runs of a kind, as fitted or leave-one-out."""
    return common.total(kind, [s for s in scores(known) if s.kind == kind], leave_one_out)


def _interval_runs(experts: bool, full: bool) -> list[InferenceRun]:
    kinds = (KINDS[experts],) if full else KINDS[2:]
    return [run for run in all_runs() if _kind(run) in kinds]


@cache
def prediction_interval(experts: bool, *, full: bool = True, known: bool = False) -> float:
    """The factor, up or down, that is to cover at least `COVERAGE` of the runs of an unseen source.

    For `full` servers, dense or with experts, or else for single batches. With software that is not `known`,
    there is one interval for everything, because its overheads do not depend on what it runs.
    """
    ratios = _ratios(known)
    return (
        exp(_width(ratios[run.id] for run in _interval_runs(experts, full)))
        if known
        else _unknown_software_interval()
    )


def interval_rows(experts: bool, *, full: bool = True, known: bool = False) -> int:
    """The left-out runs that determine an interval."""
    return len(_interval_runs(experts, full) if known else all_runs())


def _unknown_software_interval(excluded: str = "") -> float:
    ratios = _ratios(known=False)
    others = grouped((run for run in all_runs() if _software_name(run) != excluded), _software_name)
    return common.prediction_interval(
        {name: [log(ratios[run.id]) for run in runs] for name, runs in others.items()}, TARGET_COVERAGE
    )


def _width(ratios: Iterable[float]) -> float:
    """The half-width as a logarithm; every run counts once, because runs of one source err independently."""
    return common.quantile(sorted(abs(log(ratio)) for ratio in ratios), TARGET_COVERAGE)


@cache
def covered(known: bool = False) -> dict[str, bool]:
    """Whether a run lies in its leave-one-out interval, by run id.

    The interval is computed without the run's source, or, unless `known`, without its software.
    """
    found = {}
    for experts, full in ((False, True), (True, True), (False, False)):
        found |= _covered(experts, full, known)
    return found


def _covered(experts: bool, full: bool, known: bool) -> dict[str, bool]:
    name, ratios, found = source if known else _software_name, _ratios(known), {}
    sources = grouped(_interval_runs(experts, full), name)
    for one, group in sources.items():
        others = (ratios[run.id] for other, runs in sources.items() if other != one for run in runs)
        width = _width(others) if known else log(_unknown_software_interval(excluded=one))
        found |= {run.id: abs(log(ratios[run.id])) <= width for run in group}
    return found


def interval_coverage(experts: bool, *, full: bool = True, known: bool = False) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs its leave-one-out interval covers, and how many it has."""
    inside = _covered(experts, full, known)
    sources = grouped(_interval_runs(experts, full), source if known else _software_name)
    return {one: (sum(inside[run.id] for run in runs), len(runs)) for one, runs in sources.items()}
