"""How near do predicted steps come to published ones, on runs that were fitted and on runs left out?

Chapter: Training.
"""

from functools import cache

from scalingbook_lib.evidence import scores as common
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Score, Summary
from scalingbook_lib.evidence.tables import Table, frozen
from scalingbook_lib.evidence.training.efficiencies import of
from scalingbook_lib.evidence.training.planned import planned, seconds


def source(run: TrainingRun) -> str:
    """The family; all releases of Megatron-Bridge are one."""
    return "mbridge" if run.family.startswith("mbridge") else run.family


@cache
def without(name: str) -> Table:
    """The table that never saw a source: chips that it touches were fitted without it, or are missing."""
    # the lines that its runs helped to fit are taken from the fit without it
    touched = {(run.chip.name, run.precision) for run in runs() if source(run) == name}
    return frozen("training").without(name, touched)


@cache
def scores() -> tuple[Score[TrainingRun], ...]:
    """Every usable run, predicted: above an error of 0 the prediction is too slow."""
    return tuple(_score(run, without(source(run))) for run in runs())


@cache
def held_out() -> tuple[Score[TrainingRun], ...]:
    """The runs that no table has seen: both predictions are by the frozen one."""
    return tuple(_score(run, frozen("training").table) for run in runs("held-out"))


def _score(run: TrainingRun, left_out: Table) -> Score[TrainingRun]:
    return Score(
        run=run,
        source=source(run),
        unit="s",
        published=run.step_s,
        predicted=_step_s(run, frozen("training").table),
        left_out=_step_s(run, left_out),
    )


def _step_s(run: TrainingRun, table: Table) -> float:
    return seconds(run, of(table, run.chip, run.precision, planned(run).kernel)).total_s


def _scored(experts: bool) -> list[Score[TrainingRun]]:
    return [s for s in scores() if s.run.experts == experts]


def total(experts: bool, left_out: bool = False) -> Summary:
    """All dense runs, or all with experts; as fitted, or each by a table that never saw its source."""
    return common.total("with experts" if experts else "dense", _scored(experts), left_out)


def by_family() -> tuple[tuple[Summary, Summary], ...]:
    """For each family, dense and with experts apart: as fitted, and by tables without its source."""
    return common.summaries(
        grouped(scores(), lambda s: f"{s.run.family}{', experts' if s.run.experts else ''}")
    )


@cache
def band(experts: bool) -> float:
    """The factor, up or down, that shall hold four in five of the runs of a source that nobody has seen."""
    return common.band_of(_scored(experts))


def held_by_band(experts: bool) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    return common.held_by_band(_scored(experts))
