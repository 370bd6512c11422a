"""Predicted step times of training runs in any table, over every plan that a row leaves open.

What a row does not say takes every value that fits in memory. Practitioners choose well: with a known plan
hidden, the fastest plan that fits is closest (5% off without microbatch, 1% without chunks, 9% without tp and
pp, where the mean of all is 10, 4 and 39% off). So the prediction is the geometric mean of the plans near the
fastest, and the interval is wider by as much. Software without fitted values counts as average software.
Chapter: Training.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from scalingbook_lib import calibrated
from scalingbook_lib.calibrated import bands
from scalingbook_lib.evidence import memory, training
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow, text
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.scoring.report import FASTER, NO_ROOM, Interval, PeakMemory, RowPrediction
from scalingbook_lib.evidence.training.candidate_plans import candidates, fits_recomputed
from scalingbook_lib.training import PEAK, TrainingEfficiency

NEAR_BEST = 1.1  # slower plans than this factor are ignored
OPEN = {
    "batch": "global_batch",
    "microbatch": "microbatch",
    "chunks": "chunks",
    "tp": "tp and pp",
    "ep": "ep",
    "zero": "sharding",
}


def predict(row: Cells) -> RowPrediction:
    """The measured and predicted step time in seconds; raises `Refused` if the row says too little."""
    run = read(row)
    stack = software_of("training", row)
    runs = candidates(row, run)
    counts = [run.convention] if run.convention or run.bases else ["half", "full"]
    steps = [replace(run, convention=one).step_s for one in counts]
    measured = Interval(min(steps), max(steps))
    # rules of a family fill in what a row omits; only a row that names it is of its release
    named = run.software if text(row, "family") else run.software[:1]
    seen = bands.seen(named, run.experts)
    own = not bands.chip_doubts("training", run.chip, run.precision)
    assumed = tuple(_assumed(runs, bool(seen), own, len(counts) > 1))
    near = _near_best(runs, run.batch)
    predicted = Interval(near[0].seconds, near[-1].seconds)
    suspect = measured.high < predicted.low and measured.high < _roofline_s(runs, run.batch)
    return RowPrediction(
        kind=f"training, {'experts' if run.experts else 'dense'}",
        chip=run.chip.name,
        stack=stack.name,
        params=run.model.params,
        measured=measured,
        predicted=predicted,
        factor=bands.training_band(experts=run.experts, seen=seen).widened(assumed),
        assumed=assumed,
        findings=(FASTER,) * suspect + (NO_ROOM,) * (NO_ROOM in assumed),
        peak_memory=_peak_memory(run, [one.run for one in near]),
    )


class _Timed(NamedTuple):
    """A plan that can be laid out, and its step time."""

    seconds: float
    run: TrainingRun


def _near_best(runs: Sequence[TrainingRun], batch: int) -> list[_Timed]:
    """The plans whose step times are near the best one's, the fastest first."""
    timed = sorted(_timed(runs, batch, _calibrated), key=lambda one: one.seconds)
    return [one for one in timed if one.seconds <= NEAR_BEST * timed[0].seconds]


def _peak_memory(run: TrainingRun, near: Sequence[TrainingRun]) -> PeakMemory | None:
    """The printed and the predicted peak memory of a chip; None if the row does not print it."""
    if not run.memory_bytes:
        return None
    counted = [memory.peak_bytes(one) for one in near]
    return PeakMemory(run.memory_bytes, Interval(min(counted), max(counted)))


def _calibrated(run: TrainingRun) -> TrainingEfficiency:
    return calibrated.training(run.chip, run.precision, software=run.software)


def _roofline_s(runs: Sequence[TrainingRun], batch: int) -> float:
    """The seconds of the fastest plan at documented peaks."""
    return min(one.seconds for one in _timed(runs, batch, lambda run: PEAK))


def _timed(
    runs: Sequence[TrainingRun], batch: int, efficiency: Callable[[TrainingRun], TrainingEfficiency]
) -> list[_Timed]:
    """The plans that can be laid out, with their step times."""
    times, why = list[_Timed](), "no plan divides"
    for run in runs:
        try:
            seconds = training.seconds(run, efficiency(run)).total_s * batch / run.batch
            times.append(_Timed(seconds, run))
        except ValueError as error:  # this plan does not fit the machine; others may
            why = str(error)
    if not times:
        raise UnpredictedRow(why)
    return times


def _assumed(runs: Sequence[TrainingRun], known: bool, own: bool, counted: bool) -> Iterator[str]:
    """What the row left open, or what the model cannot say."""
    several = (told for name, told in OPEN.items() if len({getattr(run, name) for run in runs}) > 1)
    yield from (f"{told} not given" for told in several)
    said = {
        "remat not given": runs[0].remat is None,
        "software not known": not known,
        "chip by its kin": not own,
        "frozen weights": runs[0].convention == "frozen",
        "how FLOPs are counted not given": counted,
        "shapes by size alone": ", as " in runs[0].model.name,
        NO_ROOM: not fits_recomputed(runs[0]),
    }
    yield from (told for told, holds in said.items() if holds)
