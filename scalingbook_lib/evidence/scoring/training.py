"""How long is a step of somebody's training run predicted to take? In every plan that its row leaves open.

What a row says counts; what it does not is every value that fits in memory. People choose well: where rows
say their plan and it is hidden, the fastest that fits is nearest (5% off without microbatch, 1% without
chunks, 9% without tp and pp, where the middle of all is 10, 4 and 39% off). So the prediction is the
geometric middle of those near it, and the band is as much wider. Software that the fits know has its own
figures; what they do not know is taken to be as all software is on average. Chapter: Training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.factors import line, record
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, Refused
from scalingbook_lib.evidence.reading.stacks import kin
from scalingbook_lib.evidence.scoring.report import Found, Interval
from scalingbook_lib.evidence.training.opened import fits, opened

NEAR_BEST = 1.1  # of the plans that are open, those that take longer nobody would choose
OPEN = {
    "batch": "global_batch",
    "microbatch": "microbatch",
    "chunks": "chunks",
    "tp": "tp and pp",
    "ep": "ep",
    "zero": "sharding",
}


def predict(row: Cells) -> Found:
    """The step in seconds, measured and predicted; Refused where the row says too little."""
    run = read(row)
    stack = kin("training", row)
    runs = opened(row, run)
    counts = [run.convention] if run.convention or run.bases else ["half", "full"]
    steps = [replace(run, convention=one).step_s for one in counts]
    measured = Interval(min(steps), max(steps))
    own, seen = line(run.chip, run.precision) in record("training").values, _seen(run)
    return Found(
        kind=f"training, {'experts' if run.experts else 'dense'}",
        chip=run.chip.name,
        stack=stack.name,
        params=run.model.params,
        measured=measured,
        predicted=_steps(runs, run.batch),
        factor=training.band(run.experts, seen) ** (1 if own else sqrt(2)),  # kin: twice the variance
        assumed=tuple(_assumed(runs, bool(seen), own, len(counts) > 1)),
    )


def _seen(run: TrainingRun) -> str:
    """What the fits know of a run's software: its release, another one of the same software, or nothing."""
    name, release = run.software
    values, what = record("training").values, "experts" if run.experts else "slowness"
    return next(
        (seen for seen, one in (("release", release), ("software", name)) if f"{one}: {what}" in values), ""
    )


def _steps(runs: Sequence[TrainingRun], batch: int) -> Interval:
    """The fastest and the slowest step of these plans, of those that fit, if any does."""
    times, why = [], "no plan divides"
    for run in runs:
        try:
            kernel = training.planned(run).kernel
            table = training.calibrated(run.chip, run.precision, kernel, run.software)
            times.append(training.seconds(run, table).total_s * batch / run.batch)
        except ValueError as error:  # this plan cannot be laid on the machine; others may
            why = str(error)
    if not times:
        raise Refused(why)
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
        "fits no chip by the count of memory": not fits(runs[0]),
    }
    yield from (told for told, holds in said.items() if holds)
