"""Dated predictions beside what was measured later.

A row names the prediction and gives the measured value, in the unit of the prediction. Chapter: Comparing
accelerators.
"""

from scalingbook_lib.evidence.predictions import predictions
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow, number, text
from scalingbook_lib.evidence.scoring.report import Interval, RowPrediction


def predict(row: Cells) -> RowPrediction:
    """The dated prediction that a row names; raises `UnpredictedRow` if there is none or the unit differs."""
    id, measured, unit = text(row, "prediction"), number(row, "measured"), text(row, "unit")
    found = predictions().get(id)
    if found is None:
        raise UnpredictedRow(f"{id!r} is the id of no prediction; the page of predictions lists them")
    if not measured:
        raise UnpredictedRow(f"the row of {id} has no measured value")
    if unit != found.unit:
        raise UnpredictedRow(f"the row of {id} is in {unit or 'no unit'}, and its prediction in {found.unit}")
    return RowPrediction(
        kind=f"dated prediction, {found.kind}",
        chip=found.chip,
        measured=Interval(measured, measured),
        predicted=Interval(found.value, found.value),
        factor=found.factor,
        assumed=found.assumed,
    )
