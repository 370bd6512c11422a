"""Predicted step times of training runs in any table, over every plan that a row leaves open.

What a row does not say takes every value that fits in memory. Practitioners choose well: with a known plan
hidden, the fastest plan that fits is closest (5% off without microbatch, 1% without chunks, 9% without tp and
pp, where the mean of all is 10, 4 and 39% off). So the prediction is the geometric mean of the plans near the
fastest, and the interval is wider by as much. Software without fitted values counts as average software.
Chapter: Training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scalingbook_lib import calibrated
from scalingbook_lib.calibrated import bands
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.scoring.report import Interval, RowPrediction
from scalingbook_lib.evidence.training.candidate_plans import candidates, fits_recomputed

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
    seen = _seen(run)
    own = not bands.chip_doubts("training", run.chip, run.precision)
    assumed = tuple(_assumed(runs, bool(seen), own, len(counts) > 1))
    return RowPrediction(
        kind=f"training, {'experts' if run.experts else 'dense'}",
        chip=run.chip.name,
        stack=stack.name,
        params=run.model.params,
        measured=measured,
        predicted=_steps(runs, run.batch),
        factor=bands.training_band(experts=run.experts, seen=seen).widened(assumed),
        assumed=assumed,
    )


def _seen(run: TrainingRun) -> str:
    """What the fit knows of a run's software: its "release", another of the same "software", or ""."""
    name, release = run.software
    values, what = record("training").values, "experts" if run.experts else "slowness"
    return next(
        (seen for seen, one in (("release", release), ("software", name)) if f"{one}: {what}" in values), ""
    )


def _steps(runs: Sequence[TrainingRun], batch: int) -> Interval:
    """The fastest and slowest step times in seconds of these plans, of those that can be laid out."""
    times, why = [], "no plan divides"
    for run in runs:
        try:
            kernel = training.planned(run).kernel
            table = calibrated.training(run.chip, run.precision, kernel, run.software)
            times.append(training.seconds(run, table).total_s * batch / run.batch)
        except ValueError as error:  # this plan does not fit the machine; others may
            why = str(error)
    if not times:
        raise UnpredictedRow(why)
    return Interval(min(times), max(t for t in times if t <= NEAR_BEST * min(times)))


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
        "fits no chip by the count of memory": not fits_recomputed(runs[0]),
    }
    yield from (told for told, holds in said.items() if holds)
