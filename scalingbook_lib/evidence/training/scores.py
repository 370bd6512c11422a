"""How near do predicted steps come to published ones, on runs that were fitted and on runs left out?

Chapter: Training.
"""

from dataclasses import dataclass
from functools import cache
from math import log

from scalingbook_lib.evidence import calibration
from scalingbook_lib.evidence.calibration import Summary, Table, read, signed, summary
from scalingbook_lib.evidence.measured.training_runs import KEPT, RUNS, TrainingRun
from scalingbook_lib.evidence.training.calibrated import LEFT_OUT
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.predicted import seconds
from scalingbook_lib.evidence.training.table import TABLE, of
from scalingbook_lib.units import Told, si

HOLDS = 0.8  # the share of the runs of a new source that a band shall contain


@dataclass(frozen=True, slots=True)
class Score(Told):
    """A run, the step predicted by the frozen table, and by a table that never saw the run's source."""

    run: TrainingRun
    predicted_s: float
    left_out_s: float

    @property
    def error(self) -> float:
        """Predicted over published, less 1: above 0 the prediction is too slow."""
        return self.predicted_s / self.run.step_s - 1

    @property
    def left_out_error(self) -> float:
        """The same of the prediction by a table without the run's source."""
        return self.left_out_s / self.run.step_s - 1

    def __str__(self) -> str:
        found = f"{si(self.predicted_s, 's')} predicted ({signed(self.error)})"
        return f"{self.run}; {found}, {signed(self.left_out_error)} by a table without {source(self.run)}"


def source(run: TrainingRun) -> str:
    """The family; all releases of Megatron-Bridge are one."""
    return "mbridge" if run.family.startswith("mbridge") else run.family


@cache
def without(name: str) -> Table:
    """The table that never saw a source: chips that it touches were fitted without it, or are missing."""
    touched = {(run.chip.name, run.precision) for run in RUNS if source(run) == name}
    return {key: row for key, row in TABLE.items() if key not in touched} | read(LEFT_OUT[name])


@cache
def scores() -> tuple[Score, ...]:
    """Every usable run, predicted."""
    return tuple(Score(run, _step_s(run, TABLE), _step_s(run, without(source(run)))) for run in RUNS)


@cache
def kept() -> tuple[Score, ...]:
    """The runs that are kept apart, which no table has seen: both predictions are by the frozen one."""
    return tuple(Score(run, step_s, step_s) for run in KEPT for step_s in (_step_s(run, TABLE),))


def _step_s(run: TrainingRun, table: Table) -> float:
    return seconds(run, of(table, run.chip, run.precision, planned(run).kernel)).total_s


def total(experts: bool, left_out: bool = False) -> Summary:
    """All dense runs, or all with experts; as fitted, or each by a table that never saw its source."""
    found = [s.left_out_error if left_out else s.error for s in scores() if s.run.experts == experts]
    kind = "with experts" if experts else "dense"
    return summary(f"{kind}{', source left out' if left_out else ''}", found)


def by_family() -> tuple[tuple[Summary, Summary], ...]:
    """For each family, dense and with experts apart: as fitted, and by tables without its source."""
    groups: dict[str, list[Score]] = {}
    for s in scores():
        groups.setdefault(f"{s.run.family}{', experts' if s.run.experts else ''}", []).append(s)
    return tuple(
        (summary(name, [s.error for s in group]), summary(name, [s.left_out_error for s in group]))
        for name, group in sorted(groups.items())
    )


@cache
def band(experts: bool, besides: str = "") -> float:
    """The factor, up or down, that shall hold `HOLDS` of the runs of a source that nobody has seen.

    Each source counts once, however many runs it has: the root of the mean over sources of their mean square
    error, left out, times Student's t for as many sources. `besides`: a source that the band never saw.
    """
    errors: dict[str, list[float]] = {}
    for s in scores():
        if s.run.experts == experts and source(s.run) != besides:
            errors.setdefault(source(s.run), []).append(log(s.left_out_s / s.run.step_s))
    return calibration.band(errors, HOLDS)


def held_by_band(experts: bool) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for s in scores():
        if s.run.experts == experts:
            name = source(s.run)
            inside, runs = found.get(name, (0, 0))
            held = abs(log(s.left_out_s / s.run.step_s)) <= log(band(experts, name))
            found[name] = inside + held, runs + 1
    return found
