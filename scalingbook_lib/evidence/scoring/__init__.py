"""How right is the library on anybody's rows? Read, predicted, held beside what was measured, and summed up.

`score(rows)` takes a table in the columns of `training_runs`, `inference_runs`, `collectives`, `kernels` or
`model_configs`: of any software and any family, with any columns besides. A row that is not understood is
refused with a sentence; no row ends the run. Chapters: Training, Inference.
"""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from scalingbook_lib.evidence.reading.cells import Cells, text
from scalingbook_lib.evidence.scoring import kernels, serving, training
from scalingbook_lib.evidence.scoring.report import Found, Report, Scored


class Kind(NamedTuple):
    """A kind of table: the columns by which it is known, and how a row of it is predicted."""

    name: str
    columns: tuple[str, ...]
    predict: Callable[[Cells], Found]


KINDS = (
    Kind("collectives", ("collective", "n_devices", "size_bytes"), kernels.collective),
    Kind("kernels", ("op", "m", "n", "k"), kernels.kernel),
    Kind("inference_runs", ("phase", "chip", "input_len"), serving.predict),
    Kind("training_runs", ("seq", "chip", "chips"), training.predict),
    Kind("model_configs", ("model", "layers", "d_model"), kernels.parameters),
)
FLAGS = "data-quality", "do not use without"
"""What the notes of a row say that nobody should score."""
TOLD = "system", "collective", "op", "dtype", "n_devices", "m", "n", "k", "size_bytes", "model"
"""What a row without an id is known by, besides its number."""


def score(table: str | Path | Iterable[Cells]) -> Report:
    """Every row of a CSV file, or of a table already read; a ValueError where no table is recognized."""
    rows = opened(Path(table)) if isinstance(table, str | Path) else list(table)
    columns = {column for row in rows for column in row}
    kind = next((kind for kind in KINDS if columns.issuperset(kind.columns)), None)
    if kind is None:
        known = "; ".join(f"{kind.name} has {', '.join(kind.columns)}" for kind in KINDS)
        there = ", ".join(map(str, sorted(columns, key=str)))[:200] or "none"
        raise ValueError(f"no kind of table has these columns ({there}); {known}")
    return Report(kind.name, tuple(_scored(kind, number, row) for number, row in enumerate(rows, 1)))


def opened(path: Path) -> list[Cells]:
    """The rows of a CSV file; a ValueError where it is none."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return list(csv.DictReader(lines))
    except (OSError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _scored(kind: Kind, number: int, row: Cells) -> Scored:
    id = text(row, "run_id", "id") or " ".join(
        filter(None, (str(number), *(text(row, name) for name in TOLD)))
    )
    flagged = next((flag for flag in FLAGS if flag in text(row, "notes").lower()), None)
    if flagged:
        return Scored(id, None, f"its notes say {flagged!r}: {text(row, 'notes')[:100]}")
    try:
        return Scored(id, kind.predict(row), row=row)
    except ValueError as error:
        return Scored(id, None, " ".join(str(error).split()))
    except Exception as error:  # a stranger's row: whatever is wrong with it, the others are scored
        return Scored(id, None, f"its figures cannot be computed with: {error or type(error).__name__}")
