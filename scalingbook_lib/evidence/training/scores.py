"""Errors of predicted step times against published training runs, and prediction intervals.

Chapter: Training.
"""

from functools import cache

from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Score, Summary
from scalingbook_lib.evidence.training.candidate_plans import all_runs
from scalingbook_lib.evidence.training.efficiencies import efficiency_of, step_s

LEAVE_OUT_KEYS = {"release": "rows", "software": "source", "": "software"}
"""The leave-one-out fits of `factors.Record`, by what of a run's software was seen."""
LESS_KNOWN = (*LEAVE_OUT_KEYS,)  # from what is known best to nothing


def source(run: TrainingRun) -> str:
    """The source that is left out together: a release; all of Megatron-Bridge is one."""
    release = run.software[-1]
    return "mbridge" if release.startswith("mbridge") else release


@cache
def scores(seen: str = "software") -> tuple[Score[TrainingRun], ...]:
    """Every fitted run, predicted; an error above 0 means the prediction is too slow.

    Left out is its source; with `seen=""` also its software; with "release" one run in five.
    """
    ratios = record("training").leave_one_out[LEAVE_OUT_KEYS[seen]]
    return tuple(_score(run, source(run) if seen else run.software[0], ratios[run.id]) for run in all_runs())


@cache
def held_out() -> tuple[Score[TrainingRun], ...]:
    """The runs that nothing was fitted to; both predictions are by the recorded fit."""
    return tuple(_score(run, source(run)) for run in runs("held-out"))


def _score(run: TrainingRun, source: str, leave_one_out: float | None = None) -> Score[TrainingRun]:
    found = step_s(run, efficiency_of(record("training").values, run))
    out = found if leave_one_out is None else leave_one_out * run.step_s
    return Score(run=run, source=source, unit="s", published=run.step_s, predicted=found, leave_one_out=out)


def _scored(experts: bool, seen: str = "software") -> list[Score[TrainingRun]]:
    return [s for s in scores(seen) if s.run.experts == experts]


def total(experts: bool, leave_one_out: bool = False, seen: str = "software") -> Summary:
    """The summary of all dense runs or all with experts, as fitted or leave-one-out."""
    return common.total("with experts" if experts else "dense", _scored(experts, seen), leave_one_out)


def _interval_scores(experts: bool, seen: str) -> list[Score[TrainingRun]]:
    """The runs that determine an interval: of software with several sources, one of them left out."""
    found = _scored(experts, seen)
    if seen != "software":
        return found
    sources = grouped({(s.run.software[0], s.source) for s in found}, lambda pair: pair[0])
    return [s for s in found if len(sources[s.run.software[0]]) > 1]


@cache
def prediction_interval(experts: bool, seen: str = "") -> float:
    """The factor, up or down, that is to cover 80% of the runs of an unseen source.

    `seen` is what the fit knows of its software: its "release", another one of the same "software", or
    nothing. Who knows less is never told a narrower interval.
    """
    known = LESS_KNOWN[: LESS_KNOWN.index(seen) + 1]
    return max(common.prediction_interval_of(_interval_scores(experts, one)) for one in known)


def interval_rows(experts: bool, seen: str = "") -> int:
    """The left-out runs that determine an interval."""
    return len(_interval_scores(experts, seen))


def interval_coverage(experts: bool, seen: str = "") -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs its leave-one-out interval covers, and how many it has."""
    return common.interval_coverage(_interval_scores(experts, seen), _least(experts, seen))


def _least(experts: bool, seen: str) -> float:
    """The widest interval of those who know more of the software."""
    known = LESS_KNOWN[: LESS_KNOWN.index(seen)]
    return max((common.prediction_interval_of(_interval_scores(experts, one)) for one in known), default=1.0)


@cache
def covered(seen: str = "") -> dict[str, bool]:
    """Whether a run lies in its leave-one-out interval, by run id.

    With `seen="software"`, runs of software that has a single source lie in the interval of unseen software:
    without that source, nothing of their software is seen.
    """
    found = {}
    for experts in (False, True):
        if seen == "software":
            found |= common.covered(_scored(experts, ""), _least(experts, ""))
        found |= common.covered(_interval_scores(experts, seen), _least(experts, seen))
    return found
