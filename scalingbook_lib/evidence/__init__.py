"""Published measurements, recorded compiler output, and the accuracy of predictions against both.

`score(table)` scores the predictions for any table of measurements. Chapter: Conclusions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalingbook_lib.evidence.scoring.report import ScoreReport


def score(table: str | Path | Iterable[Mapping[str, str]]) -> "ScoreReport":
    """A `ScoreReport` on every row of a CSV file of measurements, or of a table already read; see `scoring`.

    Raises a ValueError if no kind of table has these columns.
    """
    from scalingbook_lib.evidence import scoring  # imported late: its modules import this package

    return scoring.score(table)
