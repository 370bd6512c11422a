"""How near do predicted steps come to published ones, on runs that were fitted and on runs left out?

Chapter: Training.
"""

from functools import cache

from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.factors import record
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Score, Summary
from scalingbook_lib.evidence.training.efficiencies import of, step_s
from scalingbook_lib.evidence.training.opened import every

LEFT_OUT = {"release": "rows", "software": "source", "": "software"}
"""What of a run's software was seen, and which runs are left out to be as blind: see `factors.Record`."""


def source(run: TrainingRun) -> str:
    """Its release; all of Megatron-Bridge are one."""
    release = run.software[-1]
    return "mbridge" if release.startswith("mbridge") else release


@cache
def scores(seen: str = "software") -> tuple[Score[TrainingRun], ...]:
    """Every fitted run, predicted: above an error of 0 the prediction is too slow.

    Left out is its source, and with `seen=""` its software, too; with "release" one run in five.
    """
    ratios = record("training").left_out[LEFT_OUT[seen]]
    return tuple(_score(run, source(run) if seen else run.software[0], ratios[run.id]) for run in every())


@cache
def held_out() -> tuple[Score[TrainingRun], ...]:
    """The runs that no fit has seen: both predictions are by the frozen figures."""
    return tuple(_score(run, source(run)) for run in runs("held-out"))


def _score(run: TrainingRun, source: str, left_out: float | None = None) -> Score[TrainingRun]:
    found = step_s(run, of(record("training").values, run))
    out = found if left_out is None else left_out * run.step_s
    return Score(run=run, source=source, unit="s", published=run.step_s, predicted=found, left_out=out)


def _scored(experts: bool, seen: str = "software") -> list[Score[TrainingRun]]:
    return [s for s in scores(seen) if s.run.experts == experts]


def total(experts: bool, left_out: bool = False, seen: str = "software") -> Summary:
    """All dense runs, or all with experts; as fitted, or each by figures that never saw its source."""
    return common.total("with experts" if experts else "dense", _scored(experts, seen), left_out)


def _band_scores(experts: bool, seen: str) -> list[Score[TrainingRun]]:
    """The runs that tell a band: of software that has several sources, where one of them is left out."""
    found = _scored(experts, seen)
    if seen != "software":
        return found
    sources = grouped({(s.run.software[0], s.source) for s in found}, lambda pair: pair[0])
    return [s for s in found if len(sources[s.run.software[0]]) > 1]


@cache
def band(experts: bool, seen: str = "") -> float:
    """The factor, up or down, that shall hold four in five of the runs of a source that nobody has seen.

    `seen` is what the fits know of its software: its "release", another of the same "software", or nothing.
    """
    return common.band_of(_band_scores(experts, seen))


def held_by_band(experts: bool, seen: str = "") -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    return common.held_by_band(_band_scores(experts, seen))
