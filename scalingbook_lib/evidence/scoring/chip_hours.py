"""Predicted chip-hours of whole training runs in any table.

A whole run is planned as `scalingbook plan` does: the best plan at calibrated efficiencies, for as many steps
as its tokens take, times what published bills add to such plans (`calibrated.overhead`). What a row does not
say is what most published runs did. Chapter: Training Llama 3.
"""

from scalingbook_lib import calibrated, planner, training
from scalingbook_lib.calibrated.bands import DOUBTS, Band
from scalingbook_lib.calibrated.default_machine import default_machine
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow, number, text, whole
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import model
from scalingbook_lib.evidence.scoring.report import Interval, RowPrediction
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.training import PlannedRun
from scalingbook_lib.units import BF16, FP16

KIND = "chip-hours"
DEFAULT_CHIPS, DEFAULT_LENGTH, BATCH_TOKENS = 1024, 4096, 2**22


def predict(row: Cells) -> RowPrediction:
    """The chip-hours of a run, restarts and other overheads included; raises `UnpredictedRow`."""
    hours, overhead, on = number(row, "accel_hours"), chip_hour_overhead(), accelerator(row)
    if not hours:
        raise UnpredictedRow("the row prints no accel_hours")
    run = planned_run(row, on)
    predicted = overhead.of(run).chip_hours
    said = {
        "number of chips not given": not whole(row, "accel_count", "planned_chips"),
        "batch not given": not whole(row, "batch", "global_batch"),
        "shapes by size alone": ", as " in model(row).name,
    }
    assumed = tuple(told for told, holds in said.items() if holds)
    band = Band(name=KIND, factor=overhead.interval_factor, rows=overhead.runs)
    doubts = tuple(one for one in assumed if one in DOUBTS)
    return RowPrediction(
        kind=KIND,
        chip=on.name,
        params=model(row).params,
        measured=Interval(hours, hours),
        predicted=Interval(predicted, predicted),
        factor=band.widened(doubts),
        assumed=(*assumed, *(() if band.calibrated else ("band not calibrated",))),
    )


def accelerator(row: Cells) -> Chip:
    """The chip of a row; 'A100-80G' is an A100, whose variants have the same peak."""
    name = text(row, "accelerator", "chip")
    try:
        return chip(name)
    except UnpredictedRow:
        return chip(name.split("-")[0])


def planned_run(row: Cells, on: Chip) -> PlannedRun:
    """The run as the best plan of its chips and batch; raises a ValueError if no plan fits."""
    tokens, T = number(row, "tokens"), whole(row, "seq", "context_len") or DEFAULT_LENGTH
    if not tokens:
        raise UnpredictedRow("the row does not say tokens")
    count = whole(row, "accel_count", "planned_chips") or DEFAULT_CHIPS
    slices = -(-count // on.torus.pod_chips) if on.torus else 1
    # by default as many sequences for each chip
    batch = whole(row, "batch", "global_batch") or max(round(BATCH_TOKENS / T / count), 1) * count
    remat, wide = text(row, "remat"), BF16 if "bf16" in on.rates() else FP16
    types = {} if wide == BF16 else {"compute": wide, "activations": wide}
    ranking = planner.plans(
        model(row),
        default_machine(on, count // slices),
        pods=slices,
        batch=batch,
        T=T,
        fixed=types | ({"remat": remat} if remat else {}),
        keep=1,
        efficiency=calibrated.training(on, wide.name, text(row, "kernel") or "attention"),
    )
    return training.run(ranking.winner.step, tokens)
