"""How near do predictions come to published runs, to those that were fitted and to those left out?

Chapter: Inference.
"""

from dataclasses import dataclass
from functools import cache
from math import log

from scalingbook_lib.evidence import calibration
from scalingbook_lib.evidence.calibration import Summary, Table, read, signed, summary
from scalingbook_lib.evidence.inference.calibrated import LEFT_OUT
from scalingbook_lib.evidence.inference.fit import key, source
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.inference.table import TABLE, of
from scalingbook_lib.evidence.measured.inference_runs import RUNS, InferenceRun
from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.units import Told, si

ROOFLINE = Efficiency(overlap=1.0, name="roofline")
HOLDS = 0.8  # the share of the runs of a new model and engine that a band shall contain
KINDS = "serving, dense", "serving, with experts", "prefill", "decode, one sequence", "batches"
"""Runs that are scored together."""


@dataclass(frozen=True, slots=True)
class Score(Told):
    """A run, and tokens/s: by the frozen table, by one that never saw its source, at the peak."""

    run: InferenceRun
    predicted: float
    left_out: float
    peak: float

    @property
    def error(self) -> float:
        """Predicted over published, less 1: above 0 the prediction is too fast."""
        return self.predicted / self.run.tokens_per_s - 1

    @property
    def left_out_error(self) -> float:
        """The same of the prediction by a table that never saw the source."""
        return self.left_out / self.run.tokens_per_s - 1

    @property
    def peak_error(self) -> float:
        """The same of a bare roofline: every class at its documented peak, nothing lost, nothing exposed."""
        return self.peak / self.run.tokens_per_s - 1

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is scored with."""
        if self.run.kind == "serving":
            return KINDS[self.run.experts]
        if self.run.kind == "prefill":
            return KINDS[2]
        return KINDS[3] if self.run.kind == "decode" and self.run.B == 1 else KINDS[4]

    def __str__(self) -> str:
        found = f"{si(self.predicted, 'tokens/s')} predicted ({signed(self.error)})"
        return f"{self.run}; {found}, {signed(self.left_out_error)} by a table without {source(self.run)}"


@cache
def without(name: str) -> Table:
    """The table that never saw a source: lines that it touches were fitted without it, or are missing."""
    touched = {key(run) for run in RUNS if source(run) == name}
    return {line: row for line, row in TABLE.items() if line not in touched} | read(LEFT_OUT[name])


@cache
def scores() -> tuple[Score, ...]:
    """Every usable run, predicted."""
    return tuple(
        Score(run, _by(run, TABLE), _by(run, without(source(run))), tokens_per_s(run, ROOFLINE))
        for run in RUNS
    )


def _by(run: InferenceRun, table: Table) -> float:
    return tokens_per_s(run, of(table, run.chip, run.compute, run.engine))


def total(kind: str, left_out: bool = False) -> Summary:
    """All runs of a kind; as fitted, or each by a table that never saw its source."""
    found = [s.left_out_error if left_out else s.error for s in scores() if s.kind == kind]
    return summary(f"{kind}{', source left out' if left_out else ''}", found)


def by_source() -> tuple[tuple[Summary, Summary], ...]:
    """For each source: as fitted, and by tables without it."""
    groups: dict[str, list[Score]] = {}
    for s in scores():
        groups.setdefault(source(s.run), []).append(s)
    return tuple(
        (summary(name, [s.error for s in group]), summary(name, [s.left_out_error for s in group]))
        for name, group in sorted(groups.items())
    )


@cache
def band(experts: bool, besides: str = "") -> float:
    """The factor, up or down, that shall hold `HOLDS` of the runs of a source that nobody has seen.

    See `calibration.band`. `besides`: a source that the band never saw.
    """
    errors: dict[str, list[float]] = {}
    for s in scores():
        if s.run.experts == experts and source(s.run) != besides:
            errors.setdefault(source(s.run), []).append(log(s.left_out / s.run.tokens_per_s))
    return calibration.band(errors, HOLDS)


def held_by_band(experts: bool) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for s in scores():
        if s.run.experts == experts:
            name = source(s.run)
            inside, runs = found.get(name, (0, 0))
            held = abs(log(s.left_out / s.run.tokens_per_s)) <= log(band(experts, name))
            found[name] = inside + held, runs + 1
    return found
