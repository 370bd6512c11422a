"""Scores predictions against any table of measurements.

`score(rows)` takes a table with the columns of `training_runs`, `inference_runs`, `collectives`, `kernels`,
`training_gpu_hours` or `model_configs`, or with the measured values of dated predictions, of any software and
with any further columns. A row that cannot be interpreted is refused with a reason; no row stops the run.
Chapters: Training; Inference.
"""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from scalingbook_lib import git_lfs
from scalingbook_lib.evidence.reading.cells import Cells, text
from scalingbook_lib.evidence.scoring import chip_hours, dated, kernels, serving, training
from scalingbook_lib.evidence.scoring.report import RowPrediction, Scored, ScoreReport


class TableKind(NamedTuple):
    """A kind of table: the columns that identify it, and the function that predicts a row."""

    name: str
    columns: tuple[str, ...]
    predict: Callable[[Cells], RowPrediction]


KINDS = (
    TableKind("predictions", ("prediction", "measured"), dated.predict),
    TableKind("collectives", ("collective", "n_devices", "size_bytes"), kernels.collective),
    TableKind("kernels", ("op", "dtype"), kernels.kernel),
    TableKind("inference_runs", ("phase", "chip", "input_len"), serving.predict),
    TableKind("training_runs", ("seq", "chip", "chips"), training.predict),
    TableKind("training_gpu_hours", ("params", "tokens", "accelerator", "accel_hours"), chip_hours.predict),
    TableKind("model_configs", ("model", "layers", "d_model"), kernels.parameters),
)
EXCLUDING_NOTES = "data-quality", "do not use without"
"""Notes that exclude a row from scoring."""
ROW_LABELS = "system", "collective", "op", "dtype", "n_devices", "m", "n", "k", "size_bytes", "model", "name"
"""Columns that name a row without an id, besides its number."""


def score(table: str | Path | Iterable[Cells]) -> ScoreReport:
    """A `ScoreReport` on every row of a CSV file or of a table already read.

    Raises a ValueError if no kind of table has these columns.
    """
    rows = read_table(Path(table)) if isinstance(table, str | Path) else list(table)
    columns = {column for row in rows for column in row}
    kind = next((kind for kind in KINDS if columns.issuperset(kind.columns)), None)
    if kind is None:
        known = "; ".join(f"{kind.name} has {', '.join(kind.columns)}" for kind in KINDS)
        there = ", ".join(map(str, sorted(columns, key=str)))[:200] or "none"
        raise ValueError(f"no kind of table has these columns ({there}); {known}")
    return ScoreReport(kind.name, tuple(_score_row(kind, number, row) for number, row in enumerate(rows, 1)))


def read_table(path: Path) -> list[Cells]:
    """The rows of a CSV file; raises a ValueError if it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            found: list[Cells] = [*csv.DictReader(lines)]
    except (OSError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if found and git_lfs.is_pointer(next(iter(found[0]))):
        raise ValueError(git_lfs.refusal(str(path)))
    return found


def _score_row(kind: TableKind, number: int, row: Cells) -> Scored:
    id = text(row, "run_id", "id", "prediction") or " ".join(
        filter(None, (str(number), *(text(row, name) for name in ROW_LABELS)))
    )
    flagged = next((flag for flag in EXCLUDING_NOTES if flag in text(row, "notes").lower()), None)
    if flagged:
        return Scored(id, None, f"its notes say {flagged!r}: {text(row, 'notes')[:100]}")
    try:
        return Scored(id, kind.predict(row), row=row)
    except ValueError as error:
        return Scored(id, None, " ".join(str(error).split()))
    except Exception as error:  # one bad row must not stop the others
        return Scored(id, None, f"its figures cannot be computed with: {error or type(error).__name__}")
