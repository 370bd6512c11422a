"""How right is the library? What others measured, what compilers said, and predictions held to both.

`score(table)` does so for anybody's table.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalingbook_lib.evidence.scoring.report import Report


def score(table: str | Path | Iterable[Mapping[str, str]]) -> "Report":
    """Every row of a CSV file of measurements predicted, or of a table already read: see `scoring`."""
    from scalingbook_lib.evidence import scoring  # it stands on the rooms below, which import this one first

    return scoring.score(table)
